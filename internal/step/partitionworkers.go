package step

import (
	"context"

	"github.com/surfin-batch/surfin/internal/model"
)

// workerPartitions has worker processes run the partitions: a model.PartitionRunner. The execution is
// parked if the walk can be; otherwise, as in parallel branches or in a child job, the step keeps its
// slot and waits.
type workerPartitions struct{}

// ForWorkers is true: any worker may take a partition.
func (w *workerPartitions) ForWorkers() bool { return true }

// Run returns how the partitions ended, once all of them have.
func (w *workerPartitions) Run(ctx context.Context, work model.PartitionWork) ([]model.PartitionResult, error) {
	if err := work.Run.AwaitParts(ctx, longestPoll); err != nil {
		return nil, err
	}
	return w.results(ctx, work.Run)
}

func (w *workerPartitions) results(ctx context.Context, run *model.StepRun) ([]model.PartitionResult, error) {
	records, err := run.Services.Plans.Partitions(ctx, run.Step.ID)
	if err != nil {
		return nil, err
	}
	results := make([]model.PartitionResult, len(records))
	for i, r := range records {
		results[i] = model.PartitionResult{Status: r.Status, ExitCode: r.ExitCode, Message: r.Error, Settles: r.Settles, Counters: r.Counters, InHand: r.InHand}
	}
	return results, nil
}
