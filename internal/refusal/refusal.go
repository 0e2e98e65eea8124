// Package refusal has the errors of refused acts on jobs and tasks, as data: a reason, and the actions
// that are possible instead. It imports core only.
package refusal

import (
	"encoding/json"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Reason is why an act was refused.
type Reason string

// The reasons of a Refusal.
const (
	// core.ErrNotFound.
	NotFound Reason = "not_found"
	// ports.ErrNoSuchJob.
	NoSuchJob Reason = "no_such_job"
	// Moved: *ports.MovedError.
	Moved Reason = "moved"
	// *ports.InstanceCompleteError.
	Complete Reason = "complete"
	// *ports.AlreadyRunningError.
	Running Reason = "running"
	// *ports.ExclusiveError.
	Exclusive Reason = "exclusive"
	// Over: nothing to stop.
	Over Reason = "over"
	// ports.ErrAbandoned.
	Abandoned Reason = "abandoned"
	// ports.ErrUnknownStatus.
	Unknown Reason = "unknown_outcome"
	// ports.ErrNotRestartable.
	NotRestartable Reason = "not_restartable"
	// ports.ErrNotMostRecent.
	NotNewest Reason = "not_newest"
	// ports.ErrIllegalState, *core.TransitionError.
	IllegalState Reason = "illegal_state"
	// Redrive: only a redrive continues a redrive.
	Redrive Reason = "redrive"
	// NothingSkipped: nothing is left to redrive.
	NothingSkipped Reason = "nothing_skipped"
	// WhichStep: several steps have skipped items.
	WhichStep Reason = "which_step"
	// Items cannot be redriven as stored or given.
	Items Reason = "items"
	// *jobfile.ChangedError.
	Changed Reason = "changed"
	// ports.ErrNoIncrementer.
	NoIncrementer Reason = "no_incrementer"
	// *ports.ParameterError, joined.
	Parameters Reason = "parameters"
	// jobfile.Problems.
	File Reason = "file"
	// StartLimit is an Explanation's only: a restart is not refused, but fails
	// at that step.
	StartLimit Reason = "start_limit"
	// *journal.FromError.
	From Reason = "from"
	// *ports.KeyReusedError.
	KeyReused Reason = "key_reused"
	// core.ErrSchemaMissing.
	Schema Reason = "schema"

	// Invalid submission; Details lists every error.
	Invalid Reason = "invalid"
	// UnknownType: no process would execute the task.
	UnknownType Reason = "unknown_type"
	// taskports.ErrOtherSubmission.
	OtherSubmission Reason = "other_submission"
)

// Refusal is the error of a refused act, which changed nothing.
type Refusal struct {
	Reason Reason
	// Execution is the one that the caller named, or 0.
	Execution core.JobExecutionID
	// Now is the state after Reason Moved, or nil.
	Now *State
	// Last is the execution that a changed file is compared with.
	Last core.JobExecutionID
	Err  error
	// Details lists the errors of Err.
	Details []string
	// Diff is of a job file with refused changes.
	Diff string
	// Actions: the best first.
	Actions []Action
}

func (r *Refusal) Error() string { return r.Err.Error() }

func (r *Refusal) Unwrap() error { return r.Err }

// State is the state of an execution that has changed: its own, that of a later attempt, or of a
// redrive of its items.
type State struct {
	Execution core.JobExecutionID `json:"execution"`
	Status    core.Status         `json:"status"`
	Epoch     int64               `json:"epoch"`
}

// MarshalJSON writes the message in place of the cause.
func (r *Refusal) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Reason    Reason              `json:"reason"`
		Message   string              `json:"message"`
		Execution core.JobExecutionID `json:"execution,omitempty"`
		Now       *State              `json:"now,omitempty"`
		Last      core.JobExecutionID `json:"last,omitempty"`
		Details   []string            `json:"details,omitempty"`
		Diff      string              `json:"diff,omitempty"`
		Actions   []Action            `json:"actions,omitempty"`
	}{r.Reason, r.Err.Error(), r.Execution, r.Now, r.Last, r.Details, r.Diff, r.Actions})
}

// ActionKind is the kind of an Action.
type ActionKind string

// The kinds of an Action: the requests that a client of the service may make
// next.
const (
	ActShow      ActionKind = "show"      // show Execution
	ActHistory   ActionKind = "history"   // list the executions of Job
	ActExplain   ActionKind = "explain"   // explain why Execution ended, and a restart of it
	ActWatch     ActionKind = "watch"     // watch the progress of Job
	ActSkips     ActionKind = "skips"     // list the skipped items of Execution
	ActCompare   ActionKind = "compare"   // compare the definition of Execution, or its file Name, with File
	ActRun       ActionKind = "run"       // run File with Params
	ActAgain     ActionKind = "again"     // run File with Params as a new instance
	ActNext      ActionKind = "next"      // run the next instance of File
	ActRestart   ActionKind = "restart"   // restart Execution
	ActRedrive   ActionKind = "redrive"   // redrive the remaining items of Execution
	ActStop      ActionKind = "stop"      // request a stop of Execution
	ActAbandon   ActionKind = "abandon"   // abandon Execution
	ActRecover   ActionKind = "recover"   // end executions that lost their process
	ActWork      ActionKind = "work"      // run a worker: Execution is parked and waits for one
	ActMigrate   ActionKind = "migrate"   // create or update the tables
	ActHelp      ActionKind = "help"      // list the parameters of File
	ActExport    ActionKind = "export"    // export the skipped items of Execution, correct and redrive them
	ActValidate  ActionKind = "validate"  // check the job file File
	ActRegister  ActionKind = "register"  // register the corrected File
	ActSchedules ActionKind = "schedules" // list the times of schedules
	ActWorkers   ActionKind = "workers"   // list the workers, and the types of tasks that wait for one
	ActEvents    ActionKind = "events"    // list the dead events of the topic Name
	ActCure      ActionKind = "cure"      // remove the cause of a failure of Step; without it a restart fails at the item Name again
	// ActIncrementer: give the job in File an incrementer.
	ActIncrementer ActionKind = "incrementer"
)

// Action is a possible action, as data.
type Action struct {
	Kind      ActionKind          `json:"kind"`
	Execution core.JobExecutionID `json:"execution,omitempty"`
	// Status is set if the wording depends on it.
	Status core.Status `json:"status,omitempty"`
	Job    string      `json:"job,omitempty"`
	// File is empty if the history has it.
	File string `json:"file,omitempty"`
	// Name is a file of the definition, empty if the only one; or a topic, or an item.
	Name   string            `json:"name,omitempty"`
	Params map[string]string `json:"params,omitempty"`
	// Paths are parameters with absolute paths.
	Paths []string `json:"paths,omitempty"`
	Step  string   `json:"step,omitempty"`

	AcceptChanges bool   `json:"accept_changes,omitempty"`
	FromStart     bool   `json:"from_start,omitempty"`
	From          string `json:"from,omitempty"`
	IfComplete    bool   `json:"if_complete,omitempty"`
	// NeedsFile: the history has no job file.
	NeedsFile bool `json:"needs_file,omitempty"`
	// Owner is the dead process.
	Owner *Owner         `json:"owner,omitempty"`
	Open  ports.OpenWork `json:"open,omitzero"`
}

// Owner is the process that runs an execution.
type Owner struct {
	Host       string    `json:"host"`
	PID        int       `json:"pid"`
	LeaseUntil time.Time `json:"lease_until,omitzero"`
	// Dead: known to be dead.
	Dead bool `json:"dead,omitempty"`
	// Lost: dead, or its lease has expired by the database's clock. A launch
	// takes the execution over, and Recover ends it; no process does by itself.
	Lost bool `json:"lost,omitempty"`
}
