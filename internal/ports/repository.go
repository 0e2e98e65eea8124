package ports

import (
	"context"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// JobRef is the guard of a write about a job execution: it applies only while the row has this owner
// and epoch.
type JobRef struct {
	ID    core.JobExecutionID
	Owner core.Owner
	Epoch int64
	// Branch is the part of a branch of a split that a worker walks (rule P8): Owner and Epoch are then
	// the part's, and guard the writes of the walk. 0 means the job's own.
	Branch core.StepExecutionID
}

// StepRef is the guard of a write about a step execution.
type StepRef struct {
	ID    core.StepExecutionID
	Owner core.Owner
	Epoch int64
}

// LaunchRequest requests a new execution.
type LaunchRequest struct {
	JobName     string
	Params      core.Parameters
	Definition  core.Definition
	Restartable bool
	Owner       core.Owner
	Lease       time.Duration
	// Dead reports whether an owner is known to be dead: its execution is then taken over before its
	// lease expires. nil means that no owner is.
	Dead func(core.Owner) bool
	// ForWorkers makes an execution that is PARKED and has no owner: a worker begins it.
	ForWorkers bool
	// Exclusive is the key that no other active execution of the job may have; "" lets any run in
	// parallel.
	Exclusive core.ExclusiveKey
	// RedriveOf is the execution of the skipped items that the new one redrives; 0 means none.
	RedriveOf core.JobExecutionID
	// On restricts the workers that may continue the execution; nil means any.
	On *core.Placement
	// Task is the task that runs the job; 0 means none.
	Task int64
	// Parent is the execution that runs the new one as a step; 0 means none.
	Parent core.JobExecutionID
	// ParentCall and ParentAnew are as in Job.
	ParentCall core.StepExecutionID
	ParentAnew core.JobExecutionID
	// Confinement is as in Job.
	Confinement *core.Confinement
	// Backfill marks an instance that the launch makes: the next instance does not follow it
	// (rule L3a).
	Backfill bool
	// FromStart makes an attempt that resumes nothing of earlier ones: its job context has only
	// FromStartKey.
	FromStart bool
	// From makes an attempt that resumes nothing of earlier ones, but keeps the work in its journal;
	// nil means none.
	From *LaunchFrom
	// Actor requested the launch from the owner, for the audit; "" means the owner itself.
	Actor string
	// Request is the client request that the launch serves; zero means none. A *RequestStartedError if
	// it has started an execution before.
	Request RequestKey
	// Again means that the reply to the same request was lost: the execution may exist already. Owner
	// must be the owner of this one launch.
	Again bool
}

// LaunchFrom makes an attempt that keeps a part of the earlier attempts' work. Its job context is
// theirs, with FromStartKey.
type LaunchFrom struct {
	// After is the newest execution of the instance, from which the attempt was made: with another one
	// the launch is refused with a *NotNewestError.
	After core.JobExecutionID
	// IfComplete lets it follow an execution that completed.
	IfComplete bool
	// Visits are stored with the launch: the work that the attempt keeps.
	Visits []FlowVisit
}

// Launched is a new execution.
type Launched struct {
	Execution *core.JobExecution
	// Previous is the instance's execution before this one; nil for the first.
	Previous *core.JobExecution
	// TookOver means that Previous was running and its owner was dead or its lease expired; it is
	// FAILED now.
	TookOver bool
}

// Launches creates executions and takes over lost ones.
type Launches interface {
	// Launch makes or finds the instance and creates an execution in STARTING, in
	// one transaction and with a number of statements that does not depend on the
	// history. It refuses with *InstanceCompleteError, *AlreadyRunningError,
	// ErrNotRestartable, ErrAbandoned, ErrUnknownStatus, or ErrIllegalState for an
	// instance that has no execution. A step that is unfinished though its job is
	// over is an *AlreadyRunningError as well. Another execution that runs with the same
	// key is an *ExclusiveError (rule L12), and parameters that named another instance before are a *FormerInstanceError (rule D5). Of two processes at once
	// exactly one succeeds (rule L1); an expired lease or dead owner is taken over
	// in the same transaction (rules L2, L5).
	Launch(ctx context.Context, req LaunchRequest) (Launched, error)
	// CheckExclusive returns the *ExclusiveError that refuses a launch with the key now, or nil. dead
	// is as in LaunchRequest.
	CheckExclusive(ctx context.Context, jobName string, key core.ExclusiveKey, dead func(core.Owner) bool) error
	// CheckFormer returns the *FormerInstanceError that refuses a launch with these parameters; nil: none does.
	CheckFormer(ctx context.Context, jobName string, params core.Parameters) error
	// Heartbeat extends the lease from now (the database's clock, rule L6) and reads
	// the stop flag. ErrLostOwner if the guard finds no row.
	Heartbeat(ctx context.Context, ref JobRef, lease time.Duration) (stop bool, err error)
	// WriterHeld is how long this process has held the writer of a database that has one: meanwhile no
	// other process can write, and take an execution over (rule L9).
	WriterHeld() time.Duration
	// RequestStop requests the owner of a running execution to stop, from any process, and with it the
	// owners of the child jobs that it runs. The audit names the actor.
	RequestStop(ctx context.Context, id core.JobExecutionID, actor string) (core.Answer, error)
}

// JobChange is a transition of a job execution.
type JobChange struct {
	To       core.Status
	ExitCode string
	Error    string
	// Settles is as in JobExecution.
	Settles bool
	// Gate is the answer of the job's gate; empty keeps the stored one.
	Gate string
	// Context is merged, as in SaveJobContext; nil keeps the stored one.
	Context *core.ExecutionContext
	// Visits are rows of the journal that are stored with the change.
	Visits []FlowVisit
}

// StepChange is the final transition of a step execution.
type StepChange struct {
	To       core.Status
	ExitCode string
	Error    string
	// Settles is as in StepExecution.
	Settles bool
	// KeepCommitted keeps the counters of the last commit, except for rollbacks: the attempt does not
	// know them.
	KeepCommitted bool
	Counters      core.Counters
	// InHand is the uncommitted part of Counters.
	InHand core.Counters
	// Closed means that the attempt's own goroutine returned and its components are closed: it touches
	// nothing any more (rule C15b).
	Closed  bool
	Gate    string // empty keeps the stored one
	Context *core.ExecutionContext
	Out     map[string]any
	// Visits are rows of the journal that are stored with the change.
	Visits []FlowVisit
}

// Transitions changes the status of executions: each is one guarded UPDATE.
type Transitions interface {
	// ChangeJob moves a job execution (MoveTo). Duplicate is success to the caller: this same move was
	// made before, in the same epoch. A Rejected answer comes with a *TransitionError (wrapping
	// ErrLostOwner if owner or epoch differ).
	ChangeJob(ctx context.Context, ref JobRef, change JobChange) (core.Answer, error)
	// StartStep inserts a step execution in STARTED under the guard of its job, or of the part that
	// walks its branch, with that owner and epoch, counters of zero, and the position and context of
	// start.Earlier if it is not nil. Rows of the journal are stored with it.
	StartStep(ctx context.Context, job JobRef, start StepStart) (*core.StepExecution, error)
	// EndStep moves a step execution to its final status, or from FAILED or STOPPED
	// to ABANDONED.
	EndStep(ctx context.Context, ref StepRef, change StepChange) (core.Answer, error)
	// Fence raises the epoch of a step that does not return, and returns its committed state:
	// everything the attempt still tries is refused (rule L8). ErrLostOwner if the guard finds no row.
	Fence(ctx context.Context, ref StepRef) (StepRef, Checkpoint, error)
	// SaveJobContext merges the changed keys of c into the job's context while the job
	// runs (ExecutionContext.Merge): branches of a split and processes that promote at the
	// same time lose nothing. ErrLostOwner if the guard finds no row.
	SaveJobContext(ctx context.Context, ref JobRef, c *core.ExecutionContext) error
	// SaveStepContext is the same for a step.
	SaveStepContext(ctx context.Context, ref StepRef, c *core.ExecutionContext) error
}

// Checkpoint is the data that a chunk commits with its rows.
type Checkpoint struct {
	Counters core.Counters
	Position item.Position
	// Context is written if it changed; nil keeps the stored one.
	Context *core.ExecutionContext
	// Skipped are the skips that this commit records (rule C12).
	Skipped []core.SkippedItem
	// OnStop is called when a stop of the job was requested; it may be nil.
	OnStop func()
}

// CheckpointStore commits a chunk's progress.
type CheckpointStore interface {
	// Checkpoint writes counters and position with one guarded UPDATE in the transaction that ctx
	// carries for the store's database. ErrLostOwner if the guard finds no row: the caller rolls back
	// (rules C5, R2, R3). It calls c.OnStop if it sees that a stop of the job was requested.
	Checkpoint(ctx context.Context, ref StepRef, c Checkpoint) error
	// Reclaim returns the committed state of a step after a failed COMMIT (rule C10): it raises the
	// epoch of the guard row, which waits for the old transaction to end, so that counters and position
	// are final. The new ref replaces the old. ErrLostOwner if the guard finds no row.
	Reclaim(ctx context.Context, ref StepRef) (StepRef, Checkpoint, error)
	// Database is the name of the store's database.
	Database() string
}

// ExecutionFilter selects executions; zero fields select all.
type ExecutionFilter struct {
	JobName  string
	Instance core.JobInstanceID
	Statuses []core.Status
	ExitCode string
	// CreatedFrom and CreatedTo bound the time of creation, [from, to).
	CreatedFrom, CreatedTo time.Time
	// Before selects executions with a smaller ID: the key of the next page.
	Before core.JobExecutionID
	// RedriveOf selects the executions that redrive this one's skipped items.
	RedriveOf core.JobExecutionID
	// Task selects the executions that a task ran.
	Task int64
	// Parent selects the child jobs of an execution, and ParentCall the child jobs of one of its steps.
	Parent     core.JobExecutionID
	ParentCall core.StepExecutionID
	// Brief leaves out data that a list does not show: the context, the hash of a definition, and with
	// a path its text and files; the job's time, its exclusive key, its task, its parent's call and the
	// epoch.
	Brief bool
	// Limit is the page size; 0 means 50.
	Limit int
}

// History is the basis for judging a restart: the records, and the checkpoints stored with the data
// (rule C18). Checkpoints may be nil: then there are none.
type History struct {
	Records Explorer
	// Database is the name of the database of the records.
	Database    string
	Checkpoints CheckpointReader
}

// Explorer reads the history.
type Explorer interface {
	Execution(ctx context.Context, id core.JobExecutionID) (*core.JobExecution, error)
	// Executions lists newest first.
	Executions(ctx context.Context, filter ExecutionFilter) ([]core.JobExecution, error)
	// ExecutionIDs lists the IDs of the executions that Executions lists.
	ExecutionIDs(ctx context.Context, filter ExecutionFilter) ([]core.JobExecutionID, error)
	// Steps returns the step executions of one job execution, in order.
	Steps(ctx context.Context, id core.JobExecutionID) ([]core.StepExecution, error)
	// LastSteps returns the newest execution of each step of the instance, by name, with the number of
	// its attempts, of the job executions from since on.
	LastSteps(ctx context.Context, id core.JobInstanceID, since core.JobExecutionID) (map[string]StepHistory, error)
	// Instance returns an instance by its key; ErrNotFound if there is none.
	Instance(ctx context.Context, jobName, key string) (*JobInstance, error)
	// Instances lists the instances of a job, newest first.
	Instances(ctx context.Context, filter InstanceFilter) ([]JobInstance, error)
	// LastPurged returns the newest instance of a job among the deleted ones: an execution with only
	// the instance and the parameters. Redrives and repetitions do not count. ErrNotFound if there is
	// none.
	LastPurged(ctx context.Context, jobName string) (*core.JobExecution, error)
	// Jobs lists the newest execution of each job, by name, in brief (ExecutionFilter). Its cost does
	// not grow with the history.
	Jobs(ctx context.Context) ([]core.JobExecution, error)
	// LastExecution returns the newest execution of the instance with this key;
	// ErrNotFound if there is none.
	LastExecution(ctx context.Context, jobName, key string) (*core.JobExecution, error)
}

// BulkExplorer reads many records with one statement.
type BulkExplorer interface {
	// StepsOf returns the step executions of several job executions, in order, by
	// their job execution.
	StepsOf(ctx context.Context, ids ...core.JobExecutionID) (map[core.JobExecutionID][]core.StepExecution, error)
	// NewestAttempts returns the newest execution of each instance that has one, with the facts that
	// decide a launch. The executions have neither parameters nor context nor the text of a definition.
	// dead is as in LaunchRequest.
	NewestAttempts(ctx context.Context, dead func(core.Owner) bool, ids ...core.JobInstanceID) (map[core.JobInstanceID]NewestAttempt, error)
	// Judged returns the existing executions, newest first, each with the newest attempt of its
	// instance.
	Judged(ctx context.Context, req JudgedRequest) ([]JudgedExecution, error)
	// StepWork returns the work that the steps of several job executions have submitted, apart from
	// partitions.
	StepWork(ctx context.Context, ids ...core.JobExecutionID) (StepWork, error)
	// LastExecutions returns the newest execution of each of the instances that has one,
	// in brief (ExecutionFilter).
	LastExecutions(ctx context.Context, ids ...core.JobInstanceID) (map[core.JobInstanceID]core.JobExecution, error)
	// SkipCounts counts the skipped items of a job execution, by step, phase and
	// class, in this order.
	SkipCounts(ctx context.Context, id core.JobExecutionID) ([]SkipCount, error)
}

// SkipFilter selects skipped items; zero fields select all.
type SkipFilter struct {
	Execution core.JobExecutionID
	// Instance selects the items of all attempts of an instance, Job those of all instances of a job;
	// with Execution neither is needed.
	Instance core.JobInstanceID
	Job      string
	Step     string
	// Parts also selects the items of the partitions of Step.
	Parts bool
	Phase core.Phase
	// Index selects the items of the element of an array with this number (item.Meta).
	Index int64
	// After selects items with a greater ID: the key of the next page.
	After int64
	// UpTo selects items with an ID up to it; 0 means all.
	UpTo int64
	// Left selects the items that no execution has redriven.
	Left bool
	// Limit is the page size; 0 means 50.
	Limit int
}

// SkipReader reads stored skips.
type SkipReader interface {
	// SkippedItems lists stored skips, in the order in which they were stored.
	SkippedItems(ctx context.Context, filter SkipFilter) ([]core.SkippedItem, error)
	// LastSkipped returns the greatest ID of the skips that the filter selects, or 0. Its limit does
	// not count.
	LastSkipped(ctx context.Context, filter SkipFilter) (int64, error)
}

// SkippedItems records the fate of skips (rule C12).
type SkippedItems interface {
	SkipReader
	// SkippedItem returns one; ErrNotFound if there is none.
	SkippedItem(ctx context.Context, id int64) (*core.SkippedItem, error)
	// MarkRedriven notes, in the transaction that ctx carries for the repository's database, that an
	// execution has now processed the items. If another one did so first it is an ErrRedriven: the
	// caller rolls back, so that no item is redriven twice.
	MarkRedriven(ctx context.Context, by core.JobExecutionID, ids []int64) error
}

// SkipCount is a number of skipped items.
type SkipCount struct {
	Step  string
	Phase core.Phase
	// Class is the class of their errors, or empty.
	Class string
	Count int64
	// Left is the number of them that no execution has redriven.
	Left int64
}

// StepHistory is the newest execution of a step in an instance.
type StepHistory struct {
	Last core.StepExecution
	// Attempts is the number of its runs: records of a condition that did not hold (ExitNoop) do not
	// count.
	Attempts int
}

// InstanceFilter selects instances; zero fields select all.
type InstanceFilter struct {
	JobName string
	// BaseKey selects an instance with its repetitions (Parameters.BaseKey).
	BaseKey string
	// NoRedrives leaves out redrives; OnlyBase leaves out redrives and repetitions.
	NoRedrives, OnlyBase bool
	// NoBackfills leaves out instances that a backfill made.
	NoBackfills bool
	// Before selects instances with a smaller ID: the key of the next page.
	Before core.JobInstanceID
	// Limit is the page size; 0 means 50.
	Limit int
}

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
	Abandon(ctx context.Context, id core.JobExecutionID, actor string) error
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

// JobRepository is the whole repository. Functions take the smaller interfaces.
type JobRepository interface {
	Launches
	Transitions
	PartitionPlans
	Parks
	Assignments
	PlacedWork
	Operations
	CheckpointStore
	Explorer
	BulkExplorer
	SkippedItems
	Attempts
	Journal
	Requests
}
