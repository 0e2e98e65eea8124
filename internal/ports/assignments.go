package ports

import (
	"context"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

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
