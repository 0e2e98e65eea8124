package recordtypes

import (
	"bytes"
	"slices"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Headers returns the headers in the order of writing: each after the one that it belongs to.
func (p *Plan) Headers() []*Type {
	headers := slices.Clone(p.headers)
	slices.SortStableFunc(headers, func(a, b *Type) int { return a.depth() - b.depth() })
	return headers
}

func (t *Type) depth() (n int) {
	for up := t.Of; up != nil; up = up.Of {
		n++
	}
	return n
}

// OpenTrailers returns the trailers due before header h, or at the end if nil.
func (s *State) OpenTrailers(h *Type) []*Type {
	var open []*Type
	for i, t := range s.plan.trailers {
		if s.scopes[i].open && (h == nil || t.Of == h || t.Of != nil && t.Of.under(h)) {
			open = append(open, t)
		}
	}
	slices.SortStableFunc(open, func(a, b *Type) int { return b.level() - a.level() })
	return open
}

func (t *Type) level() int {
	if t.Of == nil {
		return 0
	}
	return t.Of.depth() + 1
}

// Totals counts a trailer and returns its values.
func (s *State) Totals(t *Type) (count int64, sums []row.Decimal, err error) {
	if err := s.count(t, nil); err != nil {
		return 0, nil, err
	}
	c := s.scopes[slices.Index(s.plan.trailers, t)]
	return c.count, c.sums, nil
}

// HasHead reports whether the last record of a header equals raw.
func (s *State) HasHead(t *Type, raw []byte) bool {
	h := s.heads[t.number]
	return h.there && bytes.Equal(h.raw, raw)
}

// HasValues reports whether a header's last record has r's values.
func (s *State) HasValues(t *Type, r Record) bool {
	h := s.heads[t.number]
	if !h.there {
		return false
	}
	for i := range t.Fields {
		v, err := r.Column(t, i)
		if err != nil || v.Kind() != h.values[i].Kind() || !v.Equal(h.values[i]) {
			return false
		}
	}
	return true
}

// Clone returns an independent copy.
func (s *State) Clone() *State {
	c := *s
	c.heads, c.scopes = slices.Clone(s.heads), slices.Clone(s.scopes)
	for i := range c.scopes {
		c.scopes[i].sums, c.scopes[i].unread = slices.Clone(s.scopes[i].sums), slices.Clone(s.scopes[i].unread)
	}
	return &c
}
