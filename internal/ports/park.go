package ports

import (
	"context"
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
	// Work reports in one statement which calls may find work for a worker. req is as for AssignPartition
	// without a part.
	Work(ctx context.Context, req AssignRequest) (FoundWork, error)
	// RefuseResume stores with a parked execution why a process that should resume it could not. A
	// resume clears it. An execution that is no longer parked is unchanged.
	RefuseResume(ctx context.Context, id core.JobExecutionID, reason string) error
	// RecoverChildren ends, as Operations.Recover does, the executions of child jobs whose
	// owner is lost and with a parked parent: no other process waits for them.
	RecoverChildren(ctx context.Context, actor string, dead func(core.Owner) bool) error
	// Resume takes a parked execution that waits for nothing, in the same attempt: it is STARTED again,
	// or STOPPING if a stop was requested. Of several processes at once one succeeds; the others get a
	// *TransitionError. If a stop was requested, it first ends the partitions with a lost worker.
	Resume(ctx context.Context, id core.JobExecutionID, req ResumeRequest) (Resumed, error)
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

// FoundWork is work that a poll of a worker may take.
type FoundWork struct {
	// Parts is for AssignPartition, Children for RecoverChildren and Parked for Resumable.
	Parts, Children, Parked bool
}

// ReadyPlace is a place in the list of ready work, which is ordered by ID.
type ReadyPlace struct {
	Part      core.StepExecutionID
	Execution core.JobExecutionID
}

// Announcer notifies workers of ready work, in the transaction that ctx carries: a rollback notifies no
// worker. The same may be announced twice.
type Announcer interface {
	Announce(ctx context.Context, list ...Ready) error
}
