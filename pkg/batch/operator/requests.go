package operator

import (
	"time"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// RunRequest asks for a run of a job.
type RunRequest struct {
	// The job is the first of these that is set: a job of Go code; a job file that was
	// read already; a job file wherever it is; the path of a job file; the name of a job
	// that the application carries (Config.Files), that is registered, or whose file is read
	// from where its newest execution had it.
	Job     *core.Job      `json:"-"`
	Checked *jobfile.File  `json:"-"`
	Source  jobfile.Source `json:"-"`
	File    string         `json:"file,omitempty"`
	Name    string         `json:"job,omitempty"`

	// Params are texts by name, typed and checked by the job's declarations.
	Params map[string]string `json:"params,omitempty"`
	// Folder is where relative paths in Params begin; empty: at the folder of the job file
	// (rule L1a). The command gives its working directory.
	Folder string `json:"-"`
	// Exactly are typed parameters, of a caller in Go; they are not checked, and no
	// incrementer is asked. Declared paths get the text by which they are stored. nil: Params.
	Exactly *core.Parameters `json:"-"`
	// Again asks for a new instance of parameters whose instance is complete or
	// abandoned: the newest of these is resumed where it has not completed.
	Again bool `json:"again,omitempty"`
	// Next asks for the instance after the newest one, which the job's incrementer makes.
	Next bool `json:"next,omitempty"`
	// FromStart runs everything of a resumed instance anew.
	FromStart bool `json:"from_start,omitempty"`
	// AcceptChanges resumes an instance though its definition has changed in what was
	// done already (rule F4), or a file that a reader continues (rule C15).
	AcceptChanges bool `json:"accept_changes,omitempty"`
	// AsBegun resumes an instance with the job file that its last attempt had, as the history
	// has it, and not with that of the request: for a file that the caller drafts anew each
	// time. With FromStart the file of the request counts.
	AsBegun bool `json:"-"`
	// Key is the key of a client's request, which Once has claimed; zero: none.
	Key core.RequestKey `json:"-"`
	// Task is the task that runs the job; 0: none.
	Task int64 `json:"-"`
	// On says which workers may continue the execution of the task; nil: any.
	On *core.Placement `json:"-"`
	// Hooks are for callers of the same process.
	Hooks `json:"-"`

	backfill bool // of a backfill
}

// RestartRequest asks for another attempt of an execution's instance.
type RestartRequest struct {
	Execution core.JobExecutionID `json:"execution"`
	// The job is as in RunRequest; none: that with which the execution was started.
	Job     *core.Job      `json:"-"`
	Checked *jobfile.File  `json:"-"`
	Source  jobfile.Source `json:"-"`
	File    string         `json:"file,omitempty"`
	Name    string         `json:"job,omitempty"`

	// Params change parameters that do not identify, as texts by name; those not given keep their
	// values (rule L3r). Folder is as in RunRequest.
	Params map[string]string `json:"params,omitempty"`
	Folder string            `json:"-"`
	// Given is as in RedriveRequest.
	Given func(specs []core.ParameterSpec, params map[string]string) error `json:"-"`

	// FromStart runs everything anew.
	FromStart bool `json:"from_start,omitempty"`
	// From is a step or another element of the flow: it and what comes after it run anew, though
	// they completed, and what came before keeps its results (rule F3a). Empty: what is not
	// complete is resumed.
	From string `json:"from,omitempty"`
	// IfComplete lets From run a part of an execution again that completed.
	IfComplete bool `json:"if_complete,omitempty"`
	// AcceptChanges is as in RunRequest.
	AcceptChanges bool `json:"accept_changes,omitempty"`
	// Key is as in RunRequest.
	Key core.RequestKey `json:"-"`
	// Task is as in RunRequest.
	Task int64 `json:"-"`
	// On is as in RunRequest.
	On    *core.Placement `json:"-"`
	Hooks `json:"-"`
}

// RedriveRequest asks to run the skipped items of an execution through their step
// again.
type RedriveRequest struct {
	Execution core.JobExecutionID `json:"execution"`
	// Step is the step whose items are redriven; empty: the only one that has any.
	Step string `json:"step,omitempty"`
	// Edited are items by the number of their skip: only these are redriven. nil: all
	// that are left, as they are stored.
	Edited map[int64]Edit `json:"edited,omitempty"`
	// Params change parameters of the execution.
	Params map[string]string `json:"params,omitempty"`
	// Given is called with the parameters of the job and with Params before these are used, such as to
	// read the files that are named for secret ones; nil: they are used as they are.
	Given func(specs []core.ParameterSpec, params map[string]string) error `json:"-"`
	// Folder is as in RunRequest.
	Folder string `json:"-"`
	// Checked, Source and File are as in RunRequest; none: the file with which the
	// execution was started.
	Checked *jobfile.File  `json:"-"`
	Source  jobfile.Source `json:"-"`
	File    string         `json:"file,omitempty"`
	// Key is as in RunRequest.
	Key   core.RequestKey `json:"-"`
	Hooks `json:"-"`
}

// source says which job is meant, by the first of its fields that is set.
type source struct {
	job     *core.Job
	checked *jobfile.File
	from    jobfile.Source
	name    string
}

func (s source) isZero() bool {
	return s.job == nil && s.checked == nil && s.from.IsZero() && s.name == ""
}

// fileOf is the source of a job file, or the path of one.
func fileOf(from jobfile.Source, path string) jobfile.Source {
	if from.IsZero() {
		return jobfile.Path(path)
	}
	return from
}

func (r RunRequest) source() source {
	return source{r.Job, r.Checked, fileOf(r.Source, r.File), r.Name}
}

func (r RestartRequest) source() source {
	return source{r.Job, r.Checked, fileOf(r.Source, r.File), r.Name}
}

func (r RedriveRequest) source() source {
	return source{checked: r.Checked, from: fileOf(r.Source, r.File)}
}

// Hooks are what a caller of the same process hands to a run.
type Hooks struct {
	// Stop asks for a stop of a Run when it is closed; nil: nothing does.
	Stop <-chan struct{}
	// OnNotice is called with what is worth a line before the run, and while it waits for workers
	// that are not there; nil: nothing is.
	OnNotice func(Notice)
	// OnTarget is called with what a writer writes to, when it is made; nil: nothing is. It is
	// called from many goroutines.
	OnTarget func(Target)
}

func (h Hooks) notice(n Notice) {
	if h.OnNotice != nil {
		h.OnNotice(n)
	}
}

// NoticeKind is what a Notice is about.
type NoticeKind string

// The kinds of a Notice.
const (
	// NoticeResumed: the newest instance has not completed, so it is resumed.
	NoticeResumed NoticeKind = "resumed"
	// NoticeChanged: the job file has changed since Execution; Changes says in what.
	NoticeChanged NoticeKind = "changed"
	// NoticeFileGone: the job file is gone, or File is empty and it was in none; it is taken from
	// the history.
	NoticeFileGone NoticeKind = "file_gone"
	// NoticeOtherFile: Execution ran the job of this name from another file, Was; both share
	// the instances of the job.
	NoticeOtherFile NoticeKind = "other_file"
	// NoticeNotRedriven: these items cannot be redriven as they are stored.
	NoticeNotRedriven NoticeKind = "not_redriven"
	// NoticeNoWorker: Execution is parked, and no worker lives that continues it.
	NoticeNoWorker NoticeKind = "no_worker"
	// NoticePlaced: Execution has work that waits for certain workers.
	NoticePlaced NoticeKind = "placed"
	// NoticeKeyHeld: Execution has the key of an instance, which waits for its end.
	NoticeKeyHeld NoticeKind = "key_held"
)

// Notice is worth a line to who waits for a run, before it or while it waits.
type Notice struct {
	Kind      NoticeKind          `json:"kind"`
	Execution core.JobExecutionID `json:"execution,omitempty"`
	Status    core.Status         `json:"status,omitempty"`
	File      string              `json:"file,omitempty"`
	// Was is the other file of the job, and WasGone says that it is not there any more.
	Was     string `json:"was,omitempty"`
	WasGone bool   `json:"was_gone,omitempty"`
	// Actions are the ways to see what changed.
	Actions []Action `json:"actions,omitempty"`
	// Changes are those of the job file.
	Changes []jobfile.Change `json:"changes,omitempty"`
	// FromStart says that everything runs anew, so that the changes do not matter.
	FromStart bool `json:"from_start,omitempty"`
	// Items are what cannot be redriven, and why.
	Items []string `json:"items,omitempty"`
	// Waiting is what the execution waits for.
	Waiting *Waiting `json:"waiting,omitempty"`
	// Placed is its work that waits for certain workers.
	Placed []PlacedWork `json:"placed,omitempty"`
}

// PurgeRequest selects executions to delete; what runs is never deleted.
type PurgeRequest struct {
	// Instance is the only one to delete, whatever its age and status: no other field but
	// DryRun goes with it.
	Instance core.JobInstanceID `json:"instance,omitempty"`
	// Job is the name of one job; empty: all.
	Job string `json:"job,omitempty"`
	// Statuses are those to delete; empty: COMPLETED, ABANDONED.
	Statuses []core.Status `json:"statuses,omitempty"`
	// EndedBefore is required without Instance.
	EndedBefore time.Time `json:"ended_before,omitzero"`
	// KeepLast keeps so many of the newest instances of each job.
	KeepLast int `json:"keep_last,omitempty"`
	// DryRun counts only.
	DryRun bool `json:"dry_run,omitempty"`
	// Batches is after how many batches of 500 executions it ends; 0: when no more is there.
	Batches int `json:"-"`
}

// Purged is what was deleted.
type Purged struct {
	Instances    int64 `json:"instances"`
	Executions   int64 `json:"executions"`
	Steps        int64 `json:"steps"`
	SkippedItems int64 `json:"skipped_items"`
	DryRun       bool  `json:"dry_run,omitempty"`
}
