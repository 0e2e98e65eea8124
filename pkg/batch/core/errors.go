package core

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The reasons why a launch is refused or an execution ends early. Test with errors.Is; the data-bearing
// ones with errors.As.
var (
	// ErrStopped is returned by a step that ended because a stop was requested.
	ErrStopped = errors.New("stopped")
	// ErrParked is returned by a step that waits for work of other processes, and by the callers of
	// such a step: it is not over. The execution is parked, and the step is executed again, in the same
	// attempt, when the execution is resumed.
	ErrParked = errors.New("it waits for work in other processes")
	// ErrLostOwner is returned by a guarded write that found the execution taken over by another owner:
	// the caller stops and rolls back (rule L2).
	ErrLostOwner = errors.New("the execution was taken over by another owner")
	// ErrInTransaction refuses a launch with the context of a transaction (rule T2a).
	ErrInTransaction = errors.New("it is launched in a transaction")
	// ErrNotRestartable refuses another attempt of a job with restartable: false.
	ErrNotRestartable = errors.New("the job is not restartable")
	// ErrAbandoned refuses to restart an abandoned execution.
	ErrAbandoned = errors.New("the last execution was abandoned")
	// ErrUnknownStatus refuses a restart after an execution with an unknown outcome.
	ErrUnknownStatus = errors.New("the outcome of the last execution is unknown")
	// ErrNotFound is returned for an ID that is not in the repository.
	ErrNotFound = errors.New("not found")
	// ErrStartLimit refuses a step that was attempted as often as allowed.
	ErrStartLimit = errors.New("start limit exceeded")
	// ErrRedriven refuses to redrive a skipped item that another execution has
	// redriven.
	ErrRedriven = errors.New("a skipped item was redriven by another execution")
	// ErrUnknownOutcome is returned by a step that cannot know whether its work is committed; it ends
	// UNKNOWN (rule C10).
	ErrUnknownOutcome = errors.New("the outcome is not known")
	// ErrNoReply is in the chain of an error that a Patience returns because its time was over.
	ErrNoReply = errors.New("the database did not respond in time")
	// ErrLostCommit is an unknown outcome that a checkpoint resolves once its database can be read: the
	// reply to a COMMIT was lost (rule C10).
	ErrLostCommit = fmt.Errorf("%w until the checkpoint can be read, because the reply to a COMMIT was lost", ErrUnknownOutcome)
	// ErrExpect is in the chain of the failure of a gate.
	ErrExpect = errors.New("an expectation failed")
	// ErrMissingKey is a key that a step should promote but lacks.
	ErrMissingKey = errors.New("the step's context has no such key")
	// ErrNoTransition is an outcome that no transition of a strict flow matches.
	ErrNoTransition = errors.New("no transition matches")
	// ErrNotMostRecent refuses to restart or abandon an execution that a later one followed.
	ErrNotMostRecent = errors.New("a later execution of the instance exists")
	// ErrNoSuchJob is an unknown job name.
	ErrNoSuchJob = errors.New("there is no such job")
	// ErrNoIncrementer refuses the next instance of a job that has no incrementer.
	ErrNoIncrementer = errors.New("the job has no incrementer")
	// ErrIllegalState is an instance in a state that the framework never leaves, such as one without
	// executions.
	ErrIllegalState = errors.New("the history of the instance is inconsistent")
	// ErrSchemaMissing means that the repository's tables are absent or outdated.
	ErrSchemaMissing = errors.New("the repository's schema is missing or outdated")
)

// InstanceCompleteError refuses to run an instance that already completed (L1).
type InstanceCompleteError struct{ Execution JobExecution }

// Error names the execution that completed.
func (e *InstanceCompleteError) Error() string {
	return fmt.Sprintf("job %s is already complete with these parameters (execution %d)", e.Execution.JobName, e.Execution.ID)
}

// FormerInstanceError refuses a launch whose parameters named another instance in versions that read a timestamp without an
// offset as UTC, whatever the time zone of the job, where such a version made the one or the other (rule D5).
type FormerInstanceError struct {
	JobName   string
	Execution JobExecutionID // the newest of the instance that such a version made
	Status    Status
	Params    Parameters // of the launch
	// Taken says that the instance is the one that the parameters name now; otherwise they named it before.
	Taken bool
}

// Error names the execution, both values, and what to write.
func (e *FormerInstanceError) Error() string {
	var now, before []string
	for _, p := range e.Params.All() {
		if p.Former == nil {
			continue
		}
		now = append(now, p.Name+"="+p.Text())
		p.Value = p.Former
		before = append(before, p.Name+"="+p.Text())
	}
	if e.Taken {
		return fmt.Sprintf("job %[1]s: these parameters are now %[2]s, but were %[3]s in an earlier version, which read a timestamp without an offset as UTC; "+
			"that version created the instance of %[2]s (execution %[4]d, %[5]s) from another text: write %[2]s to run that instance, "+
			"or repeat it with --again if it is complete or abandoned",
			e.JobName, strings.Join(now, " "), strings.Join(before, " "), e.Execution, e.Status)
	}
	return fmt.Sprintf("job %s: execution %d, %s, was launched with these parameters by an earlier version, which read a timestamp without an offset as UTC; "+
		"it is now a time in the job's timezone, which is another instance: write %s for the instance of execution %d, or %s for the new one",
		e.JobName, e.Execution, e.Status, strings.Join(before, " "), e.Execution, strings.Join(now, " "))
}

// AlreadyRunningError refuses to run an instance that another owner runs (L1).
type AlreadyRunningError struct {
	ExecutionID JobExecutionID
	JobName     string
	Owner       Owner
	LeaseUntil  time.Time
	// Parked means that the execution has no owner: it waits for its partitions, tasks and child jobs,
	// and any process resumes it when they have ended.
	Parked bool
	// Open is the number of them that are not over.
	Open OpenWork
}

// Error names the owner.
func (e *AlreadyRunningError) Error() string {
	return fmt.Sprintf("job %s is already running: %s", e.JobName, e.state())
}

// state describes the owner of the execution.
func (e *AlreadyRunningError) state() string {
	switch {
	case e.Parked && e.Open == OpenWork{}:
		return fmt.Sprintf("execution %d is parked, and a worker will resume it", e.ExecutionID)
	case e.Parked:
		return fmt.Sprintf("execution %d is parked and waits for %v on workers", e.ExecutionID, e.Open)
	}
	clock := ""
	if time.Now().After(e.LeaseUntil) {
		clock = " by the clock of the database, which is behind this machine's"
	}
	return fmt.Sprintf("execution %d, owner %s (process %d), lease until %s%s",
		e.ExecutionID, e.Owner.Host, e.Owner.PID, e.LeaseUntil.UTC().Format(time.RFC3339), clock)
}

// NotNewestError refuses an operation that only the newest execution of an instance allows. It is an
// ErrNotMostRecent.
type NotNewestError struct {
	JobName           string
	Execution, Newest JobExecutionID
	Status            Status // of Newest
}

// Error names both executions.
func (e *NotNewestError) Error() string {
	return fmt.Sprintf("job %s, execution %d: %v: execution %d (%s)", e.JobName, e.Execution, ErrNotMostRecent, e.Newest, e.Status)
}

// Unwrap returns ErrNotMostRecent.
func (e *NotNewestError) Unwrap() error { return ErrNotMostRecent }

// ParameterError is a launch parameter that is unknown, missing or not allowed.
type ParameterError struct {
	Name string
	Err  error
}

// Error names the parameter and the reason.
func (e *ParameterError) Error() string { return "parameter " + e.Name + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *ParameterError) Unwrap() error { return e.Err }

// RedriveLaterError refuses to redrive into a target that a step publishes when it completes: the
// restart of the step would replace the redriven rows (rule C12b).
type RedriveLaterError struct{ Step StepExecution }

// Error names the step and the order of the two commands.
func (e *RedriveLaterError) Error() string {
	return fmt.Sprintf("step %s of execution %d is %s; it publishes its output when it completes, which would replace redriven rows: restart execution %d first, then redrive its skipped items",
		e.Step.Name, e.Step.JobExecutionID, e.Step.Status, e.Step.JobExecutionID)
}

// RedriveStaleError refuses to continue a redrive into a target that its step has published again
// since.
type RedriveStaleError struct{ Step StepExecution }

// Error names the step's attempt and the solution.
func (e *RedriveStaleError) Error() string {
	return fmt.Sprintf("step %s ran again (step execution %d of execution %d) after this redrive started, and the rest of this redrive would replace its output: abandon this redrive, and redrive the skipped items of execution %d",
		e.Step.Name, e.Step.ID, e.Step.JobExecutionID, e.Step.JobExecutionID)
}

func itoa(i int) string { return strconv.Itoa(i) }

func atoi(s string) int {
	i, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return i
}
