package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type parked struct {
	jobs     *jobs
	launcher *job.Launcher
	records  interface {
		Execution(ctx context.Context, id core.JobExecutionID) (*core.JobExecution, error)
		Executions(ctx context.Context, filter ports.ExecutionFilter) ([]core.JobExecution, error)
	}
}

// NotEndedError means that this process cannot end a parked execution with a
// requested stop; a worker with the job's components can.
type NotEndedError struct {
	Execution core.JobExecutionID
	Err       error
}

func (e *NotEndedError) Error() string {
	return fmt.Sprintf("execution %d has a requested stop, but this process cannot end it: %v", e.Execution, e.Err)
}

func (e *NotEndedError) Unwrap() error { return e.Err }

// endParked ends it only if no worker has a partition of it (rule P5). The
// error is a *NotEndedError, or from ending it.
func (s *parked) endParked(ctx context.Context, e *core.JobExecution) (*core.JobExecution, error) {
	if !isParked(e) || !e.StopRequested || s.launcher == nil {
		return e, nil
	}
	if err := s.endChildren(ctx, e.ID); err != nil {
		return e, err
	}
	j, err := s.jobs.StoredJob(ctx, *e)
	if err != nil {
		return e, &NotEndedError{Execution: e.ID, Err: err}
	}
	ended, err := s.launcher.Resume(ctx, j, e.ID, job.Resumption{})
	if _, waits := errors.AsType[*core.TransitionError](err); waits && !errors.Is(err, core.ErrLostOwner) {
		return s.records.Execution(ctx, e.ID)
	}
	if ended == nil {
		ended = e
	}
	return ended, err
}

func (s *parked) endChildren(ctx context.Context, parent core.JobExecutionID) error {
	children, err := s.records.Executions(ctx, ports.ExecutionFilter{Parent: parent, Statuses: ports.Executions().Move(ports.MoveResume).From})
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

func (s *parked) endAllParked(ctx context.Context) ([]core.JobExecution, error) {
	var ended []core.JobExecution
	var errs []error
	filter := ports.ExecutionFilter{Statuses: ports.Executions().Move(ports.MoveResume).From}
	for {
		page, err := s.records.Executions(ctx, filter)
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
