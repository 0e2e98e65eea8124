package ports

import (
	"context"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// PurgeFilter selects executions to delete; active ones are never selected.
type PurgeFilter struct {
	// Instance is the only one to delete, whatever its age and status: only DryRun applies with it.
	Instance core.JobInstanceID
	JobName  string // empty means all jobs
	// Statuses are the statuses to delete; empty means COMPLETED, ABANDONED.
	Statuses []core.Status
	// EndedBefore is required without Instance.
	EndedBefore time.Time
	// KeepLast is the number of newest instances of each job to keep.
	KeepLast int
	// DryRun counts only.
	DryRun bool
	// Batch is the number of executions deleted per transaction; 0 means 500.
	Batch int
	// Batches is the maximum number of deleting batches; 0 means until nothing is left.
	Batches int
}

// Purged counts the deleted records.
type Purged struct {
	Instances, Executions, Steps, SkippedItems int64
	// Left are the leftovers of the deleted executions outside any database. A dry run does not look
	// for them.
	Left []LeftBehind
}

// Operations are the acts of operators on executions, from any process (rule L3). Each is guarded and
// leaves an audit row that names the actor.
type Operations interface {
	// Abandon moves an execution from STOPPING, STOPPED, FAILED or UNKNOWN to ABANDONED: its instance
	// will not be restarted. In STOPPING it is taken from its owner. A running or completed execution
	// is an *AlreadyRunningError or a *TransitionError, one with a later execution a *NotNewestError.
	Abandon(ctx context.Context, id core.JobExecutionID, by By) error
	// Recover ends executions with an expired lease, or with an owner that is dead according to dead,
	// as a launch would, and unfinished steps of executions that are over. It returns the ended
	// executions in their new state. Others are not touched.
	Recover(ctx context.Context, actor string, dead func(core.Owner) bool) ([]core.JobExecution, error)
	// Purge deletes old executions with their parameters, steps, skipped items and checkpoints, an
	// instance with its last execution; audit rows stay. An instance that the filter names is
	// ErrNotFound, or an *AlreadyRunningError if it is active.
	Purge(ctx context.Context, filter PurgeFilter, actor string) (Purged, error)
	// Audit lists the history of an execution, in order.
	Audit(ctx context.Context, id core.JobExecutionID) ([]AuditEntry, error)
}

// AuditEntry is one transition or operator's act.
type AuditEntry struct {
	At       time.Time
	Act      string
	Actor    string
	Step     core.StepExecutionID // 0 means the job execution
	From, To core.Status
	Epoch    int64
	Detail   string
}
