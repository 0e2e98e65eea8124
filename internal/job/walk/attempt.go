package walk

import (
	"slices"

	"github.com/surfin-batch/surfin/internal/job/journal"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Attempt is the state that the walks of one attempt share.
type Attempt struct {
	// ID is the execution; of a plan, one that does not exist.
	ID       core.JobExecutionID
	Journal  *journal.Journal
	Progress *Progress
	// Execution returns a snapshot of the execution.
	Execution func() *core.JobExecution
	// Outcome is the outcome of the flow, for the steps and listeners after it; nil before.
	Outcome *core.Outcome
	// Resuming means that the walk of an execution that was parked has not reached the step that waited.
	Resuming bool
	// Waited are the steps with which the execution was parked, until the walk reaches them.
	Waited []core.StepExecution
	// OnBranch means that a worker walks a branch of a split.
	OnBranch bool
}

// HasWaited reports whether the step is one with which this attempt was parked.
func (a *Attempt) HasWaited(id core.StepExecutionID) bool {
	return (a.Resuming || a.OnBranch) && slices.ContainsFunc(a.Waited, func(s core.StepExecution) bool { return s.ID == id })
}

// ReachWaited notes that the walk has reached a step with which this attempt was parked.
func (a *Attempt) ReachWaited(id core.StepExecutionID) {
	a.Resuming = false
	a.Waited = slices.DeleteFunc(a.Waited, func(s core.StepExecution) bool { return s.ID == id })
}
