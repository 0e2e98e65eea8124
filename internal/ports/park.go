package ports

import (
	"context"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Parking is the data stored when an execution is parked.
type Parking struct {
	// Context is merged, as in SaveJobContext; nil keeps the stored one.
	Context *core.ExecutionContext
	// Visits are rows of the journal that wait for the next write.
	Visits []FlowVisit
	// Stopping means that the caller knows of a stop request: partitions that no worker has taken end
	// STOPPED, and the execution waits for the others.
	Stopping bool
}

// Resumed is an execution that continues in the same attempt.
type Resumed struct {
	Execution *core.JobExecution
	// Steps are its parked steps.
	Steps []core.StepExecution
	// First means that it was launched for workers, and has not begun. Previous is then the instance's
	// execution before it, or nil.
	First    bool
	Previous *core.JobExecution
}

// ResumeRequest names the new owner of an execution.
type ResumeRequest struct {
	Owner core.Owner
	// Worker is the name of the resuming worker, which gets the work that the leader assigned to it; ""
	// means none.
	Worker string
	Lease  time.Duration
	// Dead reports whether the owner of a partition is known to be dead. nil means none is.
	Dead func(core.Owner) bool
}

// Parks let executions wait without an owner for work of other processes.
type Parks interface {
	// Park releases an execution that waits for partitions, with its open steps, in one transaction. It
	// is rejected if a stop was requested that the caller does not know of: see Parking.Stopping.
	Park(ctx context.Context, ref JobRef, p Parking) (core.Answer, error)
	// Ready returns the work that a worker may take now, after the given place and at most limit of
	// each kind: parts without an owner or with an expired lease, and parked executions that no longer
	// wait for anything.
	Ready(ctx context.Context, after ReadyPlace, limit int) ([]Ready, error)
	// Resumable returns parked executions that wait for nothing, oldest first, except those with a
	// definition hash in except, and those with a placement that worker was not assigned (rule PL2).
	Resumable(ctx context.Context, worker string, limit int, except []string) ([]core.JobExecutionID, error)
	// RefuseResume stores with a parked execution why a process that should resume it could not. A
	// resume clears it. An execution that is no longer parked is unchanged.
	RefuseResume(ctx context.Context, id core.JobExecutionID, reason string) error
	// RecoverChildren ends, as Operations.Recover does, the executions of child jobs whose
	// owner is lost and whose parent is parked: no other process waits for them.
	RecoverChildren(ctx context.Context, actor string, dead func(core.Owner) bool) error
	// Resume takes a parked execution that waits for nothing, in the same attempt: it is STARTED again,
	// or STOPPING if a stop was requested. Of several processes at once one succeeds; the others get a
	// *TransitionError. If a stop was requested, it first ends the partitions with a lost worker.
	Resume(ctx context.Context, id core.JobExecutionID, req ResumeRequest) (Resumed, error)
}

// AssignRequest requests a partition to work on.
type AssignRequest struct {
	Owner core.Owner
	// Worker is the name of the worker, which gets the work that the leader assigned to it; "" gets
	// none of it.
	Worker string
	Lease  time.Duration
	// Part requests this partition in this epoch, Epoch; 0 means any.
	Part  core.StepExecutionID
	Epoch int64
	// MaxAttempts is the number of assignments after which a partition fails: a partition that kills
	// its worker must not kill them all. 0 means DefaultPartAttempts.
	MaxAttempts int
	// Except are hashes of definitions that the worker cannot build.
	Except []string
	// Dead reports whether an owner is known to be dead: its partitions are taken before their lease
	// expires. nil means none is.
	Dead func(core.Owner) bool
}

// DefaultPartAttempts is the default of AssignRequest.MaxAttempts.
const DefaultPartAttempts = 3

// Assignment is a partition that a worker has.
type Assignment struct {
	Step core.StepExecution // in STARTED, with the position and counters of its last commit
	// Earlier is the attempt that the partition resumes; nil if it started over.
	Earlier *core.StepExecution
	// Manager is the step that planned it.
	Manager core.StepExecution
	Job     core.JobExecution
	// Shared is PartitionPlan.Shared.
	Shared []byte
	// Resumed are the guards of the steps of a branch that were given back with its part, and continue
	// in the same attempt.
	Resumed []StepRef
}

// Ready is a partition, or a parked execution, that a worker may take now.
type Ready struct {
	// Part is the partition; 0 means the execution.
	Part core.StepExecutionID
	// Execution is the partition's execution, or the parked one.
	Execution core.JobExecutionID
	// Epoch is the epoch of the partition's or the execution's row.
	Epoch int64
	// Since is its position in the waiting order: the launch time of the execution, so that begun work
	// goes first. Zero means now, for new parts.
	Since time.Time
}

// ReadyPlace is a place in the list of ready work, which is ordered by ID.
type ReadyPlace struct {
	Part      core.StepExecutionID
	Execution core.JobExecutionID
}

// NotNowError is returned to a worker that requests a partition before its lease has ended, or one with
// a definition that the worker has excepted.
type NotNowError struct {
	Part       core.StepExecutionID
	Definition string // the hash
}

// Error says why it cannot be taken.
func (e *NotNowError) Error() string {
	return fmt.Sprintf("step execution %d cannot be claimed now", e.Part)
}

// Announcer notifies workers of ready work, in the transaction that ctx carries: a rollback notifies no
// worker. The same may be announced twice.
type Announcer interface {
	Announce(ctx context.Context, list ...Ready) error
}

// Assignments give partitions to workers. A partition has an owner, an epoch and a lease
// of its own.
type Assignments interface {
	// AssignPartition takes a partition without a worker, or with a lost one: the same record with a
	// new epoch, at the position of its last commit. Lost partitions that were assigned MaxAttempts
	// times end FAILED, and the parts of a stopping job STOPPED. nil means that there is none. A
	// *NotNowError concerns a partition that was requested by its ID and is available later.
	AssignPartition(ctx context.Context, req AssignRequest) (*Assignment, error)
	// HeartbeatStep extends the lease of a partition and reads the stop flag of its job.
	// ErrLostOwner if the guard finds no row.
	HeartbeatStep(ctx context.Context, ref StepRef, lease time.Duration) (stop bool, err error)
	// PromotePartition is SaveJobContext for the worker of a partition, under the guard of
	// the partition.
	PromotePartition(ctx context.Context, ref StepRef, c *core.ExecutionContext) error
	// ReleasePartition gives back a partition that its worker does not finish: another one continues at
	// the position of its last commit. Until then its error is refused, the reason why the worker could
	// not begin; empty means that the worker stops.
	ReleasePartition(ctx context.Context, ref StepRef, refused string) error
}
