package job

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// after runs the steps and listeners after the flow, in every execution, whatever its outcome, and each
// element regardless of the one before. Their failures are recorded and change nothing; only failures
// of the records themselves are errors.
func (r *run) after(ctx context.Context, out core.Outcome, failure error) (core.Outcome, error) {
	if failure != nil {
		out = failed(failure)
	}
	if len(r.job.Finally.Elements) == 0 {
		return out, failure
	}
	return r.finally(ctx, out, failure, nil)
}

// finally runs those steps. parked is the step with which another process gave the execution back, or
// nil.
func (r *run) finally(ctx context.Context, out core.Outcome, failure error, parked *core.StepExecution) (core.Outcome, error) {
	if overdue := r.lease.Err(); overdue != nil { // nothing may begin
		err := fmt.Errorf("finally: not begun: %w", overdue)
		out.Message = joinText(out.Message, err.Error())
		return out, errors.Join(failure, err)
	}
	r.ended = &out
	w := &walk{run: r, port: &live{r}, flow: r.job.Finally, id: ports.FlowFinally}
	if parked != nil {
		w.last = r.progress.lastBefore(parked.Visit)
	}
	var errs []error
	for _, at := range r.job.Finally.Elements {
		e, ok := at.(*model.StepElement)
		if !ok {
			errs = append(errs, fmt.Errorf("finally: element %s: a %T cannot be run there", at.ElementName(), at))
			out.Message = joinText(out.Message, errs[len(errs)-1].Error())
			continue
		}
		err := w.visitFinally(ctx, e, parked)
		if errors.Is(err, core.ErrParked) {
			return out, core.ErrParked
		}
		if err != nil { // a step has no record that could show it
			errs = append(errs, fmt.Errorf("finally: %w", err))
			out.Message = joinText(out.Message, errs[len(errs)-1].Error())
		}
	}
	err := errors.Join(errs...)
	if errors.Is(err, core.ErrLostOwner) {
		return out, errors.Join(failure, err)
	}
	if err != nil && failure != nil {
		failure = errors.Join(failure, err)
	}
	return out, failure
}

// parkedFinally returns the step of `finally` with which the execution was given back, and the outcome
// of its flow; nil means that it was parked elsewhere.
func (r *run) parkedFinally() (*core.StepExecution, core.Outcome, error) {
	if !r.continues() {
		return nil, core.Outcome{}, nil
	}
	for i := range r.resumed.Steps {
		s := &r.resumed.Steps[i]
		if s.Visit.Flow != ports.FlowFinally {
			continue
		}
		out, gate, ok, err := model.TakeOutcome(s.Context)
		if err == nil && !ok {
			err = fmt.Errorf("step %s of finally was parked without the outcome of the flow", s.Name)
		}
		r.exec.Gate = gate
		return s, out, err
	}
	return nil, core.Outcome{}, nil
}

// resumeFinally runs the rest of `finally`. The history has the steps of the flow.
func (r *run) resumeFinally(ctx context.Context, parked core.StepExecution, out core.Outcome) (core.Outcome, error) {
	r.progress.recall(r.exec.ID)
	return r.finally(ctx, out, nil, &parked)
}

func joinText(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// visitFinally runs a step from its beginning, in every execution. Steps before the parked one have
// run; the parked one is resumed.
func (w *walk) visitFinally(ctx context.Context, at *model.StepElement, parked *core.StepExecution) error {
	w.ordinal++
	switch {
	case parked == nil, w.ordinal > parked.Visit.Ordinal:
	case w.ordinal < parked.Visit.Ordinal:
		return nil
	default:
		_, err := w.port.step(ctx, w, at, ports.StepHistory{Last: *parked})
		return err
	}
	held, err := w.port.holds(ctx, w, at)
	if err != nil {
		return err
	}
	if held == no {
		_, err := w.port.noop(ctx, w, at)
		return err
	}
	_, err = w.port.step(ctx, w, at, ports.StepHistory{})
	return err
}

type listeners struct{ list []any }

func (r *run) listeners(ctx context.Context) (*listeners, error) {
	l := &listeners{}
	if r.job.Listeners == nil {
		return l, nil
	}
	var list []any
	err := r.callWithGrace(ctx, func() (err error) {
		list, err = r.job.Listeners(ctx, &core.View{Job: r.jobNow()})
		return err
	})
	if err != nil {
		return l, fmt.Errorf("listeners: %w", err)
	}
	l.list = list
	return l, nil
}

// before notifies them of the start, up to the first error.
func (l *listeners) before(ctx context.Context, r *run) error {
	for _, one := range l.list {
		b, ok := one.(core.BeforeJob)
		if !ok {
			continue
		}
		told := r.jobNow()
		if err := r.callWithGrace(ctx, func() error { return b.BeforeJob(ctx, told) }); err != nil {
			return fmt.Errorf("listener %T: before the job: %w", one, err)
		}
		if told.Context != nil {
			r.exec.Context = told.Context
		}
	}
	return nil
}

// after notifies them of the end, in reverse order, and closes them. An error fails
// the execution (rule C16).
func (l *listeners) after(ctx context.Context, r *run, out core.Outcome, failure error) (core.Outcome, error) {
	if errors.Is(failure, core.ErrLostOwner) {
		return out, errors.Join(failure, l.close(ctx))
	}
	var errs []error
	for _, one := range slices.Backward(l.list) {
		a, ok := one.(core.AfterJob)
		if !ok {
			continue
		}
		told := r.jobNow()
		told.Status, told.ExitCode, told.Error = out.Status, out.ExitCode, out.Message
		if err := r.callWithGrace(ctx, func() error { return a.AfterJob(ctx, told) }); err != nil {
			errs = append(errs, fmt.Errorf("listener %T: after the job: %w", one, err))
			continue
		}
		if err := core.CheckExitCode(told.ExitCode); err != nil {
			errs = append(errs, fmt.Errorf("listener %T: after the job: %w", one, err))
			continue
		}
		if told.ExitCode != "" {
			out.ExitCode = told.ExitCode
		}
	}
	if len(l.list) > 0 {
		errs = append(errs, r.callWithGrace(ctx, func() error { return l.close(ctx) }))
	}
	err := errors.Join(errs...)
	switch {
	case err == nil:
		return out, failure
	case failure != nil:
		return out, errors.Join(failure, err)
	}
	return worsened(out, err), nil
}

// worsened returns the outcome of an execution after another error at its end: FAILED, unless it was
// worse. The message keeps the earlier errors.
func worsened(out core.Outcome, err error) core.Outcome {
	if worse := model.MaxStatus(out.Status, core.StatusFailed); worse != out.Status {
		out.Status, out.ExitCode = worse, core.ExitFailed
	}
	out.Message = joinText(out.Message, err.Error())
	return out
}

func (l *listeners) close(ctx context.Context) error {
	var errs []error
	for _, one := range l.list {
		if c, ok := one.(item.Closer); ok {
			errs = append(errs, exception.GuardApart(func() error { return c.Close(ctx) }))
		}
	}
	return errors.Join(errs...)
}
