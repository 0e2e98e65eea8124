package route

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/itemextra"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type writer struct {
	routes    []*route
	all       bool
	database  string
	context   func() *core.ExecutionContext // nil means that the numbers are not read
	cell      any
	frame     *expression.Frame
	opened    int
	countsErr error
}

type route struct {
	name      string
	program   *expression.ItemProgram // nil means the items that no other route receives
	writer    item.Writer
	component any
	items     item.Items
	count     int64
	committed int64
}

// newWriter returns a writer of items of type b.In.
func newWriter(ctx context.Context, cfg config, b registry.BuildContext) (item.Writer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	programs, err := compile(&cfg, b.In)
	if err != nil {
		return nil, err
	}
	w := &writer{all: cfg.Match == matchAll, database: b.StepDatabase, context: b.StepContext, cell: b.In.NewCell()}
	if w.frame, err = expression.NewFrame(w.cell); err != nil {
		return nil, err
	}
	for i, program := range programs {
		made, _, err := registry.MakeNested[item.Writer](ctx, cfg.To[i].Writer, b, b.In)
		if err != nil {
			return nil, fmt.Errorf("route %s: %w", cfg.name(i), err)
		}
		w.routes = append(w.routes, &route{name: cfg.name(i), program: program, writer: made, component: made.Component(), items: b.In.NewItems(0)})
	}
	return w, nil
}

func (w *writer) Component() any { return w }

type position struct {
	Writers []json.RawMessage `json:"writers"`
	Counts  []int64           `json:"counts"`
}

func (w *writer) parse(at item.Position) (position, error) {
	pos := position{Writers: make([]json.RawMessage, len(w.routes)), Counts: make([]int64, len(w.routes))}
	if at == nil {
		return pos, nil
	}
	if err := json.Unmarshal(at, &pos); err != nil {
		return pos, fmt.Errorf("route: cannot restart: the stored position is unreadable: %w", err)
	}
	if len(pos.Writers) != len(w.routes) || len(pos.Counts) != len(w.routes) {
		return pos, fmt.Errorf("route: cannot restart: the stored position has %d writers, but the step has %d", len(pos.Writers), len(w.routes))
	}
	return pos, nil
}

func (p position) of(i int) item.Position {
	if len(p.Writers[i]) == 0 || string(p.Writers[i]) == "null" {
		return nil
	}
	return item.Position(p.Writers[i])
}

func (w *writer) Open(ctx context.Context, at item.Position) error {
	pos, err := w.parse(at)
	if err != nil {
		return err
	}
	for i, way := range w.routes {
		way.count, way.committed, w.opened = pos.Counts[i], pos.Counts[i], i+1
		if opener, ok := way.component.(item.Opener); ok {
			if err := opener.Open(ctx, pos.of(i)); err != nil {
				return way.failed(err)
			}
		}
	}
	return nil
}

func (y *route) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("route %s: %w", y.name, err)
}

// Close closes the last writer first, and leaves the committed numbers.
func (w *writer) Close(ctx context.Context) error {
	var errs []error
	for i := w.opened - 1; i >= 0; i-- {
		if closer, ok := w.routes[i].component.(item.Closer); ok {
			errs = append(errs, w.routes[i].failed(closer.Close(ctx)))
		}
	}
	if w.opened > 0 {
		errs = append(errs, w.countsErr, w.storeCounts(func(y *route) int64 { return y.committed }))
	}
	w.opened = 0
	return errors.Join(errs...)
}

func (w *writer) storeCounts(number func(*route) int64) error {
	if w.context == nil {
		return nil
	}
	for _, way := range w.routes {
		if err := w.context().Put("route."+way.name, number(way)); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) Write(ctx context.Context, items item.Items) error {
	for _, way := range w.routes {
		way.items.Reset()
	}
	for i := range items.Len() {
		items.Load(i, w.cell)
		if err := w.hand(items.Meta(i)); err != nil {
			return err
		}
	}
	for _, way := range w.routes {
		if way.items.Len() == 0 {
			continue
		}
		if err := way.writer.Write(ctx, way.items); err != nil {
			return way.failed(err)
		}
		way.count += int64(way.items.Len())
	}
	return nil
}

func (w *writer) hand(meta item.Meta) error {
	taken := false
	for _, way := range w.routes {
		switch {
		case way.program == nil && taken:
			continue
		case way.program != nil:
			holds, err := way.program.Eval(w.frame)
			if err != nil {
				return way.failed(err)
			}
			if !holds.Bool() {
				continue
			}
		}
		way.items.Store(w.cell)
		if taken = true; !w.all {
			break
		}
	}
	if taken {
		return nil
	}
	return exception.InvalidItem("route", exception.ClassValidate, fmt.Errorf("%s: no writer accepts the item: add a last one without a condition, or filter it before", meta))
}

// The numbers are published with the commit.
func (w *writer) Prepare(ctx context.Context) error {
	for _, way := range w.routes {
		if preparer, ok := way.component.(item.Preparer); ok {
			if err := preparer.Prepare(ctx); err != nil {
				return way.failed(err)
			}
		}
	}
	if err := w.storeCounts(func(y *route) int64 { return y.count }); err != nil {
		return err
	}
	counts := make([]int64, len(w.routes))
	for i, way := range w.routes {
		counts[i] = way.count
	}
	tx.AtEnd(ctx, w.database, func(committed bool) {
		for i, way := range w.routes {
			if committed {
				way.committed = counts[i]
			}
		}
		if !committed { // the published numbers were rolled back
			w.countsErr = w.storeCounts(func(y *route) int64 { return y.committed })
		}
	})
	return nil
}

// Position implements item.Positioner.
func (w *writer) Position() (item.Position, error) {
	pos := position{}
	for _, way := range w.routes {
		var at item.Position
		if positioner, ok := way.component.(item.Positioner); ok {
			var err error
			if at, err = positioner.Position(); err != nil {
				return nil, way.failed(err)
			}
		}
		pos.Writers, pos.Counts = append(pos.Writers, at.JSON()), append(pos.Counts, way.count)
	}
	return json.Marshal(pos)
}

func (w *writer) Rewind(ctx context.Context, at item.Position) error {
	pos, err := w.parse(at)
	if err != nil {
		return err
	}
	for i, way := range w.routes {
		way.count = pos.Counts[i]
		if rewinder, ok := way.component.(item.Rewinder); ok {
			if err := rewinder.Rewind(ctx, pos.of(i)); err != nil {
				return way.failed(err)
			}
		}
	}
	return nil
}

// for files and rows that only earlier positions need
func (w *writer) Release(ctx context.Context) error {
	for _, way := range w.routes {
		if releaser, ok := way.component.(item.Releaser); ok {
			if err := releaser.Release(ctx); err != nil {
				return way.failed(err)
			}
		}
	}
	return nil
}

func (w *writer) Publishes() bool {
	return slices.ContainsFunc(w.routes, func(way *route) bool { return itemextra.Publishes(way.component) })
}

func (w *writer) Stage(ctx context.Context) (bool, error) {
	any := false
	for _, way := range w.routes {
		staged, err := itemextra.Stage(ctx, way.component)
		if err != nil {
			return false, way.failed(err)
		}
		any = any || staged
	}
	return any, nil
}

func (w *writer) Finish(ctx context.Context) error {
	for _, way := range w.routes {
		if finisher, ok := way.component.(item.Finisher); ok {
			if err := finisher.Finish(ctx); err != nil {
				return way.failed(err)
			}
		}
	}
	return nil
}
