package ports

import (
	"context"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// JobChange is a transition of a job execution.
type JobChange struct {
	To       core.Status
	ExitCode string
	Error    string
	// Settles is as in JobExecution.
	Settles bool
	// Gate is the answer of the job's gate; empty keeps the stored one.
	Gate string
	// Context is merged, as in SaveJobContext; nil keeps the stored one.
	Context *core.ExecutionContext
	// Visits are rows of the journal that are stored with the change.
	Visits []FlowVisit
}

// StepChange is the final transition of a step execution.
type StepChange struct {
	To       core.Status
	ExitCode string
	Error    string
	// Settles is as in StepExecution.
	Settles bool
	// KeepCommitted keeps the counters of the last commit, except for rollbacks: the attempt does not
	// know them.
	KeepCommitted bool
	Counters      core.Counters
	// InHand is the uncommitted part of Counters.
	InHand core.Counters
	// Closed means that the attempt's own goroutine returned and its components are closed: it touches
	// nothing any more (rule C15b).
	Closed  bool
	Gate    string // empty keeps the stored one
	Context *core.ExecutionContext
	Out     map[string]any
	// Visits are rows of the journal that are stored with the change.
	Visits []FlowVisit
	// Part is known to be a partition.
	Part bool
}

// Transitions changes the status of executions: each is one guarded UPDATE.
type Transitions interface {
	// ChangeJob moves a job execution (MoveTo). Duplicate is success to the caller: this same move was
	// made before, in the same epoch. A Rejected answer comes with a *TransitionError (wrapping
	// ErrLostOwner if owner or epoch differ).
	ChangeJob(ctx context.Context, ref JobRef, change JobChange) (core.Answer, error)
	// StartStep inserts a step execution in STARTED under the guard of its job, or of the part that
	// walks its branch, with that owner and epoch, counters of zero, and the position and context of
	// start.Earlier if it is not nil. Rows of the journal are stored with it.
	StartStep(ctx context.Context, job JobRef, start StepStart) (*core.StepExecution, error)
	// EndStep moves a step execution to its final status, or from FAILED or STOPPED
	// to ABANDONED.
	EndStep(ctx context.Context, ref StepRef, change StepChange) (core.Answer, error)
	// Fence raises the epoch of a step that does not return, and returns its committed state:
	// everything the attempt still tries is refused (rule L8). ErrLostOwner if the guard finds no row.
	Fence(ctx context.Context, ref StepRef) (StepRef, Checkpoint, error)
	// SaveJobContext merges the changed keys of c into the job's context while the job
	// runs (ExecutionContext.Merge): branches of a split and processes that promote at the
	// same time lose nothing. ErrLostOwner if the guard finds no row.
	SaveJobContext(ctx context.Context, ref JobRef, c *core.ExecutionContext) error
	// SaveStepContext is the same for a step.
	SaveStepContext(ctx context.Context, ref StepRef, c *core.ExecutionContext) error
}
