package step

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// DefaultStopTimeout is how long a step may continue after its context has ended.
const DefaultStopTimeout = 30 * time.Second

// ErrAbandoned is in the chain of the failure of a step that did not return in time; its goroutine
// still runs, and can commit nothing.
var ErrAbandoned = errors.New("the step did not return in time; its goroutine still runs")

// notifyLate notifies the observers that a component did not return before the lease ends.
func notifyLate(ctx context.Context, run *model.StepRun, step string) {
	run.Services.Observer.Observe(ctx, core.ComponentLate{
		Execution: run.Data.Job.ID, JobName: run.Data.Job.JobName, Step: step, Err: context.Cause(ctx),
	})
}

// callWithGrace calls an author's code with a copy of run. It returns ErrAbandoned if the code still
// runs DefaultStopTimeout after ctx has ended (rule L8).
func callWithGrace[T any](ctx context.Context, run *model.StepRun, f func(own *model.StepRun) (T, error)) (answer T, err error) {
	own := private(run)
	r, ok := model.Await(ctx, model.Go(func() (T, error) { return f(own) }), DefaultStopTimeout, run.Services.Lease.Late(), func() {
		notifyLate(ctx, run, run.Step.Name)
	})
	if !ok {
		return answer, fmt.Errorf("%w (%w)", ErrAbandoned, context.Cause(ctx))
	}
	return r.Value, r.Err
}

// private returns the data for a step's goroutine: it shares nothing with the executor and the flow
// that it may change, or that they change when it is abandoned.
func private(run *model.StepRun) *model.StepRun {
	own := *run
	record := run.Step.Clone()
	own.Data, own.Step, own.Listeners = run.Data.Clone(), &record, nil
	return &own
}
