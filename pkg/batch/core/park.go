package core

import (
	"context"
	"fmt"
	"time"
)

// Parking is what is stored when an execution is parked.
type Parking struct {
	// Context is merged, as SaveJobContext does it; nil leaves what is there.
	Context *ExecutionContext
	// Visits are rows of the journal that wait for the next write.
	Visits []FlowVisit
	// Stopping says that the caller knows of a request to stop: partitions that no worker
	// has taken end STOPPED, and the execution waits for the others.
	Stopping bool
}

// Resumed is an execution that continues in the same attempt.
type Resumed struct {
	Execution *JobExecution
	// Steps are its steps that were parked.
	Steps []StepExecution
	// First says that it was launched for workers, and has not begun. Previous is the
	// instance's execution before it then; nil: there is none.
	First    bool
	Previous *JobExecution
}

// ResumeRequest names who resumes an execution.
type ResumeRequest struct {
	Owner Owner
	// Worker is the name of the worker that resumes it, and gets what the leader assigned to it; "": none does.
	Worker string
	Lease  time.Duration
	// Dead reports whether the owner of a partition is known to be dead. nil: none is.
	Dead func(Owner) bool
}

// Parks let executions wait for work of other processes without an owner.
type Parks interface {
	// Park releases an execution whose walk waits for partitions, with its open steps, in
	// one transaction. It is rejected if a stop was requested that the caller does not know
	// of: see Parking.Stopping.
	Park(ctx context.Context, ref JobRef, p Parking) (Answer, error)
	// Ready returns what a worker may take now, behind the place after and at most limit of
	// each kind: parts without an owner, or whose lease is over, and parked executions that
	// wait for nothing any more.
	Ready(ctx context.Context, after ReadyPlace, limit int) ([]Ready, error)
	// Resumable returns parked executions that wait for nothing, oldest first, but for those
	// with a definition whose hash is in except, and those with a placement that worker was not
	// assigned (rule PL2).
	Resumable(ctx context.Context, worker string, limit int, except []string) ([]JobExecutionID, error)
	// RefuseResume stores with a parked execution why a process that should resume it could
	// not. A resume clears it. An execution that is not parked any more keeps what it has.
	RefuseResume(ctx context.Context, id JobExecutionID, reason string) error
	// GiveBack takes the assignment of a part or an execution that it has not begun from a worker which cannot begin it:
	// the leader assigns it again (rule PL4). One that the worker does not have, or has begun, stays as it is.
	GiveBack(ctx context.Context, work Ready, worker string) error
	// RecoverChildren ends, as Operations.Recover does, the executions of child jobs whose
	// owner is lost and whose parent is parked: no other process waits for them.
	RecoverChildren(ctx context.Context, actor string, dead func(Owner) bool) error
	// Resume takes a parked execution that waits for nothing, in the same attempt: it
	// is STARTED again, or STOPPING if a stop was requested. Of several processes at once
	// one succeeds; the others get a *TransitionError. Where a stop was requested, it first
	// ends the partitions whose worker is lost.
	Resume(ctx context.Context, id JobExecutionID, req ResumeRequest) (Resumed, error)
}

// AssignRequest asks for a partition to work on.
type AssignRequest struct {
	Owner Owner
	// Worker is the name of the worker, which gets what the leader assigned to it; "": it gets none of that.
	Worker string
	Lease  time.Duration
	// Part asks for this partition in this epoch, Epoch; 0: for any.
	Part  StepExecutionID
	Epoch int64
	// MaxAttempts is how often a partition is assigned before it fails: a partition that
	// kills its worker must not kill them all. 0: DefaultPartAttempts.
	MaxAttempts int
	// Except are hashes of definitions that the worker cannot build.
	Except []string
	// Dead reports whether an owner is known to be dead: its partitions are taken before
	// their lease expired. nil: none is.
	Dead func(Owner) bool
}

// DefaultPartAttempts is AssignRequest.MaxAttempts.
const DefaultPartAttempts = 3

// Assignment is a partition that a worker has.
type Assignment struct {
	Step StepExecution // in STARTED, with the position and counters of its last commit
	// Earlier is the attempt that the partition resumes; nil: it began anew.
	Earlier *StepExecution
	// Manager is the step that planned it.
	Manager StepExecution
	Job     JobExecution
	// Shared is PartitionPlan.Shared.
	Shared []byte
	// Resumed are the guards of the steps of a branch that were given back with its part, and
	// which go on in the same attempt.
	Resumed []StepRef
}

// Ready is a partition, or a parked execution, that a worker may take now.
type Ready struct {
	// Part is the partition; 0: it is the execution.
	Part StepExecutionID
	// Execution is that of the partition, or the one that is parked.
	Execution JobExecutionID
	// Epoch is that of the row of the partition, or of the execution.
	Epoch int64
	// Since is the time of its place among those that wait: that of the execution's launch,
	// so that what was begun goes first. Zero: now, for parts that are new.
	Since time.Time
}

// ReadyPlace is a place in the list of what is ready, which is in the order of ids.
type ReadyPlace struct {
	Part      StepExecutionID
	Execution JobExecutionID
}

// NotNowError is the answer to a worker that asks for a partition whose lease has not
// ended, or of a definition that the worker has excepted.
type NotNowError struct {
	Part       StepExecutionID
	Definition string // the hash
}

// Error says what cannot be taken.
func (e *NotNowError) Error() string {
	return fmt.Sprintf("step execution %d cannot be taken now", e.Part)
}

// Announcer tells workers what is ready, in the transaction that ctx carries: of what is
// rolled back they hear nothing. The same may be announced twice.
type Announcer interface {
	Announce(ctx context.Context, list ...Ready) error
}

// Assignments give partitions to workers. A partition has an owner, an epoch and a lease
// of its own.
type Assignments interface {
	// AssignPartition takes a partition that no worker has, or whose worker is lost: the
	// same record with a new epoch, at the position of its last commit. Lost ones that were
	// assigned MaxAttempts times end FAILED, and those of a job that is to stop STOPPED.
	// nil: there is none. A *NotNowError of a partition that was asked for by its
	// id, and is still to be had, but not now.
	AssignPartition(ctx context.Context, req AssignRequest) (*Assignment, error)
	// HeartbeatStep extends the lease of a partition and reads the stop flag of its job.
	// ErrLostOwner if the guard finds no row.
	HeartbeatStep(ctx context.Context, ref StepRef, lease time.Duration) (stop bool, err error)
	// PromotePartition is SaveJobContext for the worker of a partition, under the guard of
	// the partition.
	PromotePartition(ctx context.Context, ref StepRef, c *ExecutionContext) error
	// ReleasePartition gives a partition back that its worker does not finish: another one
	// takes it up at the position of its last commit. Until then its error is refused, the
	// reason why the worker could not begin; empty: it stops.
	ReleasePartition(ctx context.Context, ref StepRef, refused string) error
}
