package ports

import (
	"context"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// StepSeries has the samples of a step execution's counters over time.
type StepSeries struct {
	Step core.StepExecutionID
	// Samples is their stored form (package series).
	Samples []byte
	// Since is how long ago the series began.
	Since time.Duration
}

// SampledStep is a step execution with its samples.
type SampledStep struct {
	ID     core.StepExecutionID
	Name   string
	Status core.Status
	Error  string
	// Manager planned this part, also of a split; 0 for a step.
	Manager core.StepExecutionID
	// HasParts: its counters are its parts'.
	HasParts bool
	// IsBranch: it walks a branch of a split, with steps of its own.
	IsBranch bool
	// Committed are its counters.
	Committed core.Counters
	StartedAt time.Time
	EndedAt   time.Time // or zero
	// Samples is empty if none are stored. They begin at Since.
	Samples []byte
	Since   time.Time
}

// SampledRequest selects the steps of an execution.
type SampledRequest struct {
	Execution core.JobExecutionID
	// After selects step executions with a greater ID: the key of the next page.
	After core.StepExecutionID
	// Brief leaves out the samples.
	Brief bool
	// Limit is the size of the page.
	Limit int
}

// Series stores the counters of steps over time (rule OP8).
type Series interface {
	// StoreSeries stores the samples of step executions, in place of stored ones. guard is the guard of
	// the process's heartbeats: without its owner and epoch, or for the step of another, nothing is stored, and
	// that is not an error.
	StoreSeries(ctx context.Context, guard JobRef, series []StepSeries) error
	// StoredSeries returns the stored samples of step executions that have some.
	StoredSeries(ctx context.Context, ids ...core.StepExecutionID) (map[core.StepExecutionID]StepSeries, error)
	// SampledSteps returns the step executions of an execution, in the order of their IDs.
	SampledSteps(ctx context.Context, req SampledRequest) ([]SampledStep, error)
}
