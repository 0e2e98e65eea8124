package group

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// source returns the rows after their processors.
type source struct {
	reader     item.Reader
	positioner item.Positioner // nil: the reader has no positions
	marker     item.Marker
	processors []item.Processor

	items   item.Items
	in, out any // cells before and after the processors
	moves   []item.Advance
	opened  []any
	// the current row is to be processed again
	pending bool
	failed  bool

	count  int64
	anchor anchor
	// of the last row, or nil; marked is the count after it
	mark   any
	marked int64
}

// making a position costs something
const anchorEvery = 64

type anchor struct {
	at    item.Position
	count int64
}

// drop outcomes after a position of the reader, the one of mark unless mark is nil
type rowPosition struct {
	count, drop int64
	at          item.Position
	mark        any
}

func (s *source) position(p rowPosition) (item.Position, error) {
	if p.mark == nil {
		return p.at, nil
	}
	return s.marker.PositionAt(p.mark)
}

// A mark is valid only for a while.
func (s *source) fixed(p rowPosition) (rowPosition, error) {
	at, err := s.position(p)
	p.at, p.mark = at, nil
	return p, err
}

func (s *source) here() rowPosition {
	if s.mark != nil {
		return rowPosition{count: s.count, drop: s.count - s.marked, mark: s.mark}
	}
	return rowPosition{count: s.count, drop: s.count - s.anchor.count, at: s.anchor.at}
}

func newSource(ctx context.Context, cfg config, b registry.BuildContext) (*source, error) {
	s := &source{}
	var rows item.Type
	var err error
	if s.reader, rows, err = registry.MakeNested[item.Reader](ctx, cfg.Reader, b, nil); err != nil {
		return nil, err
	}
	s.positioner, _ = s.reader.Component().(item.Positioner)
	s.marker, _ = s.reader.Component().(item.Marker)
	s.items, s.in = s.reader.NewItems(1), rows.NewCell()
	s.out = s.in
	for _, nested := range cfg.Processor {
		var p item.Processor
		if p, rows, err = registry.MakeNested[item.Processor](ctx, nested, b, rows); err != nil {
			return nil, err
		}
		out, move, err := p.Chain(s.out)
		if err != nil {
			return nil, err
		}
		s.processors, s.out, s.moves = append(s.processors, p), out, append(s.moves, move)
	}
	return s, nil
}

func (s *source) open(ctx context.Context, at item.Position) error {
	components := []any{s.reader.Component()}
	for _, p := range s.processors {
		components = append(components, p.Component())
	}
	for i, c := range components {
		s.opened = append(s.opened, c)
		if opener, ok := c.(item.Opener); ok {
			var from item.Position
			if i == 0 {
				from = at
			}
			if err := opener.Open(ctx, from); err != nil {
				return err
			}
		}
	}
	if s.positioner != nil { // it detects a source that has changed since
		var err error
		if at, err = s.positioner.Position(); err != nil {
			return fmt.Errorf("position of the rows: %w", err)
		}
	}
	s.count, s.pending, s.mark, s.anchor = 0, false, nil, anchor{at: at}
	return nil
}

func (s *source) close(ctx context.Context) error {
	var errs []error
	for i := len(s.opened) - 1; i >= 0; i-- {
		if closer, ok := s.opened[i].(item.Closer); ok {
			errs = append(errs, closer.Close(ctx))
		}
	}
	s.opened = nil
	return errors.Join(errs...)
}

// there is false for a filtered row. An error that does not belong to the row has consumed nothing.
func (s *source) next(ctx context.Context) (there bool, err error) {
	if !s.pending {
		if err := s.read(ctx); err != nil {
			return false, err
		}
	}
	for _, move := range s.moves {
		if err = move(ctx); err != nil {
			break
		}
	}
	meta := s.items.Meta(0)
	switch {
	case err == nil:
	case errors.Is(err, item.ErrFilter):
		s.done()
		return false, nil
	case exception.IsSkippable(err): // it stays wrong however often it is processed
		err = item.Consumed(meta, fmt.Errorf("process: %w", err))
	default:
		return false, err
	}
	s.done()
	return err == nil, err
}

func (s *source) done() {
	s.pending = false
	s.count++
	if s.marker != nil {
		s.mark, s.marked = s.items.Mark(0), s.count
	}
}

func (s *source) read(ctx context.Context) error {
	if s.positioner != nil && s.marker == nil && s.count-s.anchor.count >= anchorEvery {
		at, err := s.positioner.Position()
		if err != nil {
			return fmt.Errorf("position of the rows: %w", err)
		}
		s.anchor = anchor{at, s.count}
	}
	s.items.Reset()
	err := s.reader.Fill(ctx, s.items, 1)
	if s.failed = item.IsConsumed(err); s.failed {
		s.count++
	}
	if err != nil {
		return err
	}
	s.items.Load(0, s.in)
	s.pending = true
	return nil
}

func (s *source) raw() item.RawText {
	r, ok := s.reader.Component().(item.RawReader)
	if !ok || !s.failed {
		return item.RawText{}
	}
	return r.RawText()
}
