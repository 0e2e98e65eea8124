package core

import (
	"context"
	"time"
)

// Tasklet is the work of a step that is not item by item.
//
// It runs in the transaction that its step's propagation asks for, carried by
// ctx. It says more than success or failure through c.
//
// It must return when ctx ends: its cause says why, such as a *LeaseError, after which
// another process may soon begin the same work (rule L9). What ignores that is left behind,
// and the surfin command ends its process.
type Tasklet interface {
	Execute(ctx context.Context, c *StepContribution) error
}

// TaskletFunc makes a function a Tasklet.
type TaskletFunc func(ctx context.Context, c *StepContribution) error

// Execute calls f.
func (f TaskletFunc) Execute(ctx context.Context, c *StepContribution) error { return f(ctx, c) }

// StepContribution is what a tasklet reports, apart from its error.
type StepContribution struct {
	// ExitCode replaces the step's exit code, of a failure or stop too; empty:
	// COMPLETED, FAILED, STOPPED.
	ExitCode string
	// Counters are added to the step's; a tasklet that knows how many rows it
	// read or wrote says so here.
	Counters Counters
	// Out holds named results, readable as steps.NAME.out.KEY in expressions.
	Out map[string]any
	// Context is the step's execution context, kept over restarts.
	Context *ExecutionContext
	// Save stores Context at once, as long as the step belongs to this process: an attempt
	// after a crash finds what was saved. Without it, Context is stored when the step ends. A
	// tasklet calls it before it changes what no transaction undoes. It is part of the
	// transaction that ctx carries. nil: nothing is stored, as in a test of the tasklet alone.
	Save func(ctx context.Context) error
	// Step and Params tell the tasklet where it runs.
	Step   StepExecution
	Params Parameters
	// View is what it may know of the run; Part in it is the partition.
	View *View
	// Stop is closed when a stop was asked for: a tasklet that can end early does so,
	// and returns ErrStopped if it has not done its work.
	Stop <-chan struct{}
}

// Sleep waits for d. It ends before with ErrStopped when a stop was asked for, and with the cause
// of ctx when that ends.
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

// Stoppable is implemented by tasklets that need to know of a stop while they
// execute. StopRequested is called once, on another goroutine; its error is
// reported, and the request stands.
type Stoppable interface {
	StopRequested(ctx context.Context) error
}
