package core

import "fmt"

// NewestAttempt is the newest execution of an instance, with what a launch judges it by.
type NewestAttempt struct {
	Execution JobExecution
	// Lost says that the execution runs, and that its owner is dead or its lease over: a
	// launch takes it over.
	Lost bool
	// Open is what a parked execution waits for.
	Open OpenWork
	// Uncertain says that the outcome of a step is not known.
	Uncertain bool
	// Settles says that the execution is UNKNOWN, and that its restart reads the outcome from a
	// checkpoint.
	Settles bool
	// Unfinished is how many steps are not over.
	Unfinished int64
}

// JudgedExecution is an execution, and the newest one of its instance as a launch would judge it. Of a
// newest one that is another execution only the id, the instance and the status are there.
type JudgedExecution struct {
	Execution JobExecution
	Newest    NewestAttempt
}

// JudgedRequest asks for executions by their ids.
type JudgedRequest struct {
	IDs []JobExecutionID
	// Brief is as in ExecutionFilter.
	Brief bool
	// Dead is as in LaunchRequest.
	Dead func(Owner) bool
}

// Refusal returns why no other attempt may follow the execution; nil: one may. The
// repository decides about a launch by it, and who offers a restart asks it, too.
// restartable is that of the job.
func (n NewestAttempt) Refusal(restartable bool) error {
	if n.Execution.Status == StatusCompleted {
		return &InstanceCompleteError{Execution: n.Execution}
	}
	return n.RefusalIfComplete(restartable)
}

// RefusalIfComplete is Refusal for an attempt that may follow one that completed.
func (n NewestAttempt) RefusalIfComplete(restartable bool) error {
	e := &n.Execution
	about := func(reason error) error { return fmt.Errorf("job %s, execution %d: %w", e.JobName, e.ID, reason) }
	switch e.Status {
	case StatusAbandoned:
		return about(ErrAbandoned)
	case StatusUnknown:
		if n.Settles && !n.Uncertain {
			break
		}
		return about(ErrUnknownStatus)
	case StatusStarting, StatusStarted, StatusParked, StatusStopping:
		if !n.Lost {
			return n.running()
		}
	case StatusFailed, StatusStopped, StatusCompleted:
	}
	switch {
	case !restartable:
		return about(ErrNotRestartable)
	case n.Uncertain: // its step would be run again, and may be committed (rule C10)
		return about(ErrUnknownStatus)
	case e.Status.IsOver() && n.Unfinished > 0: // a process may still work at that step
		return fmt.Errorf("%w; it is %s, but %d of its steps are not over (`surfin recover` ends them)", n.running(), e.Status, n.Unfinished)
	}
	return nil
}

func (n NewestAttempt) running() error {
	e := &n.Execution
	return &AlreadyRunningError{
		ExecutionID: e.ID, JobName: e.JobName, Owner: e.Owner, LeaseUntil: e.LeaseUntil,
		Parked: e.Owner == Owner{} && !e.Status.IsOver(), Open: n.Open,
	}
}
