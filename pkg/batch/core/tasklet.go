package core

import (
	"context"
	"time"
)

// Tasklet is the work of a step that is not item by item.
//
// It runs in the transaction of its step's propagation, carried by ctx. It reports more than success or
// failure through c.
//
// It must return when ctx ends: the cause says why, such as a *LeaseError, after which another process
// may soon begin the same work (rule L9). A tasklet that ignores that is abandoned, and the surfin
// command ends its process.
type Tasklet interface {
	Execute(ctx context.Context, c *StepContribution) error
}

// TaskletFunc makes a function a Tasklet.
type TaskletFunc func(ctx context.Context, c *StepContribution) error

// Execute calls f.
func (f TaskletFunc) Execute(ctx context.Context, c *StepContribution) error { return f(ctx, c) }

// StepContribution is the report of a tasklet, apart from its error.
type StepContribution struct {
	// ExitCode replaces the step's exit code, also for a failure or stop; empty means COMPLETED,
	// FAILED, STOPPED.
	ExitCode string
	// Counters are added to the step's, for a tasklet that knows how many rows it read or wrote.
	Counters Counters
	// Out holds named results, readable as steps.NAME.out.KEY in expressions.
	Out map[string]any
	// Context is the step's execution context, kept over restarts.
	Context *ExecutionContext
	// Save stores Context at once, as long as the step belongs to this process: an attempt after a
	// crash finds it. Without it, Context is stored when the step ends. A tasklet calls it before it
	// changes something that no transaction undoes. It is part of the transaction that ctx carries. nil
	// stores nothing, as in a test of the tasklet alone.
	Save func(ctx context.Context) error
	// Step and Params describe the tasklet's step.
	Step   StepExecution
	Params Parameters
	// View is its view of the run; Part in it is the partition.
	View *View
	// Stop is closed when a stop was requested: a tasklet that can end early does so, and returns
	// ErrStopped if it has not done its work.
	Stop <-chan struct{}
}

// Sleep waits for d. It ends early with ErrStopped when a stop was requested, and with the cause of ctx
// when that ends.
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

// Stoppable is implemented by tasklets that react to a stop while they execute. StopRequested is called
// once, on another goroutine; its error is reported, and the request stands.
type Stoppable interface {
	StopRequested(ctx context.Context) error
}
