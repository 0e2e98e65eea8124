package step

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/panics"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// listen makes the step's listeners and notifies them of its start (rule C16). All of them will be
// notified of the end, also if another one fails here.
func (a *attempt) listen(ctx context.Context) error {
	a.run.JoinListeners = a.join
	listened, ok := a.step.(model.Listened)
	if !ok {
		return nil
	}
	err := panics.Guard(func() (err error) {
		a.listeners, err = listened.StepListeners(ctx, a.run)
		return err
	})
	a.listeners = once(a.listeners)
	if err != nil {
		return fmt.Errorf("make the listeners: %w", err)
	}
	a.run.Listeners = slices.Clone(a.listeners)
	var before []core.BeforeStep
	for i, l := range a.listeners {
		if l == nil || !model.Listens(reflect.TypeOf(l)) {
			return fmt.Errorf("listener %d is a %T, which implements no interface of a listener", i+1, l)
		}
		if b, ok := l.(core.BeforeStep); ok {
			before = append(before, b)
		}
		if after, ok := l.(core.AfterStep); ok {
			a.pendingAfterStep = append(a.pendingAfterStep, after)
		}
	}
	a.listening = len(a.pendingAfterStep)
	return a.notifyStart(ctx, before)
}

// join adds the components of the step that listen to steps (rule C16b): they are notified of the start
// now, and of the end before the listeners. A retry of the step has components of its own, which
// replace the earlier ones.
func (a *attempt) join(ctx context.Context, components []any) error {
	a.pendingAfterStep = a.pendingAfterStep[:min(len(a.pendingAfterStep), a.listening)]
	listeners := len(a.listeners)
	var before []core.BeforeStep
	for _, c := range once(slices.Concat(a.listeners, components))[listeners:] {
		if b, ok := c.(core.BeforeStep); ok {
			before = append(before, b)
		}
		if after, ok := c.(core.AfterStep); ok {
			a.pendingAfterStep = append(a.pendingAfterStep, after)
		}
	}
	return a.notifyStart(ctx, before)
}

func (a *attempt) notifyStart(ctx context.Context, listeners []core.BeforeStep) error {
	if a.run.Data.Resumed { // they were notified of the start
		return nil
	}
	for _, b := range listeners {
		seen := a.seen(outcome{status: core.StatusStarted})
		if err := panics.Guard(func() error { return b.BeforeStep(ctx, seen) }); err != nil {
			return fmt.Errorf("listener before_step: %w", err)
		}
		a.keep(seen)
	}
	if len(listeners) > 0 && a.run.Stopping() { // it arrived while they were called (rule C16s)
		return core.ErrStopped
	}
	return nil
}

// once removes duplicates.
func once(list []any) []any {
	seen := map[any]bool{}
	return slices.DeleteFunc(slices.Clone(list), func(l any) bool {
		if l == nil || !reflect.TypeOf(l).Comparable() {
			return false
		}
		twice := seen[l]
		seen[l] = true
		return twice
	})
}

// notify calls the listeners at the end, the last one first, until one fails. Each is called once: the
// next notify calls the remaining ones. It returns their exit code.
func (a *attempt) notify(ctx context.Context, out outcome) (exit string, err error) {
	for len(a.pendingAfterStep) > 0 {
		last := len(a.pendingAfterStep) - 1
		listener := a.pendingAfterStep[last]
		a.pendingAfterStep = a.pendingAfterStep[:last]
		seen := a.seen(out)
		if err := panics.Guard(func() error { return listener.AfterStep(ctx, seen) }); err != nil {
			return out.exit, fmt.Errorf("listener after_step: %w", err)
		}
		a.keep(seen)
		if seen.ExitCode != "" {
			out.exit = seen.ExitCode
		}
	}
	return out.exit, nil
}

// seen returns the record for listeners; keep takes over the changes that they may make.
func (a *attempt) seen(out outcome) *core.StepExecution {
	if a.run.Step.Context == nil {
		a.run.Step.Context = core.NewExecutionContext()
	}
	seen := *a.run.Step
	seen.Status, seen.ExitCode, seen.Error = out.status, out.exit, out.message
	if out.status.IsOver() {
		seen.EndedAt = a.now()
	}
	return &seen
}

func (a *attempt) keep(seen *core.StepExecution) {
	if seen.Context != nil {
		a.run.Step.Context = seen.Context
	}
}

// close closes the listeners, the last one first.
func (a *attempt) close(ctx context.Context) error {
	listeners := a.listeners
	a.listeners = nil
	var errs []error
	for _, l := range slices.Backward(listeners) {
		if closer, ok := l.(item.Closer); ok {
			if err := panics.Guard(func() error { return closer.Close(context.WithoutCancel(ctx)) }); err != nil {
				errs = append(errs, fmt.Errorf("close listener: %w", err))
			}
		}
	}
	return errors.Join(errs...)
}
