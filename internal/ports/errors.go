package ports

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Why a launch is refused or an execution ends early: errors.Is, or errors.As for those with data.
var (
	// ErrParked: a step waits for other processes' work; not over. It is executed again in the same attempt
	// when the execution is resumed.
	ErrParked = errors.New("it waits for work in other processes")
	// ErrInTransaction refuses a launch in a transaction (rule T2a).
	ErrInTransaction = errors.New("it is launched in a transaction")
	// ErrNotRestartable: restartable is false.
	ErrNotRestartable = errors.New("the job is not restartable")
	// ErrAbandoned: no restart of an abandoned execution.
	ErrAbandoned = errors.New("the last execution was abandoned")
	// ErrUnknownStatus: no restart after an unknown outcome.
	ErrUnknownStatus = errors.New("the outcome of the last execution is unknown")
	// ErrStartLimit: attempted as often as allowed.
	ErrStartLimit = errors.New("start limit exceeded")
	// ErrRedriven: another execution has redriven the item.
	ErrRedriven = errors.New("a skipped item was redriven by another execution")
	// ErrUnknownOutcome: a step cannot know whether its work is committed; UNKNOWN (rule C10).
	ErrUnknownOutcome = errors.New("the outcome is not known")
	// ErrNoReply: a Patience's time was over.
	ErrNoReply = errors.New("the database did not respond in time")
	// ErrLostCommit: the reply to a COMMIT was lost, and a checkpoint resolves it (rule C10).
	ErrLostCommit = fmt.Errorf("%w until the checkpoint can be read, because the reply to a COMMIT was lost", ErrUnknownOutcome)
	// ErrExpect: a gate failed.
	ErrExpect = errors.New("an expectation failed")
	// ErrMissingKey: a key to promote is missing.
	ErrMissingKey = errors.New("the step's context has no such key")
	// ErrNoTransition: a strict flow has no matching transition.
	ErrNoTransition = errors.New("no transition matches")
	// ErrNotMostRecent: a later execution followed.
	ErrNotMostRecent = errors.New("a later execution of the instance exists")
	// ErrNoSuchJob: unknown name.
	ErrNoSuchJob = errors.New("there is no such job")
	// ErrNoIncrementer: no next instance.
	ErrNoIncrementer = errors.New("the job has no incrementer")
	// ErrUnreadable: stored data cannot be parsed.
	ErrUnreadable = errors.New("the history has data that cannot be read")
	// ErrIllegalState: a state that the framework never leaves, such as no executions.
	ErrIllegalState = errors.New("the history of the instance is inconsistent")
)

// InstanceCompleteError means that the instance already completed (L1).
type InstanceCompleteError struct{ Execution *core.JobExecution }

// Error names the execution.
func (e *InstanceCompleteError) Error() string {
	return fmt.Sprintf("job %s is already complete with these parameters (execution %d)", e.Execution.JobName, e.Execution.ID)
}

// FormerInstanceError refuses parameters that named another instance in versions that read local timestamps as
// UTC (rule D5).
type FormerInstanceError struct {
	JobName   string
	Execution core.JobExecutionID // the newest of that version's instance
	Status    core.Status
	Params    core.Parameters
	// Taken: the parameters name it now; otherwise before.
	Taken bool
}

// Error names the execution, both values, and the correction.
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

// AlreadyRunningError means that another owner runs the instance (L1).
type AlreadyRunningError struct {
	ExecutionID core.JobExecutionID
	JobName     string
	Owner       core.Owner
	LeaseUntil  time.Time
	// Parked: no owner; any process resumes it when its partitions, tasks and child jobs have ended.
	Parked bool
	Open   OpenWork
}

// Error names the owner.
func (e *AlreadyRunningError) Error() string {
	return fmt.Sprintf("job %s is already running: %s", e.JobName, e.state())
}

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

// NotNewestError is an ErrNotMostRecent: only the newest execution allows it.
type NotNewestError struct {
	JobName           string
	Execution, Newest core.JobExecutionID
	Status            core.Status // of Newest
}

// Error names both executions.
func (e *NotNewestError) Error() string {
	return fmt.Sprintf("job %s, execution %d: %v: execution %d (%s)", e.JobName, e.Execution, ErrNotMostRecent, e.Newest, e.Status)
}

// Unwrap returns ErrNotMostRecent.
func (e *NotNewestError) Unwrap() error { return ErrNotMostRecent }

// MovedError refuses an act for a state that an execution no longer has (rule OP14).
type MovedError struct {
	Execution core.JobExecutionID
	// Newest is Execution, a later attempt, or a redrive of its items; Status and Epoch are Newest's.
	Newest core.JobExecutionID
	Status core.Status
	Epoch  int64
}

// Error names the new state.
func (e *MovedError) Error() string {
	if e.Newest == e.Execution {
		return fmt.Sprintf("execution %d has changed since: it is %s, epoch %d", e.Execution, e.Status, e.Epoch)
	}
	return fmt.Sprintf("execution %d has changed since: execution %d (%s) followed", e.Execution, e.Newest, e.Status)
}

// ParameterError is an unknown, missing or forbidden parameter.
type ParameterError struct {
	Name string
	Err  error
}

// Error names the parameter and the reason.
func (e *ParameterError) Error() string { return "parameter " + e.Name + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *ParameterError) Unwrap() error { return e.Err }

// RedriveLaterError means that the step's restart would replace rows redriven into its published target (rule
// C12b).
type RedriveLaterError struct{ Step core.StepExecution }

// Error names the step and the order of commands.
func (e *RedriveLaterError) Error() string {
	return fmt.Sprintf("step %s of execution %d is %s; it publishes its output when it completes, which would replace redriven rows: restart execution %d first, then redrive its skipped items",
		e.Step.Name, e.Step.JobExecutionID, e.Step.Status, e.Step.JobExecutionID)
}

// RedriveStaleError means that the step has published its target again since.
type RedriveStaleError struct{ Step core.StepExecution }

// Error names the attempt and the solution.
func (e *RedriveStaleError) Error() string {
	return fmt.Sprintf("step %s ran again (step execution %d of execution %d) after this redrive started, and the rest of this redrive would replace its output: abandon this redrive, and redrive the skipped items of execution %d",
		e.Step.Name, e.Step.ID, e.Step.JobExecutionID, e.Step.JobExecutionID)
}

// ExclusiveError refuses an execution that must not run in parallel to another (rule L12).
type ExclusiveError struct {
	JobName string
	Key     core.ExclusiveKey
	Running AlreadyRunningError
}

// Error names the other execution.
func (e *ExclusiveError) Error() string {
	of := "one execution of it"
	if value, is := e.Key.Value(); is {
		of = fmt.Sprintf("one execution with the key %q", value)
	}
	return fmt.Sprintf("job %s runs %s at a time: %s", e.JobName, of, e.Running.state())
}
