package ports

import (
	"context"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// JobRef guards a write: it applies only while the row has this owner and epoch.
type JobRef struct {
	ID    core.JobExecutionID
	Owner core.Owner
	Epoch int64
	// Branch is the part of a split's branch (rule P8), with Owner and Epoch of the part; 0 means
	// the job's own.
	Branch core.StepExecutionID
}

// StepRef guards a write about a step execution.
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
	// Dead reports owners known to be dead, taken over before their lease expires; may be nil.
	Dead func(core.Owner) bool
	// ForWorkers makes a PARKED execution without an owner.
	ForWorkers bool
	// Exclusive is a key that no other active execution of the job may have; "" means none.
	Exclusive   core.ExclusiveKey
	RedriveOf   core.JobExecutionID
	On          *core.Placement
	Task        int64
	Parent      core.JobExecutionID
	ParentCall  core.StepExecutionID
	ParentAnew  core.JobExecutionID
	Confinement *core.Confinement
	// Backfill marks an instance that the next one does not follow (rule L3a).
	Backfill bool
	// FromStart resumes nothing: its context has only FromStartKey.
	FromStart bool
	// From resumes nothing, but keeps the work in its journal; may be nil.
	From *LaunchFrom
	// Actor is for the audit; "" means the owner.
	Actor string
	// Request is the client request; zero means none. A *RequestStartedError if it has started one
	// before.
	Request RequestKey
	// Again: the reply was lost; the execution may exist already. Owner must be of this one launch.
	Again bool
}

// LaunchFrom keeps a part of earlier attempts' work, and their context with FromStartKey.
type LaunchFrom struct {
	// After is the newest execution that the caller knows; with another one: *NotNewestError.
	After      core.JobExecutionID
	IfComplete bool
	Visits     []FlowVisit
}

// Launched is a new execution.
type Launched struct {
	Execution *core.JobExecution
	Previous  *core.JobExecution
	// TookOver: Previous was lost, and is FAILED now.
	TookOver bool
}

// Launches creates executions and takes over lost ones.
type Launches interface {
	// Launch makes or finds the instance and creates an execution in STARTING, in one transaction,
	// with a number of statements independent of the history. It refuses with
	// *InstanceCompleteError, *AlreadyRunningError (also for an unfinished step of an ended job),
	// ErrNotRestartable, ErrAbandoned, ErrUnknownStatus, ErrIllegalState (no execution),
	// *ExclusiveError (rule L12) or *FormerInstanceError (rule D5). Of two processes exactly one
	// succeeds (rule L1); a lost execution is taken over in the same transaction (rules L2, L5).
	Launch(ctx context.Context, req LaunchRequest) (Launched, error)
	// CheckExclusive returns the *ExclusiveError that refuses the key now, or nil.
	CheckExclusive(ctx context.Context, jobName string, key core.ExclusiveKey, dead func(core.Owner) bool) error
	// CheckFormer returns the *FormerInstanceError that refuses these parameters, or nil.
	CheckFormer(ctx context.Context, jobName string, params core.Parameters) error
	// Heartbeat extends the lease by the database's clock (rule L6) and reads the
	// stop flag; ErrLostOwner if the guard finds no row.
	Heartbeat(ctx context.Context, ref JobRef, lease time.Duration) (stop bool, err error)
	// WriterHeld is how long this process has held the one writer: meanwhile no other can take an
	// execution over (rule L9).
	WriterHeld() time.Duration
	// RequestStop asks a running execution and its child jobs to stop, from any process.
	RequestStop(ctx context.Context, id core.JobExecutionID, actor string) (core.Answer, error)
}

// JobChange is a transition of a job execution.
type JobChange struct {
	To       core.Status
	ExitCode string
	Error    string
	Settles  bool
	// Gate is the gate's answer; empty keeps the stored one.
	Gate string
	// Context is merged, as in SaveJobContext; nil keeps the stored one.
	Context *core.ExecutionContext
	Visits  []FlowVisit
}

// StepChange is the final transition of a step execution.
type StepChange struct {
	To       core.Status
	ExitCode string
	Error    string
	Settles  bool
	// KeepCommitted keeps the last commit's counters, except rollbacks: the attempt does not know
	// them.
	KeepCommitted bool
	Counters      core.Counters
	InHand        core.Counters
	// Closed: the attempt's goroutine returned and its components are closed; it touches nothing
	// any more (rule C15b).
	Closed  bool
	Gate    string // empty keeps the stored one
	Context *core.ExecutionContext
	Out     map[string]any
	Visits  []FlowVisit
}

// Transitions changes statuses, each by one guarded UPDATE.
type Transitions interface {
	// ChangeJob moves a job execution (MoveTo). Duplicate: the same move in the same epoch.
	// Rejected comes with a *TransitionError, wrapping ErrLostOwner if owner or epoch differ.
	ChangeJob(ctx context.Context, ref JobRef, change JobChange) (core.Answer, error)
	// StartStep inserts a step execution in STARTED under the job's or its branch's guard, with
	// start.Earlier's position and context.
	StartStep(ctx context.Context, job JobRef, start StepStart) (*core.StepExecution, error)
	EndStep(ctx context.Context, ref StepRef, change StepChange) (core.Answer, error)
	// Fence raises the epoch of a step that does not return, and returns its committed state: its
	// later writes are refused (rule L8). ErrLostOwner if the guard finds no row.
	Fence(ctx context.Context, ref StepRef) (StepRef, Checkpoint, error)
	// SaveJobContext merges c's changed keys into the job's context
	// (ExecutionContext.Merge), so concurrent promotions lose nothing. ErrLostOwner if the
	// guard finds no row.
	SaveJobContext(ctx context.Context, ref JobRef, c *core.ExecutionContext) error
	SaveStepContext(ctx context.Context, ref StepRef, c *core.ExecutionContext) error
}

// Checkpoint is the data that a chunk commits with its rows.
type Checkpoint struct {
	Counters core.Counters
	Position item.Position
	Context  *core.ExecutionContext
	// Skipped are the skips of this commit (rule C12).
	Skipped []core.SkippedItem
	// OnStop is called on a stop request; may be nil.
	OnStop func()
}

// CheckpointStore commits a chunk's progress.
type CheckpointStore interface {
	// Checkpoint writes counters and position with one guarded UPDATE in ctx's transaction.
	// ErrLostOwner if the guard finds no row: the caller rolls back (rules C5, R2, R3).
	Checkpoint(ctx context.Context, ref StepRef, c Checkpoint) error
	// Reclaim returns the committed state after a failed COMMIT (rule C10): it raises the guard
	// row's epoch, which waits for the old transaction, so the state is final. The new ref replaces
	// the old. ErrLostOwner if the guard finds no row.
	Reclaim(ctx context.Context, ref StepRef) (StepRef, Checkpoint, error)
	Database() string
}

// ExecutionFilter selects executions; zero fields select all.
type ExecutionFilter struct {
	JobName                string
	Instance               core.JobInstanceID
	Statuses               []core.Status
	ExitCode               string
	CreatedFrom, CreatedTo time.Time
	Before                 core.JobExecutionID
	RedriveOf              core.JobExecutionID
	Task                   int64
	Parent                 core.JobExecutionID
	ParentCall             core.StepExecutionID
	// Brief leaves out the context, definition texts and other data that a list does not show.
	Brief bool
	// Limit is the page size; 0 means 50.
	Limit int
}

// History is the basis for judging a restart (rule C18); Checkpoints may be nil.
type History struct {
	Records     Explorer
	Database    string
	Checkpoints CheckpointReader
}

// Explorer reads the history.
type Explorer interface {
	Execution(ctx context.Context, id core.JobExecutionID) (*core.JobExecution, error)
	Executions(ctx context.Context, filter ExecutionFilter) ([]core.JobExecution, error)
	ExecutionIDs(ctx context.Context, filter ExecutionFilter) ([]core.JobExecutionID, error)
	Steps(ctx context.Context, id core.JobExecutionID) ([]core.StepExecution, error)
	// LastSteps returns the newest execution of each step, with its attempts, from since on.
	LastSteps(ctx context.Context, id core.JobInstanceID, since core.JobExecutionID) (map[string]StepHistory, error)
	// Instance returns an instance by key, or ErrNotFound.
	Instance(ctx context.Context, jobName, key string) (*core.JobInstance, error)
	Instances(ctx context.Context, filter InstanceFilter) ([]core.JobInstance, error)
	// LastPurged returns the newest deleted instance with its parameters, apart from redrives and
	// repetitions, or ErrNotFound.
	LastPurged(ctx context.Context, jobName string) (*core.JobExecution, error)
	// Jobs lists each job's newest execution, in brief; the cost does not grow with the history.
	Jobs(ctx context.Context) ([]core.JobExecution, error)
	// LastExecution returns the newest execution of the key's instance, or
	// ErrNotFound.
	LastExecution(ctx context.Context, jobName, key string) (*core.JobExecution, error)
}

// BulkExplorer reads many records with one statement.
type BulkExplorer interface {
	StepsOf(ctx context.Context, ids ...core.JobExecutionID) (map[core.JobExecutionID][]core.StepExecution, error)
	// NewestAttempts returns each instance's newest execution with the facts that decide a launch.
	NewestAttempts(ctx context.Context, dead func(core.Owner) bool, ids ...core.JobInstanceID) (map[core.JobInstanceID]NewestAttempt, error)
	// Judged returns the executions, newest first, with their instances' newest attempts.
	Judged(ctx context.Context, req JudgedRequest) ([]JudgedExecution, error)
	// StepWork returns the work that the steps of several job executions have submitted, apart from
	// partitions.
	StepWork(ctx context.Context, ids ...core.JobExecutionID) (core.StepWork, error)
	LastExecutions(ctx context.Context, ids ...core.JobInstanceID) (map[core.JobInstanceID]core.JobExecution, error)
	SkipCounts(ctx context.Context, id core.JobExecutionID) ([]SkipCount, error)
}

// SkipFilter selects skipped items; zero fields select all.
type SkipFilter struct {
	Execution core.JobExecutionID
	Instance  core.JobInstanceID
	Job       string
	Step      string
	Parts     bool
	Phase     core.Phase
	Index     int64
	After     int64
	// UpTo is the greatest ID; 0 means all.
	UpTo int64
	Left bool
	// Limit is the page size; 0 means 50.
	Limit int
}

// SkipReader reads stored skips.
type SkipReader interface {
	SkippedItems(ctx context.Context, filter SkipFilter) ([]core.SkippedItem, error)
	// LastSkipped returns the greatest selected ID, or 0, whatever the limit.
	LastSkipped(ctx context.Context, filter SkipFilter) (int64, error)
}

// SkippedItems records the fate of skips (rule C12).
type SkippedItems interface {
	SkipReader
	SkippedItem(ctx context.Context, id int64) (*core.SkippedItem, error)
	// MarkRedriven marks items in ctx's transaction. ErrRedriven if another execution did so first:
	// the caller rolls back, so that no item is redriven twice.
	MarkRedriven(ctx context.Context, by core.JobExecutionID, ids []int64) error
}

// SkipCount is a number of skipped items.
type SkipCount struct {
	Step  string
	Phase core.Phase
	Class string
	Count int64
	Left  int64
}

// StepHistory is the newest execution of a step in an instance.
type StepHistory struct {
	Last     core.StepExecution
	Attempts int
}

// InstanceFilter selects instances; zero fields select all.
type InstanceFilter struct {
	JobName              string
	BaseKey              string
	NoRedrives, OnlyBase bool
	NoBackfills          bool
	Before               core.JobInstanceID
	// Limit is the page size; 0 means 50.
	Limit int
}

// PurgeFilter selects executions to delete; active ones are never selected.
type PurgeFilter struct {
	Instance core.JobInstanceID
	JobName  string // empty means all jobs
	// Statuses empty means COMPLETED, ABANDONED.
	Statuses []core.Status
	// EndedBefore is required without Instance.
	EndedBefore time.Time
	KeepLast    int
	DryRun      bool
	// Batch is the number per transaction; 0 means 500.
	Batch int
	// Batches is the maximum; 0 means no limit.
	Batches int
}

// Purged counts the deleted records.
type Purged struct {
	Instances, Executions, Steps, SkippedItems int64
	// Left are leftovers outside any database; a dry run does not look for them.
	Left []core.LeftBehind
}

// Operations are operators' acts from any process (rule L3), each guarded and audited.
type Operations interface {
	// Abandon makes STOPPING (taken from its owner), STOPPED, FAILED or UNKNOWN ABANDONED: its
	// instance will not restart. Else an *AlreadyRunningError, *TransitionError or *NotNewestError.
	Abandon(ctx context.Context, id core.JobExecutionID, actor string) error
	// Recover ends executions with an expired lease or dead owner, and unfinished steps of ended
	// executions; it returns the ended ones.
	Recover(ctx context.Context, actor string, dead func(core.Owner) bool) ([]core.JobExecution, error)
	// Purge deletes old executions with all their records except the audit. An instance in the
	// filter is ErrNotFound, or an *AlreadyRunningError if active.
	Purge(ctx context.Context, filter PurgeFilter, actor string) (Purged, error)
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

// JobRepository is the whole repository.
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
