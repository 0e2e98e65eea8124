package recordtypes

import (
	"errors"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// State is the progress of a file; errors, except Fill's, mean that the file is incomplete.
type State struct {
	plan   *Plan
	heads  []head  // by the number of their type
	scopes []scope // of each trailer of the plan
	ended  bool    // the trailer of the file was read
	single bool    // one record is read alone
}

type head struct {
	there  bool
	line   int64
	values []row.Value // of its columns
	raw    []byte
}

type scope struct {
	open   bool
	count  int64
	sums   []row.Decimal
	unread []int64 // records without a value that could be read
}

// Start returns the state before the first record.
func (p *Plan) Start() *State {
	s := &State{plan: p, heads: make([]head, len(p.Types)), scopes: make([]scope, len(p.trailers))}
	for i, t := range p.trailers {
		if t.Of == nil {
			s.scopes[i].begin(t)
		}
	}
	return s
}

// Alone makes s the state of one record: nothing is counted.
func (s *State) Alone() { s.single = true }

func (c *scope) begin(t *Type) {
	*c = scope{open: true, sums: make([]row.Decimal, len(t.Sums)), unread: make([]int64, len(t.Sums))}
}

// maxHeads bounds the headers in a position: a step has 8 KB (rule D4).
const maxHeads = 3 << 10

// Header processes a header.
func (s *State) Header(t *Type, r Record, line int64) error {
	if err := s.inside(t); err != nil {
		return err
	}
	for i, trailer := range s.plan.trailers {
		switch {
		case trailer.Of == nil || trailer.Of != t && !trailer.Of.under(t):
		case s.scopes[i].open:
			return s.missing(trailer)
		case trailer.Of == t:
			s.scopes[i].begin(trailer)
		}
	}
	s.forget(t)
	if err := s.SetHead(t, r, line); err != nil {
		return err
	}
	size := 0
	for _, h := range s.heads {
		size += len(h.raw)
	}
	if size > maxHeads {
		return fmt.Errorf("the headers have %d bytes up to their last columns, but a position has room for only %d", size, maxHeads)
	}
	return s.count(t, nil)
}

func (s *State) inside(t *Type) error {
	if s.ended {
		return errors.New("the file continues after its trailer")
	}
	if t != nil && t.Of != nil && !s.heads[t.Of.number].there {
		return fmt.Errorf("%s has no header %s before it", t.label(), t.Of.Name)
	}
	return nil
}

func (s *State) forget(t *Type) {
	for _, h := range s.plan.headers {
		if h.under(t) {
			s.heads[h.number] = head{}
		}
	}
}

// SetHead takes the values of a header, also of one read before a restart.
func (s *State) SetHead(t *Type, r Record, line int64) error {
	h := head{there: true, line: line, values: make([]row.Value, len(t.Fields))}
	for i := range t.Fields {
		v, err := r.Column(t, i)
		if err != nil {
			return err
		}
		h.values[i] = v.Clone()
	}
	if len(t.Fields) > 0 {
		h.raw = slices.Clone(r.Raw(t))
	}
	s.heads[t.number] = h
	return nil
}

// Trailer compares a trailer with the records before it.
func (s *State) Trailer(t *Type, r Record) error {
	if s.single {
		return nil
	}
	if err := s.inside(t); err != nil {
		return err
	}
	for i, other := range s.plan.trailers {
		if other != t && other.Of != nil && s.scopes[i].open && (t.Of == nil || other.Of.under(t.Of)) {
			return s.missing(other)
		}
	}
	if err := s.count(t, nil); err != nil {
		return err
	}
	i := slices.Index(s.plan.trailers, t)
	if err := s.compare(t, &s.scopes[i], r); err != nil {
		return err
	}
	if t.Of == nil {
		s.ended = true
		return nil
	}
	s.Close(t)
	return nil
}

// Close ends the scope of a trailer.
func (s *State) Close(t *Type) {
	s.scopes[slices.Index(s.plan.trailers, t)] = scope{}
	if t.Of != nil {
		s.heads[t.Of.number] = head{}
		s.forget(t.Of)
	}
}

func (s *State) whole(t *Type) (has, what string) {
	if t.Of == nil {
		return "the file has", "the file"
	}
	place := fmt.Sprintf("the part after the header %s of line %d", t.Of.Name, s.heads[t.Of.number].line)
	return place + " has", place
}

func (s *State) compare(t *Type, c *scope, r Record) error {
	has, what := s.whole(t)
	if t.HasCount {
		n, err := r.Count(t)
		if err != nil {
			return fmt.Errorf("%s has no number of records %w", t.label(), err)
		}
		if n != c.count {
			return fmt.Errorf("%s says %d records, but %s %d: it is incomplete", t.label(), n, has, c.count)
		}
	}
	for i, sum := range t.Sums {
		if c.unread[i] > 0 {
			return fmt.Errorf("the sum of %s cannot be checked: it is unreadable in %d records", sum.Name, c.unread[i])
		}
		said, err := r.Sum(t, i)
		switch {
		case err != nil:
			return fmt.Errorf("%s has no sum of %s %w", t.label(), sum.Name, err)
		case said.IsNull():
			return fmt.Errorf("%s has no sum of %s: it is blank", t.label(), sum.Name)
		case !exactOf(said).Equal(c.sums[i]):
			return fmt.Errorf("%s says that the total of %s is %s, but the records have %s: %s is incomplete", t.label(), sum.Name, said, c.sums[i], what)
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

func (s *State) missing(t *Type) error {
	_, what := s.whole(t)
	c := s.scopes[slices.Index(s.plan.trailers, t)]
	return fmt.Errorf("%s has no trailer%s after %d records: it is incomplete", what, nameOf(t), c.count)
}

func nameOf(t *Type) string {
	if t.Label != "" {
		return " (a line that begins with \"" + t.Name + "\")"
	}
	return " " + t.Name
}

// Count adds a detail to the trailers' values, readable or not.
func (s *State) Count(t *Type, r Record) error {
	if s.single {
		return nil
	}
	if err := s.inside(t); err != nil {
		return err
	}
	for i, trailer := range s.plan.trailers {
		if !s.scopes[i].open && trailer.counts(t) {
			return fmt.Errorf("the record %s has no header %s before it, but %s counts it", t.Name, trailer.Of.Name, trailer.label())
		}
	}
	return s.count(t, r)
}

func (t *Type) counts(of *Type) bool {
	if t.CountOf == nil {
		return of.Role == Detail
	}
	return slices.Contains(t.CountOf, of)
}

func (s *State) count(t *Type, r Record) error {
	for i, trailer := range s.plan.trailers {
		c := &s.scopes[i]
		if !c.open {
			continue
		}
		if trailer.counts(t) {
			c.count++
		}
		if r == nil {
			continue
		}
		for k, sum := range trailer.Sums {
			column := s.plan.columns[t.number][sum.Field]
			if column < 0 {
				continue
			}
			v, err := r.Column(t, column)
			if err != nil {
				c.unread[k]++
				continue
			}
			if c.sums[k], err = add(c.sums[k], v); err != nil {
				return fmt.Errorf("the sum of %s: %w", sum.Name, err)
			}
		}
	}
	return nil
}

func add(sum row.Decimal, v row.Value) (row.Decimal, error) {
	switch v.Kind() {
	case row.Int:
		return sum.Add(row.DecimalOf(v.Int()))
	case row.DecimalKind:
		return sum.Add(v.Decimal())
	default: // a null is nothing
		return sum, nil
	}
}

// Lost counts a completely unreadable record, even of unknown type.
func (s *State) Lost() error {
	if s.single {
		return nil
	}
	if err := s.inside(nil); err != nil {
		return err
	}
	for i, trailer := range s.plan.trailers {
		c := &s.scopes[i]
		if c.open && trailer.CountOf == nil {
			c.count++
		}
		for k := range c.unread {
			c.unread[k]++
		}
	}
	return nil
}

// Fill makes a detail's values from its columns and headers; an error means an invalid item.
func (s *State) Fill(t *Type, r Record, dst []row.Value) error {
	columns := s.plan.columns[t.number]
	for i := range dst {
		dst[i] = s.plan.Schema.Field(i).Default
	}
	for _, h := range s.plan.headers {
		for i, field := range h.Fields {
			if columns[field] >= 0 {
				continue
			}
			if s.heads[h.number].there {
				dst[field] = s.heads[h.number].values[i]
				continue
			}
			var err error
			if dst[field], err = s.plan.Schema.Field(field).Missing(); err != nil {
				return exception.InvalidItem("", exception.ClassParse, fmt.Errorf("there is no header %s before it, but the field %s needs a value", h.Name, s.plan.Schema.Field(field).Name))
			}
		}
	}
	if s.plan.TypeField >= 0 {
		dst[s.plan.TypeField] = row.StringValue(t.Name)
	}
	for i, field := range t.Fields {
		var err error
		if dst[field], err = r.Column(t, i); err != nil {
			return err
		}
	}
	return nil
}

// End returns an error if something is missing at the end of the file.
func (s *State) End() error {
	if s.single || s.ended {
		return nil
	}
	for i, t := range s.plan.trailers {
		if s.scopes[i].open {
			return s.missing(t)
		}
	}
	return nil
}
