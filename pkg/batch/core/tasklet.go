package core

import (
	"context"
	"time"
)

// Tasklet is a step's work not item by item, in ctx's transaction. c reports more than the error.
//
// It must return when ctx ends: the cause may be a *LeaseError, after which another process may begin the same
// work (rule L9). Otherwise it is abandoned, and the surfin command ends its process.
type Tasklet interface {
	Execute(ctx context.Context, c *StepContribution) error
}

// TaskletFunc is a function as a Tasklet.
type TaskletFunc func(ctx context.Context, c *StepContribution) error

// Execute calls f.
func (f TaskletFunc) Execute(ctx context.Context, c *StepContribution) error { return f(ctx, c) }

// StepContribution is a tasklet's report.
type StepContribution struct {
	// ExitCode replaces the step's, also for a failure or stop; empty means the default.
	ExitCode string
	Counters Counters
	// Out is readable as steps.NAME.out.KEY.
	Out map[string]any
	// Context is kept over restarts.
	Context *ExecutionContext
	// Save stores Context at once, in ctx's transaction, while the step is this process's: call it before a
	// change that no transaction undoes. Else it is stored at the end. nil stores nothing, as in a test.
	Save   func(ctx context.Context) error
	Step   StepExecution
	Params Parameters
	// View of the run; Part is the partition.
	View *View
	// Stop is closed on a stop request: end early, with ErrStopped if the work is not done.
	Stop <-chan struct{}
}

// Sleep waits for d, or ends with ErrStopped or ctx's cause.
func (c *StepContribution) Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-c.Stop:
		return ErrStopped
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Stoppable tasklets get StopRequested once, on another goroutine; its error is reported, and the request
// stands.
type Stoppable interface {
	StopRequested(ctx context.Context) error
}
