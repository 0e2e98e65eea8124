package core

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/surfin-batch/surfin/internal/panics"
)

// Observer observes a run: Observe is synchronous and must return quickly. A transaction's events are reported
// on commit (rule R7). If one panics, the others are notified (ObserverFailed).
type Observer interface {
	Observe(ctx context.Context, e Event)
}

// ObserverFunc is a function as an Observer.
type ObserverFunc func(ctx context.Context, e Event)

// Observe calls f.
func (f ObserverFunc) Observe(ctx context.Context, e Event) { f(ctx, e) }

// Scope adds to the context of the work that an event begins, such as a span.
type Scope interface {
	Observer
	// Enter is Observe for JobStarted and StepStarted, and returns the work's context.
	Enter(ctx context.Context, e Event) context.Context
}

// FiguresReader also reads the history.
type FiguresReader interface {
	Observer
	// ReadFigures is called once, before the first event; read works until the application closes, and uses at
	// most five statements.
	ReadFigures(read func(context.Context) (Figures, error))
}

// Enter notifies o, or nil, and returns the work's context.
func Enter(ctx context.Context, o Observer, e Event) context.Context {
	if s, ok := o.(Scope); ok {
		return s.Enter(ctx, e)
	}
	if o != nil {
		o.Observe(ctx, e)
	}
	return ctx
}

// Observers calls each in order: a Scope that does not panic.
func Observers(list ...Observer) Observer {
	all := make(observers, 0, len(list))
	for _, o := range list {
		switch o := o.(type) {
		case nil:
		case observers:
			all = append(all, o...)
		default:
			all = append(all, o)
		}
	}
	return all
}

type observers []Observer

func (all observers) Observe(ctx context.Context, e Event) {
	for i, o := range all {
		all.guard(ctx, i, e, func() { o.Observe(ctx, e) })
	}
}

func (all observers) Enter(ctx context.Context, e Event) context.Context {
	for i, o := range all {
		all.guard(ctx, i, e, func() {
			if entered := Enter(ctx, o, e); entered != nil {
				ctx = entered
			}
		})
	}
	return ctx
}

// ReadFigures implements FiguresReader.
func (all observers) ReadFigures(read func(context.Context) (Figures, error)) {
	for _, o := range all {
		if reader, ok := o.(FiguresReader); ok {
			reader.ReadFigures(read)
		}
	}
}

// A panic goes to the others, or to the process's log; one during the report does not.
func (all observers) guard(ctx context.Context, failed int, e Event, observe func()) {
	err := panics.GuardApart(func() error { observe(); return nil })
	if _, again := e.(ObserverFailed); err == nil || again {
		return
	}
	report := ObserverFailed{Observer: fmt.Sprintf("%T", all[failed]), Event: fmt.Sprintf("%T", e), Err: err}
	if len(all) == 1 {
		slog.ErrorContext(ctx, "an observer panicked", "observer", report.Observer, "event", report.Event, "error", err)
		return
	}
	for i, o := range all {
		if i != failed {
			all.guard(ctx, i, report, func() { o.Observe(ctx, report) })
		}
	}
}
