package step

import (
	"context"
	"errors"
	"time"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/panics"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// retrier is implemented by steps that repeat their work after some failures, in a transaction of its
// own each time (rule TL7).
type retrier interface {
	Retry() model.Retry
}

// perform runs the step, with retries if allowed.
func (a *attempt) perform(ctx context.Context) (*ending, error) {
	var retry model.Retry
	if retrying, ok := a.step.(retrier); ok && a.run.Data.Group == nil {
		retry = retrying.Retry()
	}
	listeners := len(a.pendingAfterStep)
	for n, began := 1, time.Now(); ; n++ {
		before := a.before()
		end, err := a.performOnce(ctx)
		if err == nil {
			return end, nil
		}
		if a.isFinal(ctx, err) || len(a.pendingAfterStep) < listeners {
			return end, model.Exhausted(err, n)
		}
		if !retry.Allows(err, n, began) {
			return end, retry.Noted(model.Exhausted(err, n))
		}
		a.observer.Observe(ctx, core.Retried{
			Execution: a.run.Step.JobExecutionID, JobName: a.run.Step.JobName, Step: a.run.Step.Name, StepID: a.run.Step.ID, Attempt: n, Err: err,
		})
		if err := retry.Pause(ctx, a.run.Services.Stop.Done(), n, err); err != nil {
			return nil, causeOf(ctx, err)
		}
		a.reset(before)
	}
}

// isFinal reports a failure that no retry can fix: the end of the step's context or of ownership, a
// stop, a step that waits for others, an unknown outcome, a gate that does not hold, a panic, a full or
// broken disk.
func (a *attempt) isFinal(ctx context.Context, err error) bool {
	var panicked *panics.PanicError
	var commit *tx.CommitError
	return ctx.Err() != nil || errors.Is(err, context.Canceled) || model.IsStorage(err) ||
		errors.Is(err, core.ErrLostOwner) || errors.Is(err, core.ErrStopped) || errors.Is(err, tx.ErrNotOwner) ||
		errors.Is(err, ports.ErrParked) || errors.Is(err, ports.ErrUnknownOutcome) || errors.Is(err, ports.ErrExpect) ||
		errors.Is(err, ErrAbandoned) || errors.As(err, &panicked) ||
		errors.As(err, &commit) && !errors.Is(err, tx.ErrRolledBack)
}

// earlier is the record before an attempt at the work.
type earlier struct {
	counters core.Counters
	exit     string
	out      map[string]any
	context  *core.ExecutionContext
}

func (a *attempt) before() earlier {
	s := a.run.Step
	e := earlier{counters: s.Counters, exit: s.ExitCode, out: s.Out}
	if s.Context != nil {
		e.context = s.Context.Clone()
	}
	return e
}

// reset discards the reports of an attempt. Its saved context stays unless it was in the transaction,
// which rolled back.
func (a *attempt) reset(e earlier) {
	s := a.run.Step
	s.Counters, s.ExitCode, s.Out = e.counters, e.exit, e.out
	if a.atomic {
		s.Context = e.context
	}
	a.exit, a.success, a.promoted = "", nil, nil
}
