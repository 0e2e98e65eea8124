// Package refusal has the errors of refused acts on jobs and tasks, as data: a reason, and the actions
// that are possible instead. It imports core only.
package refusal

import (
	"encoding/json"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Reason is why an act was refused.
type Reason string

// The reasons of a Refusal.
const (
	// NotFound means that there is no such execution (core.ErrNotFound).
	NotFound Reason = "not_found"
	// NoSuchJob means that the job's name is unknown (core.ErrNoSuchJob).
	NoSuchJob Reason = "no_such_job"
	// Complete means that the instance is complete (*core.InstanceCompleteError).
	Complete Reason = "complete"
	// Running means that it runs (*core.AlreadyRunningError).
	Running Reason = "running"
	// Exclusive means that an execution runs that it must not run concurrently with
	// (*core.ExclusiveError).
	Exclusive Reason = "exclusive"
	// Over means that there is nothing to stop.
	Over Reason = "over"
	// Abandoned means that it was abandoned (core.ErrAbandoned).
	Abandoned Reason = "abandoned"
	// Unknown means that its outcome is unknown (core.ErrUnknownStatus).
	Unknown Reason = "unknown_outcome"
	// NotRestartable means that the job may not be restarted (core.ErrNotRestartable).
	NotRestartable Reason = "not_restartable"
	// NotNewest means that the instance has a newer execution (core.ErrNotMostRecent).
	NotNewest Reason = "not_newest"
	// IllegalState means that the status does not allow it (core.ErrIllegalState,
	// *core.TransitionError).
	IllegalState Reason = "illegal_state"
	// Redrive means that the execution is a redrive, which only a redrive continues.
	Redrive Reason = "redrive"
	// NothingSkipped means that no skipped items are left to redrive.
	NothingSkipped Reason = "nothing_skipped"
	// WhichStep means that several steps have skipped items.
	WhichStep Reason = "which_step"
	// Items means that items cannot be redriven as stored or given.
	Items Reason = "items"
	// Changed means that the job file has changed in work that is already done
	// (*jobfile.ChangedError).
	Changed Reason = "changed"
	// NoIncrementer means that the job has no incrementer (core.ErrNoIncrementer).
	NoIncrementer Reason = "no_incrementer"
	// Parameters means that parameters are wrong (*core.ParameterError, joined).
	Parameters Reason = "parameters"
	// File means that the job file cannot be read or is wrong (jobfile.Problems).
	File Reason = "file"
	// StartLimit means that a step was attempted as often as its start_limit allows. It is
	// the reason of an Explanation only: a restart is not refused, but fails at that step.
	StartLimit Reason = "start_limit"
	// From means that the restart cannot begin at the element (*journal.FromError).
	From Reason = "from"
	// KeyReused means that the key of the request was used for another one
	// (*ports.KeyReusedError).
	KeyReused Reason = "key_reused"
	// Schema means that the tables of the history are missing or old (core.ErrSchemaMissing).
	Schema Reason = "schema"

	// Invalid means that the submission of tasks is wrong; Details lists every error.
	Invalid Reason = "invalid"
	// UnknownType means that no process would execute the task.
	UnknownType Reason = "unknown_type"
	// OtherSubmission means that the idempotency key was used for another submission
	// (task.ErrOtherSubmission).
	OtherSubmission Reason = "other_submission"
)

// Refusal is the error of a refused act, which changed nothing.
type Refusal struct {
	Reason Reason
	// Execution is the one that the caller named; 0 if none, as for a launch.
	Execution core.JobExecutionID
	// Last is the last execution of the instance, which a changed file is compared with.
	Last core.JobExecutionID
	// Err is the cause.
	Err error
	// Details lists the errors one by one, if Err has them all in one line.
	Details []string
	// Diff is a unified diff of a job file with refused changes.
	Diff string
	// Actions are the possible actions, the best first.
	Actions []Action
}

// Error is the message of the cause.
func (r *Refusal) Error() string { return r.Err.Error() }

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Err }

// MarshalJSON writes the message in place of the cause.
func (r *Refusal) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Reason    Reason              `json:"reason"`
		Message   string              `json:"message"`
		Execution core.JobExecutionID `json:"execution,omitempty"`
		Last      core.JobExecutionID `json:"last,omitempty"`
		Details   []string            `json:"details,omitempty"`
		Diff      string              `json:"diff,omitempty"`
		Actions   []Action            `json:"actions,omitempty"`
	}{r.Reason, r.Err.Error(), r.Execution, r.Last, r.Details, r.Diff, r.Actions})
}

// ActionKind is the kind of an Action.
type ActionKind string

// The kinds of an Action: the requests that a client of the service may make next.
const (
	ActShow    ActionKind = "show"    // show Execution
	ActHistory ActionKind = "history" // list the executions of Job
	ActExplain ActionKind = "explain" // explain why Execution ended, and a restart of it
	ActWatch   ActionKind = "watch"   // watch the progress of Job
	ActSkips   ActionKind = "skips"   // list the skipped items of Execution
	ActCompare ActionKind = "compare" // compare the definition of Execution, or its file Name, with File
	ActRun     ActionKind = "run"     // run File with Params
	ActAgain   ActionKind = "again"   // run File with Params as a new instance
	ActNext    ActionKind = "next"    // run the next instance of File
	ActRestart ActionKind = "restart" // restart Execution
	ActRedrive ActionKind = "redrive" // redrive the remaining items of Execution
	ActStop    ActionKind = "stop"    // request a stop of Execution
	ActAbandon ActionKind = "abandon" // abandon Execution
	ActRecover ActionKind = "recover" // end executions that lost their process
	ActWork    ActionKind = "work"    // run a worker: Execution is parked and waits for one
	ActMigrate ActionKind = "migrate" // create or update the tables
	ActHelp    ActionKind = "help"    // list the parameters of File
	ActExport  ActionKind = "export"  // export the skipped items of Execution, correct and redrive them
	// ActIncrementer means to give the job in File an incrementer.
	ActIncrementer ActionKind = "incrementer"
)

// Action is a possible action, as data.
type Action struct {
	Kind      ActionKind          `json:"kind"`
	Execution core.JobExecutionID `json:"execution,omitempty"`
	// Status is the status of Execution, if the wording depends on it.
	Status core.Status `json:"status,omitempty"`
	Job    string      `json:"job,omitempty"`
	// File is the job file; empty if the history has it.
	File string `json:"file,omitempty"`
	// Name is the name of a file of the definition; empty if it is the only one.
	Name string `json:"name,omitempty"`
	// Params are texts by name, as in a request.
	Params map[string]string `json:"params,omitempty"`
	// Paths are the names of the parameters that are paths: their values are absolute.
	Paths []string `json:"paths,omitempty"`
	Step  string   `json:"step,omitempty"`

	AcceptChanges bool `json:"accept_changes,omitempty"`
	FromStart     bool `json:"from_start,omitempty"`
	// From and IfComplete are as in RestartRequest.
	From       string `json:"from,omitempty"`
	IfComplete bool   `json:"if_complete,omitempty"`
	// NeedsFile means that the request must name a job file: the history has none.
	NeedsFile bool `json:"needs_file,omitempty"`
	// Owner is the dead process, for recover.
	Owner *Owner `json:"owner,omitempty"`
	// Open is the work that the execution waits for, for work.
	Open core.OpenWork `json:"open,omitzero"`
}

// Owner is the process that runs an execution.
type Owner struct {
	Host       string    `json:"host"`
	PID        int       `json:"pid"`
	LeaseUntil time.Time `json:"lease_until,omitzero"`
	// Dead means that the process is known to be dead: Recover ends the execution.
	Dead bool `json:"dead,omitempty"`
	// Lost means that a launch of the instance takes the execution over, and Recover ends it: the
	// process is dead, or its lease has expired by the clock of the database. No process does so by
	// itself.
	Lost bool `json:"lost,omitempty"`
}
