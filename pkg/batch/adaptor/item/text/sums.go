package text

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// sums are the totals of fields that the trailer has.
type sums struct {
	cells  []cell // the place in the trailer, and the form of the field's column
	totals []row.Decimal
	unread []int64 // records whose field could not be read
}

// newSums binds the sums of a trailer to the columns of the records.
func newSums(t *Trailer, l *layout, schema *row.Schema) (*sums, error) {
	s := &sums{}
	if t == nil {
		return s, nil
	}
	var errs []error
	for name, place := range t.Sums {
		c, err := sumCell(name, place, t, l, schema)
		if err != nil {
			errs = append(errs, &registry.ConfigError{Key: "trailer.sums." + name, Err: err})
		}
		s.cells = append(s.cells, c)
	}
	slices.SortFunc(s.cells, func(a, b cell) int { return cmp.Or(cmp.Compare(a.first, b.first), strings.Compare(a.name, b.name)) })
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	if len(errs) == 0 {
		errs = s.overlaps(t)
	}
	s.clear()
	return s, errors.Join(errs...)
}

func sumCell(name, place string, t *Trailer, l *layout, schema *row.Schema) (cell, error) {
	at, err := spanOf(place)
	if err != nil {
		return cell{}, err
	}
	i := slices.IndexFunc(l.cells, func(c cell) bool { return c.name == name })
	switch {
	case i < 0:
		return cell{}, errors.New("the records have no such column")
	case at.first <= utf8.RuneCountInString(t.Begins):
		return cell{}, fmt.Errorf("it begins at %d, where %q still stands", at.first, t.Begins)
	}
	c := l.cells[i]
	if kind := schema.Field(c.field).Kind; kind != row.Int && kind != row.DecimalKind {
		return cell{}, fmt.Errorf("the field is a %s; exact sums are of int and decimal", kind)
	}
	c.span, c.right, c.pad = at, true, '0'
	return c, nil
}

// overlaps refuses places of the trailer that two values would share.
func (s *sums) overlaps(t *Trailer) (errs []error) {
	type taken struct {
		span
		what string
	}
	places := []taken{}
	if at, err := spanOf(t.Count); t.Count != "" && err == nil {
		places = append(places, taken{at, "count"})
	}
	for _, c := range s.cells {
		for _, p := range places {
			if c.first <= p.last && p.first <= c.last {
				errs = append(errs, &registry.ConfigError{Key: "trailer.sums." + c.name, Err: fmt.Errorf("it stands at %s, where %s stands, too (%s)", c.span, p.what, p.span)})
			}
		}
		places = append(places, taken{c.span, c.name})
	}
	return errs
}

func (s *sums) clear() {
	s.totals, s.unread = make([]row.Decimal, len(s.cells)), make([]int64, len(s.cells))
}

// add adds the value of a field; a null is nothing.
func (s *sums) add(i int, v row.Value) (err error) {
	switch v.Kind() {
	case row.Int:
		s.totals[i], err = s.totals[i].Add(row.DecimalOf(v.Int()))
	case row.DecimalKind:
		s.totals[i], err = s.totals[i].Add(v.Decimal())
	default:
	}
	return err
}

// sumPosition is what a position keeps of sums.
type sumPosition struct {
	Sums   []row.Decimal `json:"sums,omitempty"`
	Unread []int64       `json:"unread,omitempty"`
}

func (s *sums) position() sumPosition {
	if len(s.cells) == 0 {
		return sumPosition{}
	}
	return sumPosition{Sums: slices.Clone(s.totals), Unread: slices.Clone(s.unread)}
}

// restore takes up the sums of a position; false: they are others than the trailer has now.
func (s *sums) restore(p sumPosition) error {
	s.clear()
	if len(p.Sums) != len(s.cells) || len(p.Unread) != len(s.cells) {
		return errors.New("cannot restart: the trailer had other sums when the file was begun")
	}
	copy(s.totals, p.Sums)
	copy(s.unread, p.Unread)
	return nil
}

// read adds what the columns of a record have, whether or not the rest of it can be read.
func (s *sums) read(l line, schema *row.Schema, columns []cell) error {
	for i, sum := range s.cells {
		at := slices.IndexFunc(columns, func(c cell) bool { return c.name == sum.name })
		v, err := columns[at].parse(l, schema)
		if err != nil {
			s.unread[i]++
			continue
		}
		if err := s.add(i, v); err != nil {
			return fmt.Errorf("the sum of %s: %w", sum.name, err)
		}
	}
	return nil
}

// lost counts a record of which nothing could be read.
func (s *sums) lost() {
	for i := range s.unread {
		s.unread[i]++
	}
}

// check compares a trailer with what was read.
func (s *sums) check(text string, schema *row.Schema) error {
	l := lineOf(text)
	for i, c := range s.cells {
		if s.unread[i] > 0 {
			return fmt.Errorf("the sum of %s cannot be checked: %d records have none that can be read", c.name, s.unread[i])
		}
		said, err := c.parse(l, schema)
		switch {
		case err != nil || said.IsNull():
			return fmt.Errorf("the trailer has no sum of %s at %s: %.40q", c.name, c.span, l.at(c.span))
		case !exactOf(said).Equal(s.totals[i]):
			return fmt.Errorf("the trailer says that %s is %s in all, and the records have %s: the file is not whole", c.name, said, s.totals[i])
		}
	}
	return nil
}

func exactOf(v row.Value) row.Decimal {
	if v.Kind() == row.Int {
		return row.DecimalOf(v.Int())
	}
	return v.Decimal()
}

// appendTo appends the sums to a trailer that ends at its count, in their places.
func (s *sums) appendTo(text string, schema *row.Schema) (string, error) {
	dst := []byte(text)
	for i, c := range s.cells {
		size := utf8.RuneCount(dst)
		for ; size < c.last; size++ {
			dst = append(dst, ' ')
		}
		v := row.DecimalValue(s.totals[i])
		digits, err := c.textOf(nil, schema.Field(c.field), v)
		var sum []byte
		if err == nil {
			sum, err = c.appendTo(nil, string(digits))
		}
		if err != nil {
			return "", fmt.Errorf("the sum of %s: %w", c.name, err)
		}
		runes := []rune(string(dst))
		copy(runes[c.first-1:c.last], []rune(string(sum)))
		dst = []byte(string(runes))
	}
	return string(dst), nil
}
