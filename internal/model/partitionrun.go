package model

import (
	"context"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// PlannedPartition is a partition with the record that its plan made.
type PlannedPartition struct {
	core.Partition
	Record core.StepExecution // in STARTING
	// Earlier is the resumed attempt; nil starts over.
	Earlier *core.StepExecution
}

// PartitionWork is the input of a PartitionRunner.
type PartitionWork struct {
	Step  Step
	Name  string
	Run   *StepRun
	Parts []PlannedPartition
}

// PartitionResult is the end of a partition; zero means unknown and counts as failed.
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
	ForWorkers() bool
	// Run returns the results in order. ErrParked: they run elsewhere and are not over; the step is
	// executed again.
	Run(ctx context.Context, work PartitionWork) ([]PartitionResult, error)
}
