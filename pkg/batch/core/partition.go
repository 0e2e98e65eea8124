package core

import (
	"context"
	"strings"
)

// MaxPartitions is the maximum number of partitions of a step (rule P3).
const MaxPartitions = 100_000

// Partition is one part of a partitioned step's work, with a step execution of
// its own.
type Partition struct {
	// Name is unique in the step: letters, digits and `_ - . /`, at most 200 bytes.
	Name string
	// Index counts from 0.
	Index int
	// Context is the partition's step context when it first starts, which ${part.NAME} reads. On a
	// restart it is the context of the last attempt.
	Context *ExecutionContext
	// Flow is the log of the branch of a split that the part walks; empty means that the part is a
	// partition.
	Flow string
	// On restricts the workers that may do it; nil means any.
	On *Placement
}

// Clone returns a copy that shares nothing with p.
func (p Partition) Clone() Partition {
	if p.Context != nil {
		p.Context = p.Context.Clone()
	}
	return p
}

// Partitioner lists the partitions of a step: the component kind "partitioner". It is called once per
// instance: a restart keeps the plan (rule P1). Without partitions the step completes.
type Partitioner interface {
	Partition(ctx context.Context, v *View) ([]Partition, error)
}

// PlannedPartition is a partition with the record that its plan made.
type PlannedPartition struct {
	Partition
	Record StepExecution // in STARTING
	// Earlier is the attempt that it resumes; nil starts over.
	Earlier *StepExecution
}

// PartitionWork is the input of a PartitionRunner.
type PartitionWork struct {
	// Step does the work of one partition.
	Step Step
	// Name is the recorded name of the partitioned step.
	Name string
	// Run is the run of the partitioned step.
	Run   *StepRun
	Parts []PlannedPartition
}

// PartitionResult is the end of a partition. The zero value means unknown and counts as failed.
type PartitionResult struct {
	Status   Status
	ExitCode string
	Message  string
	Settles  bool // as in StepExecution
	Counters Counters
	InHand   Counters // the uncommitted part of Counters
	Lost     error    // ErrLostOwner in its chain
}

// PartitionRunner runs the partitions that a step planned.
type PartitionRunner interface {
	// ForWorkers reports whether the partitions are planned without an owner.
	ForWorkers() bool
	// Run returns how each partition ended, in their order. ErrParked means that they run elsewhere and
	// are not over: the step is executed again when they are.
	Run(ctx context.Context, work PartitionWork) ([]PartitionResult, error)
}

// PartitionPlan is the plan of a step execution.
type PartitionPlan struct {
	// Manager is the step execution that plans the partitions; zero means none.
	Manager StepRef
	// Step is the recorded name of the manager: each partition is recorded as STEP:PARTITION.
	Step  string
	Parts []Partition
	// Earlier are the attempts that partitions resume, by the partition's name: a new record begins
	// with the position of that attempt.
	Earlier map[string]StepExecution
	// ForWorkers leaves the partitions without an owner: any worker may take one.
	ForWorkers bool
	// Shared is the data about the step's run that workers need, other than its partitions.
	Shared []byte
	// Again means that the reply to the same request was lost: the plan may exist already.
	Again bool
}

// PartitionPlans stores the parts of a step, and the memory of steps made of other steps or jobs.
type PartitionPlans interface {
	// PlanPartitions inserts a step execution in STARTING for each partition, all of them or none,
	// under the guard of the job and of the step that plans them, which counts them
	// (StepExecution.OpenParts). The records are in the order of the partitions.
	PlanPartitions(ctx context.Context, job JobRef, plan PartitionPlan) ([]StepExecution, error)
	// Partitions returns the step executions that a step planned, in order.
	Partitions(ctx context.Context, manager StepExecutionID) ([]StepExecution, error)
	// OpenParts returns the number of planned executions that are not over.
	OpenParts(ctx context.Context, manager StepExecutionID) (int64, error)
	// StopPartitions ends as STOPPED the partitions of the job that are planned for workers and not
	// taken by one, under the guard of the job.
	StopPartitions(ctx context.Context, job JobRef) error
	// BeginStep moves a planned step execution from STARTING to STARTED.
	// ErrLostOwner if the guard finds no row.
	BeginStep(ctx context.Context, ref StepRef) error
	// EndStep ends a partition that does not begin: see Transitions.
	EndStep(ctx context.Context, ref StepRef, change StepChange) (Answer, error)
	// SaveStepContext: see Transitions.
	SaveStepContext(ctx context.Context, ref StepRef, c *ExecutionContext) error
}

// IndexKey is the key of a partition's context that holds its index in the plan.
const IndexKey = "surfin.index"

// PartitionOf returns the partition of a step's record.
func PartitionOf(step string, record StepExecution) Partition {
	p := Partition{Name: strings.TrimPrefix(record.Name, PartName(step, "")), Context: NewExecutionContext()}
	if record.Context != nil {
		p.Context = record.Context.Clone()
	}
	if index, ok := p.Context.Get(IndexKey); ok {
		n, _ := index.(int64) //nolint:errcheck // absent is zero
		p.Index = int(n)
	}
	return p
}

// PartName returns the recorded name of a partition's step execution.
func PartName(step, partition string) string { return step + ":" + partition }
