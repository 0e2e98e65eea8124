package ports

import (
	"context"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// PartitionPlan is the plan of a step execution.
type PartitionPlan struct {
	// Manager plans the partitions; zero means none.
	Manager    StepRef
	Step       string
	Parts      []core.Partition
	Earlier    map[string]core.StepExecution
	ForWorkers bool
	Shared     []byte
	// Again: the reply was lost; the plan may exist already.
	Again bool
}

// PartitionPlans stores the parts of steps, and the memory of composite steps.
type PartitionPlans interface {
	// PlanPartitions inserts a step execution in STARTING for each partition, all or none, under
	// the guards of job and step.
	PlanPartitions(ctx context.Context, job JobRef, plan PartitionPlan) ([]core.StepExecution, error)
	Partitions(ctx context.Context, manager core.StepExecutionID) ([]core.StepExecution, error)
	OpenParts(ctx context.Context, manager core.StepExecutionID) (int64, error)
	// StopPartitions ends as STOPPED the job's partitions that no worker has taken.
	StopPartitions(ctx context.Context, job JobRef) error
	// BeginStep moves from STARTING to STARTED; ErrLostOwner if the guard finds
	// no row.
	BeginStep(ctx context.Context, ref StepRef) error
	EndStep(ctx context.Context, ref StepRef, change StepChange) (core.Answer, error)
	SaveStepContext(ctx context.Context, ref StepRef, c *core.ExecutionContext) error
}
