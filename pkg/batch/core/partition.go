package core

import (
	"context"
)

// MaxPartitions of a step (rule P3).
const MaxPartitions = 100_000

// Partition is a part with its own step execution.
type Partition struct {
	// Name is unique: letters, digits and `_ - . /`, at most 200 bytes.
	Name string
	// Index counts from 0.
	Index int
	// Context begins as the partition's step context (${part.NAME}); on a restart it is the last attempt's.
	Context *ExecutionContext
	// Flow is the log of a split's branch; empty for a partition.
	Flow string
	// On restricts workers; nil means any.
	On *Placement
}

// Clone shares nothing with p.
func (p Partition) Clone() Partition {
	if p.Context != nil {
		p.Context = p.Context.Clone()
	}
	return p
}

// Partitioner lists a step's partitions, once per instance: a restart keeps the plan (rule P1). Without any
// the step completes.
type Partitioner interface {
	Partition(ctx context.Context, v *View) ([]Partition, error)
}

// PartName is a partition's recorded name.
func PartName(step, partition string) string { return step + ":" + partition }
