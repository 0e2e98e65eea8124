package recordtypes

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Position is the state's part of a reader's position.
type Position struct {
	Heads    map[string]Head  `json:"heads,omitempty"`
	Trailers map[string]Scope `json:"trailers,omitempty"`
	Ended    bool             `json:"ended,omitempty"`
}

// Head is the last record of a header.
type Head struct {
	Line int64  `json:"line"`
	Raw  []byte `json:"raw,omitempty"`
}

// Scope holds the values that a trailer will be compared with; a missing one is not open.
type Scope struct {
	Count  int64         `json:"count"`
	Sums   []row.Decimal `json:"sums,omitempty"`
	Unread []int64       `json:"unread,omitempty"`
}

// Position returns the state after the last record.
func (s *State) Position() Position {
	p := Position{Ended: s.ended}
	for _, t := range s.plan.headers {
		if h := s.heads[t.number]; h.there {
			if p.Heads == nil {
				p.Heads = map[string]Head{}
			}
			p.Heads[t.Name] = Head{Line: h.line, Raw: h.raw}
		}
	}
	for i, t := range s.plan.trailers {
		if c := s.scopes[i]; c.open {
			if p.Trailers == nil {
				p.Trailers = map[string]Scope{}
			}
			p.Trailers[t.Name] = Scope{Count: c.count, Sums: slices.Clone(c.sums), Unread: slices.Clone(c.unread)}
		}
	}
	return p
}

var errOthers = errors.New("cannot restart: the record types, or the sums of the trailer, were different when the file was started")

// Restore makes the state of a position; read makes a header's record from Raw's result.
func (p *Plan) Restore(at Position, read func(t *Type, raw []byte) (Record, error)) (*State, error) {
	s := p.Start()
	s.ended = at.Ended
	for name, h := range at.Heads {
		t, err := p.named(name, Header)
		if err != nil {
			return nil, err
		}
		var r Record
		if len(t.Fields) > 0 {
			if r, err = read(t, h.Raw); err != nil {
				return nil, err
			}
		}
		if err := s.SetHead(t, r, h.Line); err != nil {
			return nil, fmt.Errorf("cannot restart: the header %s of line %d: %w", name, h.Line, err)
		}
	}
	for i := range s.scopes {
		s.scopes[i] = scope{}
	}
	for name, c := range at.Trailers {
		t, err := p.named(name, Trailer)
		if err != nil {
			return nil, err
		}
		if len(c.Sums) != len(t.Sums) || len(c.Unread) != len(t.Sums) {
			return nil, errOthers
		}
		s.scopes[slices.Index(p.trailers, t)] = scope{open: true, count: c.Count, sums: append([]row.Decimal{}, c.Sums...), unread: append([]int64{}, c.Unread...)}
	}
	if i := slices.IndexFunc(p.trailers, func(t *Type) bool { return t.Of == nil }); i >= 0 && !s.scopes[i].open && !s.ended {
		return nil, errOthers
	}
	return s, nil
}

func (p *Plan) named(name string, role Role) (*Type, error) {
	i := slices.IndexFunc(p.Types, func(t *Type) bool { return t.Name == name && t.Role == role })
	if i < 0 {
		return nil, errOthers
	}
	return p.Types[i], nil
}

// RawHeads returns the headers above a record as NAME=TEXT, to be stored with an unreadable record.
func (s *State) RawHeads(textOf func(raw []byte) string) []string {
	var heads []string
	for _, t := range s.plan.headers {
		if h := s.heads[t.number]; h.there && len(t.Fields) > 0 {
			heads = append(heads, t.Name+"="+textOf(h.raw))
		}
	}
	return heads
}

// RestoreRawHeads is the inverse, for one record that is read alone.
func (p *Plan) RestoreRawHeads(heads []string, read func(t *Type, text string) (Record, error)) (*State, error) {
	s := p.Start()
	s.Alone()
	for _, h := range heads {
		for _, t := range p.headers {
			text, is := strings.CutPrefix(h, t.Name+"=")
			if !is {
				continue
			}
			r, err := read(t, text)
			if err != nil {
				return nil, err
			}
			if err := s.SetHead(t, r, 0); err != nil {
				return nil, fmt.Errorf("the header %s of the record: %w", t.Name, err)
			}
			break
		}
	}
	return s, nil
}
