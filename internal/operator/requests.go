package operator

import (
	"time"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/redrive"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// RunRequest requests a run of a job.
type RunRequest struct {
	// The job is the first of these that is set: a job of Go code; a job file that was already
	// read; a job file from any source; its path; the name of a job that the application carries
	// (Config.Files), that is registered, or that has a file at the path of its newest execution.
	Job     *model.Job     `json:"-"`
	Checked *jobfile.File  `json:"-"`
	Source  jobfile.Source `json:"-"`
	File    string         `json:"file,omitempty"`
	Name    string         `json:"job,omitempty"`

	// Params are texts by name, typed and checked by the job's declarations.
	Params map[string]string `json:"params,omitempty"`
	// Folder is the base of relative paths in Params; empty means the folder of the job file (rule
	// L1a). The command passes its working directory.
	Folder string `json:"-"`
	// Exactly are typed parameters, from a caller in Go; they are not checked, and no incrementer
	// is called. Declared paths get their stored text. nil means Params.
	Exactly *core.Parameters `json:"-"`
	// Again requests a new instance for parameters with a complete or abandoned instance: the
	// newest such instance is resumed if it has not completed.
	Again bool `json:"again,omitempty"`
	// Next requests the instance after the newest one, made by the job's incrementer.
	Next bool `json:"next,omitempty"`
	// FromStart runs everything in a resumed instance again.
	FromStart bool `json:"from_start,omitempty"`
	// AcceptChanges resumes an instance although its definition has changed in work that is already
	// done (rule F4), or in a file that a reader continues (rule C15).
	AcceptChanges bool `json:"accept_changes,omitempty"`
	// AsBegun resumes an instance with the last attempt's job file, from the history, unless
	// FromStart is set: for a caller that drafts the file each time.
	AsBegun bool `json:"-"`
	// Key is the key of a client's request, which Once has claimed, or zero.
	Key ports.RequestKey `json:"-"`
	// Task is the task that runs the job, or 0.
	Task int64 `json:"-"`
	// On selects the workers that may continue the execution of the task; nil means any.
	On *core.Placement `json:"-"`
	// Hooks are for callers in the same process.
	Hooks `json:"-"`

	backfill bool // run by a backfill
}

// RestartRequest requests another attempt of an execution's instance.
type RestartRequest struct {
	Execution core.JobExecutionID `json:"execution"`
	// The job is as in RunRequest; if none is set, the one with which the execution was started.
	Job     *model.Job     `json:"-"`
	Checked *jobfile.File  `json:"-"`
	Source  jobfile.Source `json:"-"`
	File    string         `json:"file,omitempty"`
	Name    string         `json:"job,omitempty"`

	// Params change parameters that do not identify the instance, as texts by name; those not given
	// keep their values (rule L3r). Folder is as in RunRequest.
	Params map[string]string `json:"params,omitempty"`
	Folder string            `json:"-"`
	// Given is as in RedriveRequest.
	Given func(specs []core.ParameterSpec, params map[string]string) error `json:"-"`

	// FromStart runs everything again.
	FromStart bool `json:"from_start,omitempty"`
	// From is a step or another element of the flow: it and the elements after it run again, even
	// if they completed, and earlier elements keep their results (rule F3a). Empty means that
	// incomplete work is resumed.
	From string `json:"from,omitempty"`
	// IfComplete allows From to run a part of a completed execution again.
	IfComplete bool `json:"if_complete,omitempty"`
	// The others are as in RunRequest.
	AcceptChanges bool             `json:"accept_changes,omitempty"`
	Key           ports.RequestKey `json:"-"`
	Task          int64            `json:"-"`
	On            *core.Placement  `json:"-"`
	Hooks         `json:"-"`
}

// Edit is a person's correction of a skipped item.
type Edit = redrive.Edit

// RedriveRequest requests to run the skipped items of an execution through their step again.
type RedriveRequest struct {
	Execution core.JobExecutionID `json:"execution"`
	// Step is the step with the items to redrive; empty means the only one that has any.
	Step string `json:"step,omitempty"`
	// Edited are items by the number of their skip: only these are redriven. nil means all that are
	// left, as stored.
	Edited map[int64]Edit `json:"edited,omitempty"`
	// Params change parameters of the execution.
	Params map[string]string `json:"params,omitempty"`
	// Given is called with the parameters of the job and with Params before these are used, for
	// example to read the files that are named for secret ones; may be nil.
	Given func(specs []core.ParameterSpec, params map[string]string) error `json:"-"`
	// The others are as in RunRequest; without a file, the one with which the execution was started
	// counts.
	Folder  string           `json:"-"`
	Checked *jobfile.File    `json:"-"`
	Source  jobfile.Source   `json:"-"`
	File    string           `json:"file,omitempty"`
	Key     ports.RequestKey `json:"-"`
	Hooks   `json:"-"`
}

// jobSource selects a job by the first of its fields that is set.
type jobSource struct {
	job     *model.Job
	checked *jobfile.File
	from    jobfile.Source
	name    string
}

func (s jobSource) isZero() bool {
	return s.job == nil && s.checked == nil && s.from.IsZero() && s.name == ""
}

func fileOf(from jobfile.Source, path string) jobfile.Source {
	if from.IsZero() {
		return jobfile.Path(path)
	}
	return from
}

func (r RunRequest) source() jobSource {
	return jobSource{r.Job, r.Checked, fileOf(r.Source, r.File), r.Name}
}

func (r RestartRequest) source() jobSource {
	return jobSource{r.Job, r.Checked, fileOf(r.Source, r.File), r.Name}
}

func (r RedriveRequest) source() jobSource {
	return jobSource{checked: r.Checked, from: fileOf(r.Source, r.File)}
}

// Hooks are a caller's functions for a run in the same process.
type Hooks struct {
	// Stop requests a stop of a Run when it is closed; may be nil.
	Stop <-chan struct{}
	// OnNotice receives notices before the run, and while it waits for missing workers; may be nil.
	OnNotice func(Notice)
	// OnTarget receives the target of each writer when the writer is made; may be nil. It is called
	// from many goroutines.
	OnTarget func(Target)
}

func (h Hooks) notice(n Notice) {
	if h.OnNotice != nil {
		h.OnNotice(n)
	}
}

// NoticeKind is the kind of a Notice.
type NoticeKind string

// The kinds of a Notice.
const (
	// NoticeResumed means that the newest instance has not completed, so it is resumed.
	NoticeResumed NoticeKind = "resumed"
	// NoticeChanged means that the job file has changed since Execution; Changes lists the changes.
	NoticeChanged NoticeKind = "changed"
	// NoticeFileGone means that the job file is gone, or there was none if File is empty; it is
	// taken from the history.
	NoticeFileGone NoticeKind = "file_gone"
	// NoticeOtherFile means that Execution ran the job of this name from another file, Was; both
	// share the instances of the job.
	NoticeOtherFile NoticeKind = "other_file"
	// NoticeNotRedriven means that these items cannot be redriven as stored.
	NoticeNotRedriven NoticeKind = "not_redriven"
	// NoticeNoWorker means that Execution is parked, and no live worker continues it.
	NoticeNoWorker NoticeKind = "no_worker"
	// NoticePlaced means that Execution has work that waits for certain workers.
	NoticePlaced NoticeKind = "placed"
	// NoticeKeyHeld means that Execution has the key of an instance, which waits for its end.
	NoticeKeyHeld NoticeKind = "key_held"
)

// Notice is a message for the caller of a run, before it or while it waits.
type Notice struct {
	Kind      NoticeKind          `json:"kind"`
	Execution core.JobExecutionID `json:"execution,omitempty"`
	Status    core.Status         `json:"status,omitempty"`
	File      string              `json:"file,omitempty"`
	// Was is the other file of the job; WasGone means that it does not exist any more.
	Was     string `json:"was,omitempty"`
	WasGone bool   `json:"was_gone,omitempty"`
	// Actions show the changes.
	Actions []Action `json:"actions,omitempty"`
	// Changes are the changes of the job file.
	Changes []jobfile.Change `json:"changes,omitempty"`
	// FromStart means that everything runs again, so that the changes do not matter.
	FromStart bool `json:"from_start,omitempty"`
	// Items are the items that cannot be redriven, with reasons.
	Items []string `json:"items,omitempty"`
	// Waiting describes the work that the execution waits for.
	Waiting *Waiting `json:"waiting,omitempty"`
	// Placed is its work that waits for certain workers.
	Placed []PlacedWork `json:"placed,omitempty"`
}

// PurgeRequest selects executions to delete; running ones are never deleted.
type PurgeRequest struct {
	// Instance is the only instance to delete, whatever its age and status: of the other fields
	// only DryRun may be set with it.
	Instance core.JobInstanceID `json:"instance,omitempty"`
	// Job is the name of one job; empty means all.
	Job string `json:"job,omitempty"`
	// Statuses are those to delete; empty means COMPLETED, ABANDONED.
	Statuses []core.Status `json:"statuses,omitempty"`
	// EndedBefore is required without Instance.
	EndedBefore time.Time `json:"ended_before,omitzero"`
	// KeepLast is the number of newest instances of each job to keep.
	KeepLast int `json:"keep_last,omitempty"`
	// DryRun only counts.
	DryRun bool `json:"dry_run,omitempty"`
	// Batches is the maximum number of batches of 500 executions; 0 means no limit.
	Batches int `json:"-"`
}

// Purged counts the deleted rows.
type Purged struct {
	Instances    int64 `json:"instances"`
	Executions   int64 `json:"executions"`
	Steps        int64 `json:"steps"`
	SkippedItems int64 `json:"skipped_items"`
	DryRun       bool  `json:"dry_run,omitempty"`
}

type (
	// Refusal is the error of a refused act, which changed nothing.
	Refusal = refusal.Refusal
	// Reason is why an act was refused.
	Reason = refusal.Reason
	// Action is a possible action, as data.
	Action = refusal.Action
	// Owner is the process that runs an execution.
	Owner = refusal.Owner
)
