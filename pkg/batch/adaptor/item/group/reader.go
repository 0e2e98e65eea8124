package group

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/itemextra"
	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// reader keeps the current group, and no rows.
type reader struct {
	*plan
	source *source
	frame  *expression.Frame
	hand   *rowGroup
	meta   item.Meta
	// the outcome of the source at which the current group began
	start rowPosition
	// outcomes with errors that were reported before a restart
	silent int64
	// why nothing can be read any more
	broken error
}

type rowGroup struct {
	key    []row.Value
	meta   item.Meta
	fields []accumulator
	text   int // of the texts collected by join and list
	bad    error
}

// newReader returns a reader of groups.
func newReader(ctx context.Context, cfg config, b registry.BuildContext) (item.Reader, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	p, err := compile(&cfg)
	if err != nil {
		return nil, err
	}
	if b.Out != nil && b.Out.Schema().SameShape(p.schema) { // the next stage compares schemas by identity first
		p.schema = b.Out.Schema()
	}
	r := &reader{plan: p}
	if r.source, err = newSource(ctx, cfg, b); err != nil {
		return nil, err
	}
	if r.frame, err = expression.NewFrame(r.source.out); err != nil {
		return nil, err
	}
	if r.source.positioner == nil { // the step counts the groups
		return item.EraseReader[item.Row](r), nil
	}
	return item.EraseReader[item.Row](&positioned{r}), nil
}

type positioned struct{ *reader }

// groupPosition is the start of the current group. Drop outcomes after Reader's position belong to earlier
// groups; errors among Feed outcomes were reported.
type groupPosition struct {
	Reader json.RawMessage `json:"reader,omitempty"`
	Drop   int64           `json:"drop,omitempty"`
	Feed   int64           `json:"feed,omitempty"`
}

// Position implements item.Positioner.
func (r *positioned) Position() (item.Position, error) {
	start := r.start
	if r.hand == nil && r.silent == 0 {
		start = r.source.here()
	}
	at, err := r.source.position(start)
	if err != nil {
		return nil, err
	}
	return json.Marshal(groupPosition{Reader: at.JSON(), Drop: start.drop, Feed: r.source.count - start.count + r.silent})
}

func (r *reader) AcceptChanges() {
	if a, ok := r.source.reader.Component().(itemextra.ChangesAccepter); ok {
		a.AcceptChanges()
	}
}

func (r *reader) Meta() item.Meta { return r.meta }

func (r *reader) RawText() item.RawText { return r.source.raw() }

// Open continues at the start of the group that was current.
func (r *reader) Open(ctx context.Context, at item.Position) error {
	var pos groupPosition
	var from item.Position
	if at != nil {
		if err := json.Unmarshal(at, &pos); err != nil {
			return fmt.Errorf("group: cannot restart: the stored position is unreadable: %w", err)
		}
		if from = item.Position(pos.Reader); string(from) == "null" {
			from = nil
		}
	}
	if err := r.source.open(ctx, from); err != nil {
		return err
	}
	for range pos.Drop {
		if _, err := r.source.next(ctx); err != nil && !item.IsConsumed(err) {
			return fmt.Errorf("group: return to the current group: %w", notEnd(err))
		}
	}
	r.hand, r.silent, r.start = nil, pos.Feed, r.source.here()
	return nil
}

func notEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the data ends before it: the input has changed")
	}
	return err
}

// It depends on the reader of the rows, and their processors.
func (r *reader) IndependentOf(database string) bool {
	return item.IsIndependent(r.source.reader.Component(), database) &&
		!slices.ContainsFunc(r.source.processors, func(p item.Processor) bool { return !item.IsIndependent(p.Component(), database) })
}

func (r *reader) Close(ctx context.Context) error { return r.source.close(ctx) }

func (r *reader) Rereads() {}

func (r *reader) Read(ctx context.Context) (item.Row, error) {
	for {
		if r.broken != nil {
			return item.Row{}, r.broken
		}
		if r.hand == nil && r.silent == 0 {
			r.start = r.source.here()
		}
		before, counted := r.source.here(), r.source.count
		there, err := r.source.next(ctx)
		known := r.silent > 0 && r.source.count > counted
		if known {
			r.silent--
		}
		switch {
		case err == io.EOF && r.hand != nil: //nolint:errorlint // the end is io.EOF itself
			r.silent = 0
			return r.finish(nil, before)
		case err == io.EOF: //nolint:errorlint // as above
			r.silent = 0
			return item.Row{}, err
		case item.IsConsumed(err) && known:
			continue
		case err != nil:
			return item.Row{}, err
		case !there:
			continue
		}
		done, err := r.take(before)
		if item.IsConsumed(err) && known {
			continue
		}
		if err != nil || done != nil {
			return r.answer(done, err)
		}
	}
}

func (r *reader) answer(done *rowGroup, err error) (item.Row, error) {
	if err != nil {
		return item.Row{}, err
	}
	r.meta = done.meta
	if done.bad != nil {
		return item.Row{}, item.Consumed(done.meta, exception.InvalidItem("group", exception.ClassInvalidItem, done.bad))
	}
	values := slices.Clone(done.key)
	for i := range done.fields {
		values = append(values, done.fields[i].result())
	}
	return row.New(r.schema, values), nil
}

func (r *reader) finish(next *rowGroup, start rowPosition) (item.Row, error) {
	done := r.hand
	r.hand, r.start = next, start
	return r.answer(done, nil)
}

// take returns the previous group if that is complete. before is the place of the row.
func (r *reader) take(before rowPosition) (done *rowGroup, err error) {
	key := make([]row.Value, len(r.key))
	for i, program := range r.key {
		if key[i], err = program.Eval(r.frame); err != nil {
			return nil, item.Consumed(r.source.out.(item.AnyCell).Origin(), err)
		}
	}
	begins := r.hand == nil || !slices.EqualFunc(key, r.hand.key, row.Value.Equal)
	if r.starts != nil {
		v, err := r.starts.Eval(r.frame)
		if err != nil {
			return nil, item.Consumed(r.source.out.(item.AnyCell).Origin(), err)
		}
		begins = begins || v.Bool()
	}
	if begins {
		done = r.hand
		if done != nil && r.sorted && slices.CompareFunc(key, done.key, row.Compare) < 0 {
			r.broken = exception.Fatal("group", fmt.Errorf("%s: %s comes after %s: the rows are not sorted by the key", r.source.out.(item.AnyCell).Origin(), shown(key), shown(done.key)))
			return nil, r.broken
		}
		if r.start, err = r.source.fixed(before); err != nil {
			return nil, fmt.Errorf("position of the rows: %w", err)
		}
		r.hand = r.newGroup(key)
	}
	r.hand.add(r.frame, r.most)
	return done, nil
}

func shown(key []row.Value) string {
	text := ""
	for i, v := range key {
		if i > 0 {
			text += ", "
		}
		text += sqlvalue.Quote(v)
	}
	return text
}

func (r *reader) newGroup(key []row.Value) *rowGroup {
	g := &rowGroup{key: key, meta: r.source.out.(item.AnyCell).Origin(), fields: make([]accumulator, len(r.fields))}
	for i := range r.fields {
		g.fields[i].aggregate = &r.fields[i]
	}
	return g
}

func (g *rowGroup) add(f *expression.Frame, most int) {
	for i := range g.fields {
		if g.bad != nil {
			return
		}
		grown, err := g.fields[i].add(f)
		if g.text += grown; err == nil && g.text > most {
			err = fmt.Errorf("%s: join and list have collected more than max_group, %d bytes", g.fields[i].field.Name, most)
		}
		if err != nil {
			g.bad, g.fields = err, nil
		}
	}
}
