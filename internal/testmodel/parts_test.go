package testmodel

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// source reads the items of a world.
type source struct {
	w    *world
	next int
	last int // place of the item that was read last
}

func (r *source) Read(context.Context) (item, error) {
	if r.next >= len(r.w.s.Values) {
		return item{}, io.EOF
	}
	it, err := r.w.read(r.next)
	switch {
	case err == nil:
		r.last = r.next
		r.next++
	case r.w.s.Reading == consumes:
		r.next++
		return it, core.Consumed(core.Meta{Line: int64(r.next)}, raise(err))
	}
	return it, raise(err)
}

// Meta is where the last item came from.
func (r *source) Meta() core.Meta { return core.Meta{Line: int64(r.last + 1)} }

// stepping is a source that can step over an item.
type stepping struct{ *source }

func (r stepping) SkipItem(context.Context) error {
	r.w.note("s%d", r.next)
	r.next++
	return nil
}

// positioned is what a source with a position has besides.
type positioned struct{ *source }

func (r positioned) Open(_ context.Context, at core.Position) error {
	if at == nil {
		return nil
	}
	return json.Unmarshal(at, &r.next)
}

func (r positioned) Position() (core.Position, error) { return json.Marshal(r.next) }

// marked is a source that can be opened behind any item.
type marked struct{ positioned }

func (r marked) Mark() any { return r.last + 1 }

func (r marked) PositionAt(mark any) (core.Position, error) { return json.Marshal(mark) }

type (
	seeker interface {
		core.Opener
		core.Positioner
	}
	marker interface {
		seeker
		core.Marker
	}
)

// reader is the reader that the scenario asks for.
func reader(w *world) core.Reader {
	r := &source{w: w}
	at := positioned{r}
	if w.s.Reading != stepsOver {
		switch w.s.Restart {
		case seeks:
			return core.EraseReader[item](at)
		case marks:
			return core.EraseReader[item](marked{at})
		default:
			return core.EraseReader[item](r)
		}
	}
	type (
		seeking struct {
			stepping
			seeker
		}
		marking struct {
			stepping
			marker
		}
	)
	switch w.s.Restart {
	case seeks:
		return core.EraseReader[item](seeking{stepping{r}, at})
	case marks:
		return core.EraseReader[item](marking{stepping{r}, marked{at}})
	default:
		return core.EraseReader[item](stepping{r})
	}
}

// single listens to single items, and says nothing.
type single struct{}

func (single) BeforeRead(context.Context) error                          { return nil }
func (single) AfterRead(context.Context, any) error                      { return nil }
func (single) OnReadError(context.Context, error) error                  { return nil }
func (single) BeforeProcess(context.Context, any) error                  { return nil }
func (single) AfterProcess(context.Context, any, any) error              { return nil }
func (single) OnProcessError(context.Context, any, error) error          { return nil }
func (single) OnWriteError(context.Context, error, core.Items) error     { return nil }
func (single) BeforeRetry(context.Context, core.Phase, int, error) error { return nil }

// processor filters.
type processor struct{ w *world }

func (p processor) Process(_ context.Context, it item) (item, error) {
	filtered, err := p.w.process(it)
	if filtered {
		err = core.ErrFilter
	}
	return it, raise(err)
}

// target inserts into the table, in the transaction that must be there. The items
// before a failing one are inserted: they have to be rolled back.
type target struct {
	w      *world
	db     tx.Database
	insert string
	run    int
}

func (t *target) Write(ctx context.Context, items []item) error {
	current, ok := tx.From(ctx, t.db.Name())
	if !ok {
		return fmt.Errorf("the writer was called without a transaction")
	}
	reached, err := t.w.write(items)
	for _, it := range items[:reached] {
		if _, err := current.Conn().ExecContext(ctx, t.insert, t.run, it.Place, it.Value); err != nil {
			return err
		}
	}
	return raise(err)
}

// skips traces the calls of the skip listeners.
type skips struct{ w *world }

func (l skips) OnSkipRead(context.Context, error) error { l.w.note("S read"); return nil }

func (l skips) OnSkipProcess(_ context.Context, it any, _ error) error {
	l.w.note("S process %d", it.(item).Place)
	return nil
}

func (l skips) OnSkipWrite(_ context.Context, it any, _ error) error {
	l.w.note("S write %d", it.(item).Place)
	return nil
}

// config is the step that the scenario describes.
func config(w *world, db tx.Database, t *target) chunk.Config {
	s := w.s
	c := chunk.Config{
		Name: "step", Size: s.Size, MaxSkippedReads: s.MaxSkips, Database: db, Retry: chunk.Retry{Limit: s.RetryLimit}, Isolate: s.Isolate,
		KeepOutputs: s.Keep, ProcessInTransaction: s.InTx, Concurrency: s.Workers,
		Assemble: func(context.Context, *core.StepRun) (chunk.Parts, error) {
			listeners := []any{skips{w}}
			if s.Listen {
				listeners = append(listeners, single{})
			}
			parts := chunk.Parts{Reader: reader(w), Writers: []core.Writer{core.EraseWriter[item](t)}, Listeners: listeners}
			if !s.Plain {
				parts.Processors = []core.Processor{core.EraseProcessor[item, item](processor{w})}
			}
			return parts, nil
		},
	}
	if s.SkipLimit >= 0 {
		c.Skip = chunk.LimitSkip{Limit: int64(s.SkipLimit)}
	}
	return c
}
