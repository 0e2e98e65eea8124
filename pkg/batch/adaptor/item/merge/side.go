package merge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// A restart reads the rows after a stored position again.
const anchorEvery = 500

type side struct {
	name   string
	reader item.Reader
	items  item.Items
	key    []int

	anchor item.Position
	since  int64
	count  int64
	known  int64 // outcomes with errors reported before a restart

	row    []row.Value // nil means that the next one is to be read
	meta   item.Meta
	at     rowPosition
	before []row.Value
	ended  bool
}

// Drop outcomes after a position of the reader
type rowPosition struct {
	Anchor json.RawMessage `json:"anchor,omitempty"`
	Drop   int64           `json:"drop,omitempty"`
	count  int64
}

func (s *side) open(ctx context.Context, at rowPosition, known int64) error {
	var from item.Position
	if len(at.Anchor) > 0 && string(at.Anchor) != "null" {
		from = item.Position(at.Anchor)
	}
	s.anchor, s.since, s.count, s.known, s.row, s.before, s.ended = from, 0, 0, 0, nil, nil, false
	if o, ok := s.reader.Component().(item.Opener); ok {
		if err := o.Open(ctx, from); err != nil {
			return err
		}
	}
	if p, ok := s.reader.Component().(item.Positioner); ok { // it detects a source that has changed since
		now, err := p.Position()
		if err != nil {
			return err
		}
		s.anchor = slices.Clone(now)
	}
	for range at.Drop {
		if _, err := s.outcome(ctx); err != nil && !item.IsConsumed(err) {
			if errors.Is(err, io.EOF) {
				err = errors.New("the data ends before it: the input has changed")
			}
			return fmt.Errorf("merge: %s: return to the current rows: %w", s.name, err)
		}
	}
	s.known = s.count + known
	return nil
}

func (s *side) outcome(ctx context.Context) ([]row.Value, error) {
	if s.since >= anchorEvery {
		if p, ok := s.reader.Component().(item.Positioner); ok {
			at, err := p.Position()
			if err != nil {
				return nil, err
			}
			s.anchor, s.since = slices.Clone(at), 0
		}
	}
	s.items.Reset()
	err := s.reader.Fill(ctx, s.items, 1)
	switch {
	case err == nil && s.items.Len() == 0:
		return nil, io.EOF
	case err != nil && !item.IsConsumed(err):
		return nil, err
	}
	s.since++
	s.count++
	if err != nil {
		return nil, err
	}
	return slices.Clone(s.items.At(0).(item.Row).Values()), nil
}

func (s *side) here() rowPosition {
	return rowPosition{Anchor: json.RawMessage(s.anchor), Drop: s.since, count: s.count}
}

// Errors that were reported before are skipped.
func (s *side) fill(ctx context.Context) error {
	for s.row == nil && !s.ended {
		at, first := s.here(), s.count
		values, err := s.outcome(ctx)
		switch {
		case errors.Is(err, io.EOF):
			s.ended, s.at = true, at
			return nil
		case item.IsConsumed(err) && first < s.known:
			continue
		case err != nil:
			return err
		}
		s.meta = s.items.Meta(0)
		if s.before != nil && s.compare(values, s.before) < 0 {
			return exception.Fatal("merge", fmt.Errorf("%s: %s: %s comes after %s: the rows are not sorted by the key", s.name, s.meta, s.shown(values), s.shown(s.before)))
		}
		s.row, s.at, s.before = values, at, values
	}
	return nil
}

func (s *side) drop() { s.row = nil }

func (s *side) compare(a, b []row.Value) int {
	for _, i := range s.key {
		if c := row.Compare(a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}

func (s *side) shown(values []row.Value) (text string) {
	for n, i := range s.key {
		if n > 0 {
			text += ", "
		}
		text += sqlvalue.Quote(values[i])
	}
	return text
}

func (s *side) close(ctx context.Context) error {
	if c, ok := s.reader.Component().(item.Closer); ok {
		return c.Close(ctx)
	}
	return nil
}

func (s *side) reported(from rowPosition) int64 { return max(s.count, s.known) - from.count }
