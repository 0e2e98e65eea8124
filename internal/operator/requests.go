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
	// The job is the first of these that is set; a name is a carried job, a
	// registered one, or that of its newest execution's file.
	Job     *model.Job     `json:"-"`
	Checked *jobfile.File  `json:"-"`
	Source  jobfile.Source `json:"-"`
	File    string         `json:"file,omitempty"`
	Name    string         `json:"job,omitempty"`

	// Params are texts, checked by the job's declarations.
	Params map[string]string `json:"params,omitempty"`
	// Folder is the base of relative paths; empty means the job file's folder
	// (rule L1a).
	Folder string `json:"-"`
	// Exactly are typed and unchecked, and no incrementer is called. Declared
	// paths get their stored text. nil means Params.
	Exactly *core.Parameters `json:"-"`
	// Again requests a new instance, or resumes the newest repetition.
	Again bool `json:"again,omitempty"`
	// Next requests the instance after the newest one, by the incrementer.
	Next bool `json:"next,omitempty"`
	// FromStart runs everything again.
	FromStart bool `json:"from_start,omitempty"`
	// AcceptChanges resumes in spite of changes in completed work (rule F4), or
	// in a file that a reader continues (rule C15).
	AcceptChanges bool `json:"accept_changes,omitempty"`
	// AsBegun resumes with the last attempt's job file, unless FromStart.
	AsBegun bool `json:"-"`
	// Key is a key that Once has claimed, or zero.
	Key ports.RequestKey `json:"-"`
	// Task runs the job, or is 0.
	Task int64 `json:"-"`
	// On selects the workers that may continue it; nil means any.
	On    *core.Placement `json:"-"`
	Hooks `json:"-"`

	backfill bool // run by a backfill
}

// RestartRequest requests another attempt of an execution's instance.
type RestartRequest struct {
	Execution core.JobExecutionID `json:"execution"`
	// Epoch: an execution that has another one, or is not the newest any more, is refused
	// (refusal.Moved); 0 means any.
	Epoch int64 `json:"epoch,omitempty"`
	// If none is set, the one with which it was started.
	Job     *model.Job     `json:"-"`
	Checked *jobfile.File  `json:"-"`
	Source  jobfile.Source `json:"-"`
	File    string         `json:"file,omitempty"`
	Name    string         `json:"job,omitempty"`

	// Params change parameters that do not identify the instance; others keep
	// their values (rule L3r).
	Params map[string]string                                                `json:"params,omitempty"`
	Folder string                                                           `json:"-"`
	Given  func(specs []core.ParameterSpec, params map[string]string) error `json:"-"`

	FromStart bool `json:"from_start,omitempty"`
	// From and the elements after it run again, even if completed (rule F3a);
	// empty resumes.
	From string `json:"from,omitempty"`
	// IfComplete allows From on a completed execution.
	IfComplete    bool             `json:"if_complete,omitempty"`
	AcceptChanges bool             `json:"accept_changes,omitempty"`
	Key           ports.RequestKey `json:"-"`
	Task          int64            `json:"-"`
	On            *core.Placement  `json:"-"`
	Hooks         `json:"-"`
}

// Edit is a person's correction of a skipped item.
type Edit = redrive.Edit

// RedriveRequest requests to run skipped items through their step again.
type RedriveRequest struct {
	Execution core.JobExecutionID `json:"execution"`
	// Epoch is as in RestartRequest. With it, items that were redriven since are refusal.Moved, too.
	Epoch int64 `json:"epoch,omitempty"`
	// Step may be empty if only one has skipped items.
	Step string `json:"step,omitempty"`
	// Edited are items by the number of their skip: only these are redriven.
	// nil means all, as stored.
	Edited map[int64]Edit    `json:"edited,omitempty"`
	Params map[string]string `json:"params,omitempty"`
	// Given may change Params before their use, for example read secret files;
	// may be nil.
	Given func(specs []core.ParameterSpec, params map[string]string) error `json:"-"`
	// As in RunRequest; without a file, the one with which it was started.
	Folder  string           `json:"-"`
	Checked *jobfile.File    `json:"-"`
	Source  jobfile.Source   `json:"-"`
	File    string           `json:"file,omitempty"`
	Key     ports.RequestKey `json:"-"`
	Task    int64            `json:"-"`
	Hooks   `json:"-"`

	partly bool // of a plan: without the items that cannot be redriven
}

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
	// Stop may be nil.
	Stop <-chan struct{}
	// OnNotice may be nil.
	OnNotice func(Notice)
	// OnTarget receives the target of each writer, from many goroutines; may be
	// nil.
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
	// NoticeResumed: the newest instance has not completed.
	NoticeResumed NoticeKind = "resumed"
	// NoticeChanged: the job file has changed since Execution.
	NoticeChanged NoticeKind = "changed"
	// NoticeFileGone: the job file is taken from the history.
	NoticeFileGone NoticeKind = "file_gone"
	// NoticeOtherFile: Execution ran the job from Was; both share its
	// instances.
	NoticeOtherFile NoticeKind = "other_file"
	// NoticeNotRedriven: these items cannot be redriven as stored.
	NoticeNotRedriven NoticeKind = "not_redriven"
	// NoticeNoWorker: no live worker continues Execution.
	NoticeNoWorker NoticeKind = "no_worker"
	// NoticePlaced: Execution has work that waits for certain workers.
	NoticePlaced NoticeKind = "placed"
	// NoticeKeyHeld: Execution has the key of an instance.
	NoticeKeyHeld NoticeKind = "key_held"
)

// Notice is a message for the caller of a run, before it or while it waits.
type Notice struct {
	Kind      NoticeKind          `json:"kind"`
	Execution core.JobExecutionID `json:"execution,omitempty"`
	Status    core.Status         `json:"status,omitempty"`
	File      string              `json:"file,omitempty"`
	Was       string              `json:"was,omitempty"`
	WasGone   bool                `json:"was_gone,omitempty"`
	Actions   []Action            `json:"actions,omitempty"`
	Changes   []jobfile.Change    `json:"changes,omitempty"`
	// FromStart: the changes do not matter.
	FromStart bool         `json:"from_start,omitempty"`
	Items     []string     `json:"items,omitempty"`
	Waiting   *Waiting     `json:"waiting,omitempty"`
	Placed    []PlacedWork `json:"placed,omitempty"`
}

// PurgeRequest selects executions to delete; running ones are never deleted.
type PurgeRequest struct {
	// Instance is deleted whatever its age and status; only DryRun may be set
	// with it.
	Instance core.JobInstanceID `json:"instance,omitempty"`
	Job      string             `json:"job,omitempty"`
	// Statuses: empty means COMPLETED, ABANDONED.
	Statuses []core.Status `json:"statuses,omitempty"`
	// EndedBefore is required without Instance.
	EndedBefore time.Time `json:"ended_before,omitzero"`
	// KeepLast is of each job's newest instances.
	KeepLast int  `json:"keep_last,omitempty"`
	DryRun   bool `json:"dry_run,omitempty"`
	// Batches of 500 executions; 0 means no limit.
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
	// Refusal is the error of a refused act.
	Refusal = refusal.Refusal
	// Reason is why it was refused.
	Reason = refusal.Reason
	// Action is a possible action.
	Action = refusal.Action
	// Owner is the process that runs it.
	Owner = refusal.Owner
)
