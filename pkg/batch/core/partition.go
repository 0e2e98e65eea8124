package core

import "context"

// MaxPartitions is how many partitions a step may have (rule P3).
const MaxPartitions = 100_000

// Partition is one part of a partitioned step's work, with a step execution of
// its own.
type Partition struct {
	// Name is unique in the step: letters, digits and `_ - . /`, at most 200 bytes.
	Name string
	// Index counts from 0.
	Index int
	// Context is the partition's step context when it starts for the first time: what
	// ${part.NAME} reads. On a restart it is what the last attempt left.
	Context *ExecutionContext
}

// Clone returns a copy that shares nothing with p.
func (p Partition) Clone() Partition {
	if p.Context != nil {
		p.Context = p.Context.Clone()
	}
	return p
}

// Partitioner says what the parts of a step's work are: the component kind
// "partitioner". It is asked once per instance: a restart keeps the plan (rule
// P1). No partitions is no work: the step completes.
type Partitioner interface {
	Partition(ctx context.Context, v *View) ([]Partition, error)
}

// PartitionPlans stores what the parts of a step are, and what steps made of other
// steps or jobs have to remember.
type PartitionPlans interface {
	// PlanPartitions inserts a step execution in STARTING for each partition, all of
	// them or none, under the guard of the job: its name is STEP:PARTITION, its
	// context the partition's, and its position that of earlier, by partition, where
	// there is one. The records are in the order of the partitions.
	PlanPartitions(ctx context.Context, job JobRef, step string, parts []Partition, earlier map[string]StepExecution) ([]StepExecution, error)
	// BeginStep moves a planned step execution from STARTING to STARTED.
	// ErrLostOwner if the guard finds no row.
	BeginStep(ctx context.Context, ref StepRef) error
	// EndStep ends a partition that does not begin: see Transitions.
	EndStep(ctx context.Context, ref StepRef, change StepChange) (Answer, error)
	// SaveStepContext: see Transitions.
	SaveStepContext(ctx context.Context, ref StepRef, c *ExecutionContext) error
}

// PartName is what a partition's step execution is recorded as.
func PartName(step, partition string) string { return step + ":" + partition }
