package ports

import (
	"context"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// PartitionPlan is the plan of a step execution.
type PartitionPlan struct {
	// Manager is the step execution that plans the partitions; zero means none.
	Manager StepRef
	// Step is the recorded name of the manager: each partition is recorded as STEP:PARTITION.
	Step  string
	Parts []core.Partition
	// Earlier are the attempts that partitions resume, by the partition's name: a new record begins
	// with the position of that attempt.
	Earlier map[string]core.StepExecution
	// ForWorkers leaves the partitions without an owner: any worker may take one.
	ForWorkers bool
	// Shared is the data about the step's run that workers need, other than its partitions.
	Shared []byte
	// Again means that the reply to the same request was lost: the plan may exist already.
	Again bool
}

// PartitionPlans stores the parts of a step.
type PartitionPlans interface {
	// PlanPartitions inserts a step execution in STARTING for each partition, all of them or none,
	// under the guard of the job and of the step that plans them, which counts them
	// (StepExecution.OpenParts). The records are in the order of the partitions.
	PlanPartitions(ctx context.Context, job JobRef, plan PartitionPlan) ([]core.StepExecution, error)
	// Partitions returns the step executions that a step planned, in order.
	Partitions(ctx context.Context, manager core.StepExecutionID) ([]core.StepExecution, error)
	// OpenParts returns the number of planned executions that are not over.
	OpenParts(ctx context.Context, manager core.StepExecutionID) (int64, error)
	// StopPartitions ends as STOPPED the partitions of the job that are planned for workers and not
	// taken by one, under the guard of the job.
	StopPartitions(ctx context.Context, job JobRef) error
	// SaveStepPosition stores the position of the step that planned the partitions. ErrLostOwner if the guard finds no row.
	SaveStepPosition(ctx context.Context, ref StepRef, at item.Position) error
	// BeginStep moves a planned step execution from STARTING to STARTED.
	// ErrLostOwner if the guard finds no row.
	BeginStep(ctx context.Context, ref StepRef) error
}
