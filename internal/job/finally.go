package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/job/walk"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Their failures are recorded and change nothing; only failures of the records
// themselves are errors.
func (r *run) finish(ctx context.Context, out core.Outcome, failure error) (core.Outcome, error) {
	if failure != nil {
		out = walk.Failed(failure)
	}
	if len(r.job.Finally.Elements) == 0 {
		return out, failure
	}
	return r.runFinally(ctx, out, failure, nil)
}

func (r *run) runFinally(ctx context.Context, out core.Outcome, failure error, parked *core.StepExecution) (core.Outcome, error) {
	if overdue := r.lease.Err(); overdue != nil { // nothing may begin
		err := fmt.Errorf("finally: not begun: %w", overdue)
		out.Message = joinText(out.Message, err.Error())
		return out, errors.Join(failure, err)
	}
	r.attempt.Outcome = &out
	l := &live{run: r}
	w := walk.New(r.attempt, l, walk.Start{Flow: r.job.Finally, ID: ports.FlowFinally})
	if parked != nil {
		w.Last = r.attempt.Progress.LastBefore(parked.Visit)
	}
	var errs []error
	for _, at := range r.job.Finally.Elements {
		e, ok := at.(*model.StepElement)
		if !ok {
			errs = append(errs, fmt.Errorf("finally: element %s: only steps can run there, not a %T", at.ElementName(), at))
			out.Message = joinText(out.Message, errs[len(errs)-1].Error())
			continue
		}
		err := l.finallyStep(ctx, w, e, parked)
		if errors.Is(err, ports.ErrParked) {
			return out, ports.ErrParked
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

func (r *run) parkedFinally() (*core.StepExecution, core.Outcome, error) {
	if !r.isResumed() {
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

func (r *run) resumeFinally(ctx context.Context, parked core.StepExecution, out core.Outcome) (core.Outcome, error) {
	r.attempt.Progress.Recall(r.exec.ID)
	return r.runFinally(ctx, out, nil, &parked)
}

func joinText(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// Steps before the parked one have run; the parked one is resumed.
func (l *live) finallyStep(ctx context.Context, w *walk.Walk, at *model.StepElement, parked *core.StepExecution) error {
	w.Ordinal++
	switch {
	case parked == nil, w.Ordinal > parked.Visit.Ordinal:
	case w.Ordinal < parked.Visit.Ordinal:
		return nil
	default:
		_, err := l.Step(ctx, w, at, ports.StepHistory{Last: *parked})
		return err
	}
	held, err := l.Holds(ctx, w, at)
	if err != nil {
		return err
	}
	if held == walk.No {
		_, err := l.Noop(ctx, w, at)
		return err
	}
	_, err = l.Step(ctx, w, at, ports.StepHistory{})
	return err
}
