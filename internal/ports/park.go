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
	Visits  []FlowVisit
	// Stopping: the caller knows of a stop request; partitions not taken end STOPPED, the others
	// are awaited.
	Stopping bool
}

// Resumed is an execution that continues in the same attempt.
type Resumed struct {
	Execution *core.JobExecution
	Steps     []core.StepExecution
	// First: launched for workers and not begun; Previous is the instance's execution before it, or
	// nil.
	First    bool
	Previous *core.JobExecution
}

// ResumeRequest names the new owner of an execution.
type ResumeRequest struct {
	Owner  core.Owner
	Worker string
	Lease  time.Duration
	// Dead reports owners known to be dead; may be nil.
	Dead func(core.Owner) bool
}

// Parks let executions wait without an owner for work of other processes.
type Parks interface {
	// Park releases an execution that waits for partitions, with its open steps, in one
	// transaction. It is rejected if an unknown stop was requested.
	Park(ctx context.Context, ref JobRef, p Parking) (core.Answer, error)
	// Ready returns the work that a worker may take now, at most limit of each kind after the
	// position.
	Ready(ctx context.Context, after ReadyPlace, limit int) ([]Ready, error)
	// Resumable returns parked executions that wait for nothing, oldest first, without definitions
	// in except and placements not assigned to worker (rule PL2).
	Resumable(ctx context.Context, worker string, limit int, except []string) ([]core.JobExecutionID, error)
	// RefuseResume stores why a process could not resume a parked execution; a resume clears it.
	RefuseResume(ctx context.Context, id core.JobExecutionID, reason string) error
	// GiveBack takes an unbegun assignment from a worker that cannot begin it: the leader assigns
	// it again (rule PL4).
	GiveBack(ctx context.Context, work Ready, worker string) error
	// RecoverChildren ends lost child jobs of parked parents: no other process waits for
	// them.
	RecoverChildren(ctx context.Context, actor string, dead func(core.Owner) bool) error
	// Resume takes a parked execution in the same attempt: STARTED, or STOPPING on a stop request.
	// Of several processes one succeeds; the others get a *TransitionError.
	Resume(ctx context.Context, id core.JobExecutionID, req ResumeRequest) (Resumed, error)
}

// AssignRequest requests a partition to work on.
type AssignRequest struct {
	Owner  core.Owner
	Worker string
	Lease  time.Duration
	// Part requests this partition in Epoch; 0 means any.
	Part  core.StepExecutionID
	Epoch int64
	// MaxAttempts is the number of assignments after which a partition fails, so that it cannot
	// kill every worker; 0 means DefaultPartAttempts.
	MaxAttempts int
	Except      []string
	Dead        func(core.Owner) bool
}

// DefaultPartAttempts is the default of AssignRequest.MaxAttempts.
const DefaultPartAttempts = 3

// Assignment is a partition that a worker has.
type Assignment struct {
	Step    core.StepExecution // in STARTED, with the position and counters of its last commit
	Earlier *core.StepExecution
	Manager core.StepExecution
	Job     core.JobExecution
	Shared  []byte
	// Resumed are the guards of a returned branch's steps, which continue in the same attempt.
	Resumed []StepRef
}

// Ready is a partition, or a parked execution, that a worker may take now.
type Ready struct {
	// Part 0 means the execution.
	Part      core.StepExecutionID
	Execution core.JobExecutionID
	Epoch     int64
	// Since orders by the execution's launch time, so that begun work goes first; zero means now.
	Since time.Time
}

// ReadyPlace is a place in the list of ready work, which is ordered by ID.
type ReadyPlace struct {
	Part      core.StepExecutionID
	Execution core.JobExecutionID
}

// NotNowError refuses a partition with a valid lease, or with an excepted definition.
type NotNowError struct {
	Part       core.StepExecutionID
	Definition string // the hash
}

// Error says why it cannot be taken.
func (e *NotNowError) Error() string {
	return fmt.Sprintf("step execution %d cannot be claimed now", e.Part)
}

// Announcer notifies workers of ready work in ctx's transaction; a rollback notifies none.
// Duplicates are allowed.
type Announcer interface {
	Announce(ctx context.Context, list ...Ready) error
}

// Assignments give partitions to workers, each with an owner, epoch and lease.
type Assignments interface {
	// AssignPartition takes a partition without a worker, or with a lost one: the same record in a
	// new epoch, at its last commit; nil if there is none. Lost partitions assigned MaxAttempts
	// times end FAILED, parts of a stopping job STOPPED. A *NotNowError: the partition requested by
	// ID is available later.
	AssignPartition(ctx context.Context, req AssignRequest) (*Assignment, error)
	// HeartbeatStep extends a partition's lease and reads the stop flag; ErrLostOwner if
	// the guard finds no row.
	HeartbeatStep(ctx context.Context, ref StepRef, lease time.Duration) (stop bool, err error)
	PromotePartition(ctx context.Context, ref StepRef, c *core.ExecutionContext) error
	// ReleasePartition gives back a partition: another worker continues at its last commit. refused
	// is why the worker could not begin; empty: it stops.
	ReleasePartition(ctx context.Context, ref StepRef, refused string) error
}
