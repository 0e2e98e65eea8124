package batch

import (
	"context"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/job"
	"github.com/surfin-batch/surfin/pkg/batch/runtime"
	"github.com/surfin-batch/surfin/pkg/batch/step"
)

// Work runs partitions that steps have planned for workers (`remote: true`), until stop
// is closed or ctx ends. On stop it finishes the chunks in hand and gives its partitions
// back. The jobs are built from the definitions that are stored with their executions:
// their components must be registered here as well.
func (a *App) Work(ctx context.Context, stop <-chan struct{}, o runtime.Options) error {
	owner, err := job.CurrentOwner()
	if err != nil {
		return err
	}
	observer := a.parts.Observer
	w, err := runtime.NewWorker(runtime.Config{
		Repository: a.parts.Repository, Job: a.Service.StoredJob, Owner: owner,
		Executor: func(t core.Transitions) core.StepExecutor {
			return step.NewSimpleStepExecutor(t, a.parts.Repository.Database(), observer)
		},
		Services: core.StepServices{Stores: a.parts.Checkpoints, Observer: observer, Owners: core.OwnersFunc(job.DeadOwner), Jobs: a.parts.Launcher},
		Resume:   a.resume,
		Lease:    a.parts.Settings.Lease, Heartbeat: a.parts.Settings.Heartbeat, Slots: o.Slots, Poll: o.Poll, Report: o.Report,
	})
	if err != nil {
		return err
	}
	return w.Run(ctx, stop)
}

// resume continues a parked execution, until it is over or parked again. Where this
// worker stops, another one continues it.
func (a *App) resume(ctx context.Context, j *core.Job, id core.JobExecutionID, stop <-chan struct{}) error {
	_, err := a.parts.Launcher.Resume(ctx, j, id, job.Resumption{Release: stop})
	return err
}
