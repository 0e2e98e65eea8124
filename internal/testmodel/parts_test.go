package testmodel

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/surfin-batch/surfin/internal/chunk"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type source struct {
	w    *world
	next int
	last int // place of the item that was read last
}

func (r *source) Read(context.Context) (pair, error) {
	if r.next >= len(r.w.s.Values) {
		return pair{}, io.EOF
	}
	it, err := r.w.read(r.next)
	switch {
	case err == nil:
		r.last = r.next
		r.next++
	case r.w.s.Reading == consumes:
		r.next++
		return it, item.Consumed(item.Meta{Line: int64(r.next)}, raise(err))
	}
	return it, raise(err)
}

func (r *source) Rereads() {}

func (r *source) Meta() item.Meta { return item.Meta{Line: int64(r.last + 1)} }

// stepping is a source that can step over an item.
type stepping struct{ *source }

func (r stepping) SkipItem(context.Context) error {
	r.w.note("s%d", r.next)
	r.next++
	return nil
}

// positioned is a source with a position.
type positioned struct{ *source }

func (r positioned) Open(_ context.Context, at item.Position) error {
	if at == nil {
		return nil
	}
	return json.Unmarshal(at, &r.next)
}

func (r positioned) Position() (item.Position, error) { return json.Marshal(r.next) }

// marked is a source that can be opened after any item.
type marked struct{ positioned }

func (r marked) Mark() any { return r.last + 1 }

func (r marked) PositionAt(mark any) (item.Position, error) { return json.Marshal(mark) }

type (
	seeker interface {
		item.Opener
		item.Positioner
	}
	marker interface {
		seeker
		item.Marker
	}
)

func reader(w *world) item.Reader {
	r := &source{w: w}
	at := positioned{r}
	if w.s.Reading != stepsOver {
		switch w.s.Restart {
		case seeks:
			return item.EraseReader[pair](at)
		case marks:
			return item.EraseReader[pair](marked{at})
		default:
			return item.EraseReader[pair](r)
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
		return item.EraseReader[pair](seeking{stepping{r}, at})
	case marks:
		return item.EraseReader[pair](marking{stepping{r}, marked{at}})
	default:
		return item.EraseReader[pair](stepping{r})
	}
}

type single struct{}

func (single) BeforeRead(context.Context) error                          { return nil }
func (single) AfterRead(context.Context, any) error                      { return nil }
func (single) OnReadError(context.Context, error) error                  { return nil }
func (single) BeforeProcess(context.Context, any) error                  { return nil }
func (single) AfterProcess(context.Context, any, any) error              { return nil }
func (single) OnProcessError(context.Context, any, error) error          { return nil }
func (single) OnWriteError(context.Context, error, item.Items) error     { return nil }
func (single) BeforeRetry(context.Context, core.Phase, int, error) error { return nil }

type processor struct {
	w    *world
	pure bool
}

func (p processor) IndependentOf(string) bool { return p.pure }

func (p processor) Process(_ context.Context, it pair) (pair, error) {
	filtered, err := p.w.process(it)
	if filtered {
		err = item.ErrFilter
	}
	return it, raise(err)
}

// target inserts into the table, in a transaction that must exist. The items before a failing one are
// inserted: they must be rolled back.
type target struct {
	w      *world
	db     tx.Database
	insert string
	run    int
}

func (t *target) Write(ctx context.Context, items []pair) error {
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

type skips struct{ w *world }

func (l skips) OnSkipRead(context.Context, error) error { l.w.note("S read"); return nil }

func (l skips) OnSkipProcess(_ context.Context, it any, _ error) error {
	l.w.note("S process %d", it.(pair).Place)
	return nil
}

func (l skips) OnSkipWrite(_ context.Context, it any, _ error) error {
	l.w.note("S write %d", it.(pair).Place)
	return nil
}

func config(w *world, db tx.Database, t *target, pure bool) chunk.Config {
	s := w.s
	c := chunk.Config{
		Name: "step", Size: s.Size, MaxSkippedReads: s.MaxSkips, Database: db, Retry: chunk.Retry{Limit: s.RetryLimit}, Isolate: s.Isolate,
		KeepOutputs: s.Keep, ProcessInTransaction: s.InTx, Concurrency: s.Workers,
		Assemble: func(context.Context, *model.StepRun) (chunk.Parts, error) {
			listeners := []any{skips{w}}
			if s.Listen {
				listeners = append(listeners, single{})
			}
			parts := chunk.Parts{Reader: reader(w), Writers: []item.Writer{item.EraseWriter[pair](t)}, Listeners: listeners}
			if !s.Plain {
				parts.Processors = []item.Processor{item.EraseProcessor[pair, pair](processor{w, pure})}
			}
			return parts, nil
		},
	}
	if s.Ahead {
		c.ReadAhead = chunk.ReadAheadOn
	}
	if s.SkipLimit >= 0 {
		c.Skip = chunk.LimitSkip{Limit: int64(s.SkipLimit)}
	}
	return c
}
