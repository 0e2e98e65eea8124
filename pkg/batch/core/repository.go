package core

import (
	"context"
	"time"
)

// JobRef is the guard of a write about a job execution: it applies only while
// the row has this owner and epoch.
type JobRef struct {
	ID    JobExecutionID
	Owner Owner
	Epoch int64
}

// StepRef is the guard of a write about a step execution.
type StepRef struct {
	ID    StepExecutionID
	Owner Owner
	Epoch int64
}

// LaunchRequest asks for a new execution.
type LaunchRequest struct {
	JobName     string
	Params      Parameters
	Definition  Definition
	Restartable bool
	Owner       Owner
	Lease       time.Duration
	// Dead reports whether an owner is known to be dead: its execution is then
	// taken over before its lease expired. nil: nobody is known to be dead.
	Dead func(Owner) bool
	// RedriveOf is the execution whose skipped items the new one redrives; 0: none.
	RedriveOf JobExecutionID
}

// Launched is a new execution.
type Launched struct {
	Execution *JobExecution
	// Previous is the instance's execution before this one; nil for the first.
	Previous *JobExecution
	// TookOver says that Previous was running and its owner was dead or its lease
	// expired; it is FAILED now.
	TookOver bool
}

// Launches creates executions and takes over lost ones.
type Launches interface {
	// Launch makes or finds the instance and creates an execution in STARTING, in
	// one transaction and with a number of statements that does not depend on the
	// history. It refuses with *InstanceCompleteError, *AlreadyRunningError,
	// ErrNotRestartable, ErrAbandoned or ErrUnknownStatus. Of two processes at once
	// exactly one succeeds (rule L1); an expired lease or dead owner is taken over
	// in the same transaction (rules L2, L5).
	Launch(ctx context.Context, req LaunchRequest) (Launched, error)
	// Heartbeat extends the lease from now (the database's clock, rule L6) and reads
	// the stop flag. ErrLostOwner if the guard finds no row.
	Heartbeat(ctx context.Context, ref JobRef, lease time.Duration) (stop bool, err error)
	// RequestStop asks the owner of a running execution to stop, from any process.
	RequestStop(ctx context.Context, id JobExecutionID) (Answer, error)
}

// JobChange is a transition of a job execution.
type JobChange struct {
	To       Status
	ExitCode string
	Error    string
	// Context is written if it changed; nil leaves it.
	Context *ExecutionContext
}

// StepChange is the final transition of a step execution.
type StepChange struct {
	To       Status
	ExitCode string
	Error    string
	Counters Counters
	Context  *ExecutionContext
	Out      map[string]any
}

// Transitions changes the status of executions: each is one guarded UPDATE.
type Transitions interface {
	// ChangeJob moves a job execution. Duplicate is success to the caller; a
	// Rejected answer comes with a *TransitionError (wrapping ErrLostOwner where
	// owner or epoch differ).
	ChangeJob(ctx context.Context, ref JobRef, change JobChange) (Answer, error)
	// StartStep inserts a step execution in STARTED under the guard of its job, with
	// the job's owner and epoch, counters of zero, and the position and context of
	// earlier where it is not nil.
	StartStep(ctx context.Context, job JobRef, name string, earlier *StepExecution) (*StepExecution, error)
	// EndStep moves a step execution to its final status.
	EndStep(ctx context.Context, ref StepRef, change StepChange) (Answer, error)
}

// Checkpoint is what a chunk commits beside its rows.
type Checkpoint struct {
	Counters Counters
	Position Position
	// Context is written if it changed; nil leaves it.
	Context *ExecutionContext
	// Skipped are the skips that become facts with this commit (rule C12).
	Skipped []SkippedItem
}

// CheckpointStore commits a chunk's progress.
type CheckpointStore interface {
	// Checkpoint writes counters and position with one guarded UPDATE in the
	// transaction that ctx carries for the store's database. ErrLostOwner if the
	// guard finds no row: the caller rolls back (rules C5, R2, R3).
	Checkpoint(ctx context.Context, ref StepRef, c Checkpoint) error
	// Reclaim answers what is committed of a step whose COMMIT failed (rule C10): it
	// raises the epoch of the guard row, which waits for the old transaction to
	// end, so that counters and position are final. The new ref replaces the old.
	// ErrLostOwner if the guard finds no row.
	Reclaim(ctx context.Context, ref StepRef) (StepRef, Checkpoint, error)
	// Database is the name of the database in which the store's rows live.
	Database() string
}

// ExecutionFilter selects executions; zero fields select all.
type ExecutionFilter struct {
	JobName  string
	Statuses []Status
	// Before selects executions with a smaller id: the key of the next page.
	Before JobExecutionID
	// RedriveOf selects the executions that redrive this one's skipped items.
	RedriveOf JobExecutionID
	// Limit is the page size; 0 means 50.
	Limit int
}

// Explorer reads the history.
type Explorer interface {
	Execution(ctx context.Context, id JobExecutionID) (*JobExecution, error)
	// Executions lists newest first.
	Executions(ctx context.Context, filter ExecutionFilter) ([]JobExecution, error)
	// Steps returns the step executions of one job execution, in order.
	Steps(ctx context.Context, id JobExecutionID) ([]StepExecution, error)
	// LastSteps returns the newest execution of each step of the instance, by name,
	// with the number of its attempts.
	LastSteps(ctx context.Context, id JobInstanceID) (map[string]StepHistory, error)
	// LastExecution returns the newest execution of the instance with this key;
	// ErrNotFound if there is none.
	LastExecution(ctx context.Context, jobName, key string) (*JobExecution, error)
}

// SkipFilter selects skipped items; zero fields select all.
type SkipFilter struct {
	Execution JobExecutionID
	Step      string
	Phase     Phase
	// After selects items with a greater id: the key of the next page.
	After int64
	// Left selects the items that no execution has redriven.
	Left bool
	// Limit is the page size; 0 means 50.
	Limit int
}

// SkippedItems is what became of skips (rule C12).
type SkippedItems interface {
	// SkippedItems lists stored skips, in the order in which they were stored.
	SkippedItems(ctx context.Context, filter SkipFilter) ([]SkippedItem, error)
	// SkippedItem returns one; ErrNotFound if there is none.
	SkippedItem(ctx context.Context, id int64) (*SkippedItem, error)
	// MarkRedriven notes, in the transaction that ctx carries for the repository's
	// database, that an execution has processed the items after all. Where another
	// one did so first it is an ErrRedriven: the caller rolls back, so that no item
	// is redriven twice.
	MarkRedriven(ctx context.Context, by JobExecutionID, ids []int64) error
}

// StepHistory is the newest execution of a step in an instance.
type StepHistory struct {
	Last     StepExecution
	Attempts int
}

// JobRepository is all of it. Functions ask for the smaller interfaces.
type JobRepository interface {
	Launches
	Transitions
	CheckpointStore
	Explorer
	SkippedItems
}
