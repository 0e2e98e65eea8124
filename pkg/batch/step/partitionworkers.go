package step

import (
	"context"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// workerPoll is the time between two looks of a step that waits for its partitions
// without being parked.
const workerPoll = time.Second

// workerPartitions has worker processes run the partitions: a core.PartitionRunner. The
// execution is parked where the walk can be; elsewhere, as in a branch beside others or
// in a child job, the step keeps its place and waits.
type workerPartitions struct{ poll time.Duration }

// ForWorkers is true: any worker may take a partition.
func (w *workerPartitions) ForWorkers() bool { return true }

// Run returns how the partitions ended, once all of them have. When a stop is asked for,
// those end STOPPED that no worker has taken, or that one has given back since; the others
// see the request themselves.
func (w *workerPartitions) Run(ctx context.Context, work core.PartitionWork) (results []core.PartitionResult, err error) {
	if work.Run.Data.MayPark {
		return w.watch(ctx, work.Run)
	}
	err = core.WithoutSlot(ctx, func() (err error) {
		results, err = w.watch(ctx, work.Run)
		return err
	})
	return results, err
}

func (w *workerPartitions) watch(ctx context.Context, run *core.StepRun) ([]core.PartitionResult, error) {
	for {
		stopping := run.Stopping() && !run.Data.MayPark
		if stopping {
			if err := run.Services.Plans.StopPartitions(ctx, run.Data.JobRef); err != nil {
				return nil, err
			}
		}
		open, err := run.Services.Plans.OpenParts(ctx, run.Step.ID)
		switch {
		case err != nil:
			return nil, err
		case open == 0:
			return w.results(ctx, run)
		case run.Data.MayPark:
			return nil, core.ErrParked
		}
		if err := w.wait(ctx, run, stopping); err != nil {
			return nil, err
		}
	}
}

// wait waits until the partitions are looked at again.
func (w *workerPartitions) wait(ctx context.Context, run *core.StepRun, stopped bool) error {
	stop := run.Services.Stop.Done()
	if stopped {
		stop = nil
	}
	timer := time.NewTimer(w.poll)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-stop:
	case <-timer.C:
	}
	return nil
}

func (w *workerPartitions) results(ctx context.Context, run *core.StepRun) ([]core.PartitionResult, error) {
	records, err := run.Services.Plans.Partitions(ctx, run.Step.ID)
	if err != nil {
		return nil, err
	}
	results := make([]core.PartitionResult, len(records))
	for i, r := range records {
		results[i] = core.PartitionResult{Status: r.Status, ExitCode: r.ExitCode, Message: r.Error, Counters: r.Counters, InHand: r.InHand}
	}
	return results, nil
}
