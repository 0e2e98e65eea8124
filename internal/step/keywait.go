package step

import (
	"context"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/workslot"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const (
	// longestKeyWait bounds the wait for an execution that holds the key of a child job.
	longestKeyWait = 24 * time.Hour
	// longestKeyPause is the longest pause between two launches of a waiting child job.
	longestKeyPause = time.Second
)

// keyWait is the wait of a step for the execution that holds the key of its child job (rule L12). It
// holds no slot of a worker and no connection. A stop, the step's timeout and the loss of the execution
// end it.
type keyWait struct {
	job    string // the child's name
	run    *model.StepRun
	begin  time.Time
	holder core.JobExecutionID // 0 if it has not waited
}

// wait returns when the child may be launched again. It refuses to wait for an execution that needs the
// end of this one.
func (w *keyWait) wait(ctx context.Context, refused *ports.ExclusiveError) error {
	if holder := refused.Running.ExecutionID; holder != w.holder {
		w.holder = holder
		if err := w.store(ctx, func(c *core.ExecutionContext) error { return c.Put(ports.WaitsKey, int64(holder)) }); err != nil {
			return err
		}
		w.run.Services.Observer.Observe(ctx, core.LaunchWaits{
			Execution: w.run.Data.Job.ID, JobName: w.job, Step: w.run.Step.Name, Reason: refused.Error(),
		})
	}
	needed, err := w.run.Services.Jobs.NeedsUs(ctx, w.holder, w.run.Data.Job.ID)
	switch {
	case err != nil:
		return fmt.Errorf("find the executions that execution %d waits for: %w", w.holder, err)
	case needed:
		return fmt.Errorf("%w, but that execution cannot end before this step does", refused)
	case time.Since(w.begin) > longestKeyWait:
		return fmt.Errorf("%w, and waited for it %v", refused, longestKeyWait)
	case w.run.Stopping():
		return core.ErrStopped
	case w.run.IsLeft():
		return ports.ErrParked
	}
	err = workslot.WithoutSlot(ctx, func() error {
		return w.run.Pause(ctx, model.NextLook(time.Since(w.begin), longestKeyPause), false)
	})
	if err == nil && w.run.Stopping() {
		err = core.ErrStopped
	}
	return err
}

func (w *keyWait) over(ctx context.Context) error {
	if w.holder == 0 {
		return nil
	}
	return w.store(context.WithoutCancel(ctx), func(c *core.ExecutionContext) error { c.Delete(ports.WaitsKey); return nil })
}

func (w *keyWait) store(ctx context.Context, change func(c *core.ExecutionContext) error) error {
	if err := change(w.run.Step.Context); err != nil {
		return err
	}
	if err := w.run.Services.Plans.SaveStepContext(ctx, w.run.Ref, w.run.Step.Context); err != nil {
		return fmt.Errorf("store the execution that the step waits for: %w", err)
	}
	w.run.Step.Context.Stored()
	return nil
}
