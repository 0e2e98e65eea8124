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
