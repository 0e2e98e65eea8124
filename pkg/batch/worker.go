package batch

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/jobfile"
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
		Repository: a.parts.Repository, Job: a.storedJob, Owner: owner,
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
func (a *App) resume(ctx context.Context, id core.JobExecutionID, stop <-chan struct{}) error {
	exec, err := a.parts.Repository.Execution(ctx, id)
	if err != nil {
		return err
	}
	j, err := a.storedJob(ctx, *exec)
	if err != nil {
		return err
	}
	_, err = a.parts.Launcher.Resume(ctx, j, id, job.Resumption{Release: stop})
	return err
}

// storedJob builds the job of an execution from its stored definition. No job file is read.
func (a *App) storedJob(ctx context.Context, exec core.JobExecution) (*core.Job, error) {
	d := exec.Definition
	if d.Text == "" {
		return nil, errors.New("no definition is stored with the execution: it is a job that was built in Go")
	}
	f, err := jobfile.ParseStored(d, exec.JobName+".yaml", a.parts.Registry)
	if err != nil {
		return nil, fmt.Errorf("the stored definition: %w", err)
	}
	j, err := f.Compile(jobfile.Deps{Provider: a.parts.Provider, Registry: a.parts.Registry, FileMode: a.parts.Settings.Files.Mode})
	if err != nil {
		return nil, err
	}
	if j.Definition.Hash != d.Hash {
		return nil, fmt.Errorf("the stored definition has the hash %s, and its execution says %s", j.Definition.Hash, d.Hash)
	}
	if j.Bind != nil {
		if err := j.Bind(ctx, exec.Params); err != nil {
			return nil, err
		}
	}
	return j, nil
}
