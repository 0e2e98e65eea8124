package model

import (
	"context"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// PlannedPartition is a partition with the record that its plan made.
type PlannedPartition struct {
	core.Partition
	Record core.StepExecution // in STARTING
	// Earlier is the attempt that it resumes; nil starts over.
	Earlier *core.StepExecution
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
	Status   core.Status
	ExitCode string
	Message  string
	Settles  bool // as in StepExecution
	Counters core.Counters
	InHand   core.Counters // the uncommitted part of Counters
	Lost     error         // ErrLostOwner in its chain
}

// PartitionRunner runs the partitions that a step planned.
type PartitionRunner interface {
	// ForWorkers reports whether the partitions are planned without an owner.
	ForWorkers() bool
	// Run returns how each partition ended, in their order. ErrParked means that they run elsewhere and
	// are not over: the step is executed again when they are.
	Run(ctx context.Context, work PartitionWork) ([]PartitionResult, error)
}
