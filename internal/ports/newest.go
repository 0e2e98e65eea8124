package ports

import (
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// NewestAttempt is the newest execution of an instance, with the facts that decide a launch.
type NewestAttempt struct {
	Execution core.JobExecution
	// Lost means that the execution runs, and its owner is dead or its lease over: a launch takes it
	// over.
	Lost bool
	// Open is the work that a parked execution waits for.
	Open OpenWork
	// Uncertain means that the outcome of a step is unknown.
	Uncertain bool
	// Settles means that the execution is UNKNOWN, and its restart reads the outcome from a checkpoint.
	Settles bool
	// Unfinished is the number of steps that are not over.
	Unfinished int64
}

// JudgedExecution is an execution, and the newest one of its instance as a launch would judge it. If
// the newest is another execution, only its ID, instance and status are set.
type JudgedExecution struct {
	Execution core.JobExecution
	Newest    NewestAttempt
	// Steps counts the step executions that were added to it, and parts. It is 0 in a brief list.
	Steps int64
}

// JudgedRequest selects executions by their IDs.
type JudgedRequest struct {
	IDs []core.JobExecutionID
	// Brief is as in ExecutionFilter.
	Brief bool
	// Dead is as in LaunchRequest.
	Dead func(core.Owner) bool
}

// Refusal returns why no other attempt may follow the execution; nil if one may. The repository and the
// offers of a restart decide by it. restartable is the job's setting.
func (n *NewestAttempt) Refusal(restartable bool) error {
	if n.Execution.Status == core.StatusCompleted {
		return &InstanceCompleteError{Execution: &n.Execution}
	}
	return n.RefusalIfComplete(restartable)
}

// RefusalIfComplete is Refusal for an attempt that may follow one that completed.
func (n *NewestAttempt) RefusalIfComplete(restartable bool) error {
	e := &n.Execution
	about := func(reason error) error { return fmt.Errorf("job %s, execution %d: %w", e.JobName, e.ID, reason) }
	switch e.Status {
	case core.StatusAbandoned:
		return about(ErrAbandoned)
	case core.StatusUnknown:
		if n.Settles && !n.Uncertain {
			break
		}
		return about(ErrUnknownStatus)
	case core.StatusStarting, core.StatusStarted, core.StatusParked, core.StatusStopping:
		if !n.Lost {
			return n.running()
		}
	case core.StatusFailed, core.StatusStopped, core.StatusCompleted:
	}
	switch {
	case !restartable:
		return about(ErrNotRestartable)
	case n.Uncertain: // its step would run again, and may be committed (rule C10)
		return about(ErrUnknownStatus)
	case e.Status.IsOver() && n.Unfinished > 0: // a process may still work on that step
		return fmt.Errorf("%w; it is %s, but %d of its steps are not over (`surfin recover` ends them)", n.running(), e.Status, n.Unfinished)
	}
	return nil
}

func (n *NewestAttempt) running() error {
	e := &n.Execution
	return &AlreadyRunningError{
		ExecutionID: e.ID, JobName: e.JobName, Owner: e.Owner, LeaseUntil: e.LeaseUntil,
		Parked: e.Owner == core.Owner{} && !e.Status.IsOver(), Open: n.Open,
	}
}
