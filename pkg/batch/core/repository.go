package core

import (
	"context"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// JobRef is the guard of a write about a job execution: it applies only while
// the row has this owner and epoch.
type JobRef struct {
	ID    JobExecutionID
	Owner Owner
	Epoch int64
	// Branch is the part whose worker walks a branch of a split (rule P8): Owner and Epoch are
	// those of the part then, and what the walk writes is guarded by it. 0: the job's own.
	Branch StepExecutionID
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
	// taken over before its lease expired. nil: no owner is known to be dead.
	Dead func(Owner) bool
	// ForWorkers makes an execution that is PARKED and has no owner: a worker begins it.
	ForWorkers bool
	// Exclusive is the key that no other active execution of the job may have; "": any may
	// run beside the new one.
	Exclusive ExclusiveKey
	// RedriveOf is the execution whose skipped items the new one redrives; 0: none.
	RedriveOf JobExecutionID
	// On says which workers may continue the execution; nil: any.
	On *Placement
	// Task is the task that runs the job; 0: none.
	Task int64
	// Parent is the execution that runs the new one as a step; 0: none.
	Parent JobExecutionID
	// ParentCall and ParentAnew are as Job has them.
	ParentCall StepExecutionID
	ParentAnew JobExecutionID
	// Confinement is as Job has it.
	Confinement *Confinement
	// Backfill marks an instance that the launch makes: the next instance does not follow it
	// (rule L3a).
	Backfill bool
	// FromStart makes an attempt that resumes nothing of those before it: its
	// job context is empty but for FromStartKey.
	FromStart bool
	// From makes an attempt that resumes nothing of those before it, but keeps what its
	// journal has; nil: it does not.
	From *LaunchFrom
	// Actor is who asked the owner for the launch, for the audit; "": the owner did so by itself.
	Actor string
	// Request is the request of a client that the launch is for; zero: none. A
	// *RequestStartedError where it has started an execution before.
	Request RequestKey
	// Again says that the reply to the same request was lost: the execution may be there. Owner
	// must be that of this one launch.
	Again bool
}

// LaunchFrom makes an attempt that keeps a part of what the attempts before it have done. Its
// job context is theirs, with FromStartKey.
type LaunchFrom struct {
	// After is the newest execution of the instance, of which the attempt was made: with another
	// one the launch is refused with a *NotNewestError.
	After JobExecutionID
	// IfComplete lets it follow an execution that completed.
	IfComplete bool
	// Visits are stored with the launch: what the attempt keeps.
	Visits []FlowVisit
}

// FromStartKey is the key of the job context under which an instance remembers
// the id of the execution that ran everything anew, or all but what its journal keeps (LaunchFrom):
// what is older is history only.
const FromStartKey = "surfin.from_start"

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
	// ErrNotRestartable, ErrAbandoned, ErrUnknownStatus, or ErrIllegalState for an
	// instance that has no execution. A step that is unfinished though its job is
	// over is an *AlreadyRunningError as well. Another execution that runs with the same
	// key is an *ExclusiveError (rule L12), and parameters that named another instance before are a *FormerInstanceError (rule D5). Of two processes at once
	// exactly one succeeds (rule L1); an expired lease or dead owner is taken over
	// in the same transaction (rules L2, L5).
	Launch(ctx context.Context, req LaunchRequest) (Launched, error)
	// CheckExclusive returns the *ExclusiveError that refuses a launch with the key now; nil:
	// none does. dead is as in LaunchRequest.
	CheckExclusive(ctx context.Context, jobName string, key ExclusiveKey, dead func(Owner) bool) error
	// CheckFormer returns the *FormerInstanceError that refuses a launch with these parameters; nil: none does.
	CheckFormer(ctx context.Context, jobName string, params Parameters) error
	// Heartbeat extends the lease from now (the database's clock, rule L6) and reads
	// the stop flag. ErrLostOwner if the guard finds no row.
	Heartbeat(ctx context.Context, ref JobRef, lease time.Duration) (stop bool, err error)
	// WriterHeld is how long this process has held the writer of a database that has one:
	// no other process can write, and take an execution over, meanwhile (rule L9).
	WriterHeld() time.Duration
	// RequestStop asks the owner of a running execution to stop, from any process, and
	// with it those of the child jobs that it runs. The audit names the actor.
	RequestStop(ctx context.Context, id JobExecutionID, actor string) (Answer, error)
}

// JobChange is a transition of a job execution.
type JobChange struct {
	To       Status
	ExitCode string
	Error    string
	// Settles is as in JobExecution.
	Settles bool
	// Gate is how the job's gate was answered; empty leaves it.
	Gate string
	// Context is merged, as SaveJobContext does it; nil leaves what is there.
	Context *ExecutionContext
	// Visits are rows of the journal that are stored with the change.
	Visits []FlowVisit
}

// StepChange is the final transition of a step execution.
type StepChange struct {
	To       Status
	ExitCode string
	Error    string
	// Settles is as in StepExecution.
	Settles bool
	// KeepCommitted leaves the counters, but for rollbacks, as the last commit has written them:
	// the attempt does not know them.
	KeepCommitted bool
	Counters      Counters
	// InHand is the part of Counters that is not committed.
	InHand Counters
	// Closed says that the attempt's own goroutine returned and its components are
	// closed: it touches nothing any more (rule C15b).
	Closed  bool
	Gate    string // empty leaves it
	Context *ExecutionContext
	Out     map[string]any
	// Visits are rows of the journal that are stored with the change.
	Visits []FlowVisit
}

// Transitions changes the status of executions: each is one guarded UPDATE.
type Transitions interface {
	// ChangeJob moves a job execution (MoveTo). Duplicate is success to the caller: this
	// very move was made before, in the same epoch. A Rejected answer comes with a
	// *TransitionError (wrapping ErrLostOwner where owner or epoch differ).
	ChangeJob(ctx context.Context, ref JobRef, change JobChange) (Answer, error)
	// StartStep inserts a step execution in STARTED under the guard of its job, or of the part
	// that walks its branch, with that owner and epoch, counters of zero, and the position and context of
	// start.Earlier where it is not nil. Rows of the journal are stored with it.
	StartStep(ctx context.Context, job JobRef, start StepStart) (*StepExecution, error)
	// EndStep moves a step execution to its final status, or from FAILED or STOPPED
	// to ABANDONED.
	EndStep(ctx context.Context, ref StepRef, change StepChange) (Answer, error)
	// Fence raises the epoch of a step that does not return, and answers what is
	// committed of it: whatever the attempt still tries is refused (rule L8). ErrLostOwner
	// if the guard finds no row.
	Fence(ctx context.Context, ref StepRef) (StepRef, Checkpoint, error)
	// SaveJobContext merges the changed keys of c into the job's context while the job
	// runs (ExecutionContext.Merge): branches of a split and processes that promote at the
	// same time lose nothing. ErrLostOwner if the guard finds no row.
	SaveJobContext(ctx context.Context, ref JobRef, c *ExecutionContext) error
	// SaveStepContext is the same for a step.
	SaveStepContext(ctx context.Context, ref StepRef, c *ExecutionContext) error
}

// Checkpoint is what a chunk commits beside its rows.
type Checkpoint struct {
	Counters Counters
	Position item.Position
	// Context is written if it changed; nil leaves it.
	Context *ExecutionContext
	// Skipped are the skips that become facts with this commit (rule C12).
	Skipped []SkippedItem
	// OnStop is called when a stop of the job was asked for; it may be nil.
	OnStop func()
}

// CheckpointStore commits a chunk's progress.
type CheckpointStore interface {
	// Checkpoint writes counters and position with one guarded UPDATE in the
	// transaction that ctx carries for the store's database. ErrLostOwner if the
	// guard finds no row: the caller rolls back (rules C5, R2, R3). It calls c.OnStop
	// where it sees that a stop of the job was asked for.
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
	Instance JobInstanceID
	Statuses []Status
	ExitCode string
	// CreatedFrom and CreatedTo bound the time of creation, [from, to).
	CreatedFrom, CreatedTo time.Time
	// Before selects executions with a smaller id: the key of the next page.
	Before JobExecutionID
	// RedriveOf selects the executions that redrive this one's skipped items.
	RedriveOf JobExecutionID
	// Task selects the executions that a task ran.
	Task int64
	// Parent selects the child jobs of an execution, and ParentCall those of one of its steps.
	Parent     JobExecutionID
	ParentCall StepExecutionID
	// Brief leaves out what a list does not show: the context, of a definition the hash, and with
	// a path the text and the files; the job's time, its exclusive key, its task, its parent's
	// call and the epoch.
	Brief bool
	// Limit is the page size; 0 means 50.
	Limit int
}

// History is what a restart is judged by: the records, and the checkpoints that are beside
// the data (rule C18). Checkpoints may be nil: then there are none.
type History struct {
	Records Explorer
	// Database is the name of the database that has the records.
	Database    string
	Checkpoints CheckpointReader
}

// Explorer reads the history.
type Explorer interface {
	Execution(ctx context.Context, id JobExecutionID) (*JobExecution, error)
	// Executions lists newest first.
	Executions(ctx context.Context, filter ExecutionFilter) ([]JobExecution, error)
	// ExecutionIDs lists the ids of what Executions lists.
	ExecutionIDs(ctx context.Context, filter ExecutionFilter) ([]JobExecutionID, error)
	// Steps returns the step executions of one job execution, in order.
	Steps(ctx context.Context, id JobExecutionID) ([]StepExecution, error)
	// LastSteps returns the newest execution of each step of the instance, by name,
	// with the number of its attempts, of the job executions from since on.
	LastSteps(ctx context.Context, id JobInstanceID, since JobExecutionID) (map[string]StepHistory, error)
	// Instance returns an instance by its key; ErrNotFound if there is none.
	Instance(ctx context.Context, jobName, key string) (*JobInstance, error)
	// Instances lists the instances of a job, newest first.
	Instances(ctx context.Context, filter InstanceFilter) ([]JobInstance, error)
	// LastPurged returns the newest instance of a job among those that were deleted: an
	// execution with nothing but the instance and the parameters. Redrives and repetitions
	// do not count. ErrNotFound if there is none.
	LastPurged(ctx context.Context, jobName string) (*JobExecution, error)
	// Jobs lists the newest execution of each job, by name, in brief (ExecutionFilter). Its cost
	// does not grow with the history.
	Jobs(ctx context.Context) ([]JobExecution, error)
	// LastExecution returns the newest execution of the instance with this key;
	// ErrNotFound if there is none.
	LastExecution(ctx context.Context, jobName, key string) (*JobExecution, error)
}

// BulkExplorer reads many records with one statement.
type BulkExplorer interface {
	// StepsOf returns the step executions of several job executions, in order, by
	// their job execution.
	StepsOf(ctx context.Context, ids ...JobExecutionID) (map[JobExecutionID][]StepExecution, error)
	// NewestAttempts returns the newest execution of each of the instances that has one,
	// with what a launch would judge it by. The executions have neither parameters nor
	// context nor the text of a definition. dead is as in LaunchRequest.
	NewestAttempts(ctx context.Context, dead func(Owner) bool, ids ...JobInstanceID) (map[JobInstanceID]NewestAttempt, error)
	// Judged returns the executions that are there, newest first, each with the newest attempt of
	// its instance.
	Judged(ctx context.Context, req JudgedRequest) ([]JudgedExecution, error)
	// StepWork returns what the steps of several job executions have submitted that is no
	// partition.
	StepWork(ctx context.Context, ids ...JobExecutionID) (StepWork, error)
	// LastExecutions returns the newest execution of each of the instances that has one,
	// in brief (ExecutionFilter).
	LastExecutions(ctx context.Context, ids ...JobInstanceID) (map[JobInstanceID]JobExecution, error)
	// SkipCounts counts the skipped items of a job execution, by step, phase and
	// class, in this order.
	SkipCounts(ctx context.Context, id JobExecutionID) ([]SkipCount, error)
}

// SkipFilter selects skipped items; zero fields select all.
type SkipFilter struct {
	Execution JobExecutionID
	// Instance selects the items of all attempts of an instance, Job those of all instances of
	// a job; with Execution neither is needed.
	Instance JobInstanceID
	Job      string
	Step     string
	// Parts selects the items of the partitions of Step as well.
	Parts bool
	Phase Phase
	// Index selects the items of the element of an array with this number (item.Meta).
	Index int64
	// After selects items with a greater id: the key of the next page.
	After int64
	// UpTo selects items with an id that is not greater; 0: all.
	UpTo int64
	// Left selects the items that no execution has redriven.
	Left bool
	// Limit is the page size; 0 means 50.
	Limit int
}

// SkipReader reads stored skips.
type SkipReader interface {
	// SkippedItems lists stored skips, in the order in which they were stored.
	SkippedItems(ctx context.Context, filter SkipFilter) ([]SkippedItem, error)
	// LastSkipped returns the greatest id of the skips that the filter selects; 0: there is
	// none. Its limit does not count.
	LastSkipped(ctx context.Context, filter SkipFilter) (int64, error)
}

// SkippedItems is what became of skips (rule C12).
type SkippedItems interface {
	SkipReader
	// SkippedItem returns one; ErrNotFound if there is none.
	SkippedItem(ctx context.Context, id int64) (*SkippedItem, error)
	// MarkRedriven notes, in the transaction that ctx carries for the repository's
	// database, that an execution has processed the items after all. Where another
	// one did so first it is an ErrRedriven: the caller rolls back, so that no item
	// is redriven twice.
	MarkRedriven(ctx context.Context, by JobExecutionID, ids []int64) error
}

// SkipCount is a number of skipped items.
type SkipCount struct {
	Step  string
	Phase Phase
	// Class is that of their errors; empty: they have none.
	Class string
	Count int64
	// Left is how many of them no execution has redriven.
	Left int64
}

// StepHistory is the newest execution of a step in an instance.
type StepHistory struct {
	Last StepExecution
	// Attempts is how often it was run: records of a condition that did not hold
	// (ExitNoop) do not count.
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
	// Before selects instances with a smaller id: the key of the next page.
	Before JobInstanceID
	// Limit is the page size; 0 means 50.
	Limit int
}

// PurgeFilter selects executions to delete; what is active is never selected.
type PurgeFilter struct {
	// Instance is the only one to delete, whatever its age and status: no other field but
	// DryRun counts then.
	Instance JobInstanceID
	JobName  string // empty: all jobs
	// Statuses are those to delete; empty: COMPLETED, ABANDONED.
	Statuses []Status
	// EndedBefore is required without Instance.
	EndedBefore time.Time
	// KeepLast keeps so many of the newest instances of each job.
	KeepLast int
	// DryRun counts only.
	DryRun bool
	// Batch is how many executions one transaction deletes; 0: 500.
	Batch int
	// Batches is after how many batches that deleted something it ends; 0: when no more is
	// there.
	Batches int
}

// Purged is what was deleted.
type Purged struct {
	Instances, Executions, Steps, SkippedItems int64
	// Left is what the deleted executions left outside of any database. A dry run does
	// not look for it.
	Left []LeftBehind
}

// Operations are what operators do to executions, from any process (rule L3).
// Each is guarded and leaves an audit row that names the actor.
type Operations interface {
	// Abandon moves an execution from STOPPING, STOPPED, FAILED or UNKNOWN to
	// ABANDONED: its instance will not be restarted. In STOPPING it is taken from its
	// owner. A running or completed execution is an *AlreadyRunningError or a
	// *TransitionError, one that a later one followed a *NotNewestError.
	Abandon(ctx context.Context, id JobExecutionID, actor string) error
	// Recover ends executions whose lease expired or whose owner dead knows to be
	// dead, as a launch would, and unfinished steps of executions that are over. It
	// returns those that it ended, as they are now. Others are not touched.
	Recover(ctx context.Context, actor string, dead func(Owner) bool) ([]JobExecution, error)
	// Purge deletes old executions with their parameters, steps, skipped items and
	// checkpoints, an instance with its last execution; audit rows stay. An instance that
	// the filter names is ErrNotFound, or an *AlreadyRunningError where it is active.
	Purge(ctx context.Context, filter PurgeFilter, actor string) (Purged, error)
	// Audit lists what happened to an execution, in order.
	Audit(ctx context.Context, id JobExecutionID) ([]AuditEntry, error)
}

// AuditEntry is one transition or operator's act.
type AuditEntry struct {
	At       time.Time
	Act      string
	Actor    string
	Step     StepExecutionID // 0: about the job execution
	From, To Status
	Epoch    int64
	Detail   string
}

// JobRepository is all of it. Functions ask for the smaller interfaces.
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
