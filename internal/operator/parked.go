package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// StoredJob builds the job of an execution from its stored definition, and binds it to the
// parameters of the execution. It reads no job file.
func (s *Service) StoredJob(ctx context.Context, e core.JobExecution) (*model.Job, error) {
	d := e.Definition
	if d.Text == "" {
		return nil, errors.New("no definition is stored with the execution: it is a job that was built in Go")
	}
	f, _, err := s.storedFile(e.Definition, e.JobName)
	if err != nil {
		return nil, fmt.Errorf("the stored definition: %w", err)
	}
	j, err := f.Compile(s.deps(s.config.Registry))
	if err != nil {
		return nil, err
	}
	if j.Definition.Hash != d.Hash {
		return nil, fmt.Errorf("the stored definition has the hash %s, and its execution says %s", j.Definition.Hash, d.Hash)
	}
	if j.Bind != nil {
		if err := j.Bind(ctx, e.Params); err != nil {
			return nil, err
		}
	}
	return j, nil
}

// NotEndedError means that an execution is parked with a requested stop, and that this process
// cannot end it. A worker that has the job's components can.
type NotEndedError struct {
	Execution core.JobExecutionID
	Err       error
}

// Error returns the message with the reason.
func (e *NotEndedError) Error() string {
	return fmt.Sprintf("execution %d was asked to stop, but this process cannot end it: %v", e.Execution, e.Err)
}

// Unwrap returns the cause.
func (e *NotEndedError) Unwrap() error { return e.Err }

// endParked ends an execution that is parked with a requested stop, if no worker has a partition of
// it (rule P5). It returns the execution as it is then. The error is a *NotEndedError, or from
// ending it.
func (s *Service) endParked(ctx context.Context, e *core.JobExecution) (*core.JobExecution, error) {
	if !isParked(e) || !e.StopRequested || s.config.Launcher == nil {
		return e, nil
	}
	if err := s.endChildren(ctx, e.ID); err != nil {
		return e, err
	}
	j, err := s.StoredJob(ctx, *e)
	if err != nil {
		return e, &NotEndedError{Execution: e.ID, Err: err}
	}
	ended, err := s.config.Launcher.Resume(ctx, j, e.ID, job.Resumption{})
	if _, waits := errors.AsType[*core.TransitionError](err); waits && !errors.Is(err, core.ErrLostOwner) {
		return s.config.Repository.Execution(ctx, e.ID)
	}
	if ended == nil {
		ended = e
	}
	return ended, err
}

// endChildren ends the child jobs that are parked with a requested stop, like their parent.
func (s *Service) endChildren(ctx context.Context, parent core.JobExecutionID) error {
	children, err := s.config.Repository.Executions(ctx, ports.ExecutionFilter{Parent: parent, Statuses: ports.Executions().Move(ports.MoveResume).From})
	if err != nil {
		return err
	}
	for i := range children {
		if _, err := s.endParked(ctx, &children[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) endAllParked(ctx context.Context) ([]core.JobExecution, error) {
	var ended []core.JobExecution
	var errs []error
	filter := ports.ExecutionFilter{Statuses: ports.Executions().Move(ports.MoveResume).From}
	for {
		page, err := s.config.Repository.Executions(ctx, filter)
		if err != nil {
			return ended, errors.Join(append(errs, err)...)
		}
		if len(page) == 0 {
			return ended, errors.Join(errs...)
		}
		for i := range page {
			e, err := s.endParked(ctx, &page[i])
			if err != nil {
				errs = append(errs, err)
			} else if e.Status.IsOver() {
				ended = append(ended, *e)
			}
		}
		filter.Before = page[len(page)-1].ID
	}
}

func isParked(e *core.JobExecution) bool { return e.Owner == core.Owner{} && !e.Status.IsOver() }

// start launches a job. First it ends an attempt of the instance that is parked with a requested
// stop, if no worker has a partition of it.
func (s *Service) start(ctx context.Context, l *launch) (*job.Running, error) {
	l.options.Actor = s.actor(ctx)
	launcher := s.config.Launcher.With(l.options)
	started, err := launcher.Start(ctx, l.job, l.params)
	running, refused := errors.AsType[*core.AlreadyRunningError](err)
	if !refused || !running.Parked {
		return started, err
	}
	e, failure := s.config.Repository.Execution(ctx, running.ExecutionID)
	if failure == nil {
		e, failure = s.endParked(ctx, e)
	}
	switch {
	case failure != nil:
		return nil, errors.Join(err, failure)
	case !e.Status.IsOver():
		return nil, err
	}
	return launcher.Start(ctx, l.job, l.params)
}
