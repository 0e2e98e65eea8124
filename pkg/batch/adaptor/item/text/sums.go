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

type sums struct {
	cells  []cell
	totals []row.Decimal
}

func newSums(t *trailerConfig, l *layout, schema *row.Schema) (*sums, error) {
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

func sumCell(name, place string, t *trailerConfig, l *layout, schema *row.Schema) (cell, error) {
	at, err := spanOf(place)
	if err != nil {
		return cell{}, err
	}
	i := slices.IndexFunc(l.cells, func(c cell) bool { return c.name == name })
	switch {
	case i < 0:
		return cell{}, errors.New("the records have no such column")
	case at.first <= utf8.RuneCountInString(t.Begins):
		return cell{}, fmt.Errorf("it begins at %d, inside %q", at.first, t.Begins)
	case l.length > 0 && at.last > l.length:
		return cell{}, fmt.Errorf("it ends at %d, but a record has %d bytes (length)", at.last, l.length)
	}
	c := l.cells[i]
	if kind := schema.Field(c.field).Kind; kind != row.Int && kind != row.DecimalKind {
		return cell{}, fmt.Errorf("the field is a %s; exact sums need int or decimal", kind)
	}
	c.span, c.right, c.pad = at, true, '0'
	return c, nil
}

// Two values must not share places of the trailer.
func (s *sums) overlaps(t *trailerConfig) (errs []error) {
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
				errs = append(errs, &registry.ConfigError{Key: "trailer.sums." + c.name, Err: fmt.Errorf("it is at %s, which overlaps %s (%s)", c.span, p.what, p.span)})
			}
		}
		places = append(places, taken{c.span, c.name})
	}
	return errs
}

func (s *sums) clear() {
	s.totals = make([]row.Decimal, len(s.cells))
}

// a null adds nothing
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

type sumPosition struct {
	Sums []row.Decimal `json:"sums,omitempty"`
}

func (s *sums) position() sumPosition {
	if len(s.cells) == 0 {
		return sumPosition{}
	}
	return sumPosition{Sums: slices.Clone(s.totals)}
}

func (s *sums) restore(p sumPosition) error {
	s.clear()
	if len(p.Sums) != len(s.cells) {
		return errors.New("cannot restart: the trailer had different sums when the file was started")
	}
	copy(s.totals, p.Sums)
	return nil
}

func (s *sums) addAll(p sumPosition) (err error) {
	if len(p.Sums) != len(s.cells) {
		return errors.New("a part was written with other sums of the trailer: restart with --from-start")
	}
	for i, sum := range p.Sums {
		if err == nil {
			s.totals[i], err = s.totals[i].Add(sum)
		}
	}
	return err
}

func (s *sums) appendTo(text string, of shape, schema *row.Schema) ([]byte, error) {
	text, err := of.marked(text)
	if err != nil {
		return nil, err
	}
	dst := []byte(text)
	for i, c := range s.cells {
		for size := of.spansOf(dst); size < c.last; size++ {
			dst = append(dst, of.blank())
		}
		sum, err := c.append(nil, of.codec, schema.Field(c.field), row.DecimalValue(s.totals[i]))
		if err != nil {
			return nil, fmt.Errorf("the sum of %s: %w", c.name, err)
		}
		if of.codec != nil {
			copy(dst[c.first-1:c.last], sum)
			continue
		}
		places := []rune(string(dst))
		copy(places[c.first-1:c.last], []rune(string(sum)))
		dst = []byte(string(places))
	}
	return dst, nil
}
