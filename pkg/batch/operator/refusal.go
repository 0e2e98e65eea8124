package operator

import (
	"encoding/json"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Reason says why an act was refused.
type Reason string

// The reasons of a Refusal.
const (
	// ReasonNotFound: there is no such execution (core.ErrNotFound).
	ReasonNotFound Reason = "not_found"
	// ReasonNoSuchJob: the job's name is not known (core.ErrNoSuchJob).
	ReasonNoSuchJob Reason = "no_such_job"
	// ReasonComplete: the instance is complete (*core.InstanceCompleteError).
	ReasonComplete Reason = "complete"
	// ReasonRunning: it runs (*core.AlreadyRunningError).
	ReasonRunning Reason = "running"
	// ReasonExclusive: another execution runs that it must not run beside
	// (*core.ExclusiveError).
	ReasonExclusive Reason = "exclusive"
	// ReasonOver: there is nothing to stop.
	ReasonOver Reason = "over"
	// ReasonAbandoned: it was abandoned (core.ErrAbandoned).
	ReasonAbandoned Reason = "abandoned"
	// ReasonUnknown: its outcome is not known (core.ErrUnknownStatus).
	ReasonUnknown Reason = "unknown_outcome"
	// ReasonNotRestartable: the job may not be restarted (core.ErrNotRestartable).
	ReasonNotRestartable Reason = "not_restartable"
	// ReasonNotNewest: the instance has a newer execution (core.ErrNotMostRecent).
	ReasonNotNewest Reason = "not_newest"
	// ReasonIllegalState: the status does not allow it (core.ErrIllegalState,
	// *core.TransitionError).
	ReasonIllegalState Reason = "illegal_state"
	// ReasonRedrive: the execution is a redrive, which only a redrive continues.
	ReasonRedrive Reason = "redrive"
	// ReasonNothingSkipped: no skipped items are left to redrive.
	ReasonNothingSkipped Reason = "nothing_skipped"
	// ReasonWhichStep: several steps have skipped items.
	ReasonWhichStep Reason = "which_step"
	// ReasonItems: items cannot be redriven as they are stored or given.
	ReasonItems Reason = "items"
	// ReasonChanged: the job file has changed in what was done (*jobfile.ChangedError).
	ReasonChanged Reason = "changed"
	// ReasonNoIncrementer: the job has none (core.ErrNoIncrementer).
	ReasonNoIncrementer Reason = "no_incrementer"
	// ReasonParameters: parameters are wrong (*core.ParameterError, joined).
	ReasonParameters Reason = "parameters"
	// ReasonFile: the job file cannot be read or is wrong (jobfile.Problems).
	ReasonFile Reason = "file"
	// ReasonStartLimit: a step was attempted as often as its start_limit allows. It is
	// the reason of an Explanation only: a restart is not refused, but fails at that step.
	ReasonStartLimit Reason = "start_limit"
	// ReasonFrom: the restart cannot begin at the element (*job.FromError).
	ReasonFrom Reason = "from"
	// ReasonKeyReused: the key of the request was used for another one
	// (*core.KeyReusedError).
	ReasonKeyReused Reason = "key_reused"
	// ReasonSchema: the tables of the history are missing or old (core.ErrSchemaMissing).
	ReasonSchema Reason = "schema"
)

// Refusal is an act that was refused: nothing was changed.
type Refusal struct {
	Reason Reason
	// Execution is the one that the caller named; 0: none, as at a launch.
	Execution core.JobExecutionID
	// Last is the last execution of the instance, which a changed file is compared with.
	Last core.JobExecutionID
	// Err is the cause.
	Err error
	// Details are what is wrong one by one, where Err has it all in one line.
	Details []string
	// Diff has the lines of a job file that are different where that is refused, as a unified
	// diff.
	Diff string
	// Actions are the ways out, the best first.
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

// ActionKind is what may be done.
type ActionKind string

// The kinds of an Action: what a client of the service may ask it for next.
const (
	ActShow    ActionKind = "show"    // look at Execution
	ActHistory ActionKind = "history" // list the executions of Job
	ActExplain ActionKind = "explain" // why Execution ended, and what a restart does
	ActWatch   ActionKind = "watch"   // look at the progress of Job
	ActSkips   ActionKind = "skips"   // list the skipped items of Execution
	ActCompare ActionKind = "compare" // the definition of Execution, or its file Name, with File
	ActRun     ActionKind = "run"     // run File with Params
	ActAgain   ActionKind = "again"   // run File with Params as a new instance
	ActNext    ActionKind = "next"    // run the next instance of File
	ActRestart ActionKind = "restart" // restart Execution
	ActRedrive ActionKind = "redrive" // redrive what Execution has left
	ActStop    ActionKind = "stop"    // ask Execution to stop
	ActAbandon ActionKind = "abandon" // give Execution up
	ActRecover ActionKind = "recover" // end what has lost its process
	ActWork    ActionKind = "work"    // run a worker: Execution is parked and waits for one
	ActMigrate ActionKind = "migrate" // make or update the tables
	ActHelp    ActionKind = "help"    // list the parameters of File
	ActExport  ActionKind = "export"  // export the skipped items of Execution, correct and redrive them
	// ActIncrementer: give the job in File an incrementer.
	ActIncrementer ActionKind = "incrementer"
)

// Action is something that may be done, as data.
type Action struct {
	Kind      ActionKind          `json:"kind"`
	Execution core.JobExecutionID `json:"execution,omitempty"`
	// Status is that of Execution, where it matters to the words.
	Status core.Status `json:"status,omitempty"`
	Job    string      `json:"job,omitempty"`
	// File is the job file; empty where the history has it.
	File string `json:"file,omitempty"`
	// Name is that of a file of the definition; empty: it is the only one.
	Name string `json:"name,omitempty"`
	// Params are texts by name, as a request has them.
	Params map[string]string `json:"params,omitempty"`
	// Paths are the names of those that are paths: these are absolute.
	Paths []string `json:"paths,omitempty"`
	Step  string   `json:"step,omitempty"`

	AcceptChanges bool `json:"accept_changes,omitempty"`
	FromStart     bool `json:"from_start,omitempty"`
	// From and IfComplete are as in RestartRequest.
	From       string `json:"from,omitempty"`
	IfComplete bool   `json:"if_complete,omitempty"`
	// NeedsFile says that the request must name a job file: the history has none.
	NeedsFile bool `json:"needs_file,omitempty"`
	// Owner is the process that is dead, of recover.
	Owner *Owner `json:"owner,omitempty"`
	// Open is what the execution waits for, of work.
	Open core.OpenWork `json:"open,omitzero"`
}
