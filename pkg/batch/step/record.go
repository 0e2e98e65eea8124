package step

import (
	"context"
	"errors"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// record writes the final status outside the step's transaction, even if the step's context has ended.
// A failure that finds the record COMPLETED by the attempt's own move is a success: it committed,
// although the commit was reported as failed (rule C10). Observers are notified of the end when it is
// committed (rule R7); the group notifies them of an end that it records later.
func (e *SimpleStepExecutor) record(ctx context.Context, kind string, run *model.StepRun, end *ending) error {
	if end.recorded {
		err := end.applyTo(run)
		e.ended(ctx, kind, run, end)
		return err
	}
	ctx = context.WithoutCancel(ctx)
	if run.Data.Group != nil {
		var later bool
		if ctx, later = e.inGroup(ctx, end); later {
			run.Deferred = &model.DeferredEnd{Ref: run.Ref, Name: run.Step.Name, Change: end.change}
			return end.applyTo(run)
		}
	}
	err := e.write(ctx, run, end)
	if found, mine := ports.FoundIn(err); mine && found.IsOver() && end.success != nil {
		err, end.outcome, end.promoted, end.err = nil, end.success.outcome, end.success.promoted, nil
	}
	if err != nil {
		e.observer.Observe(ctx, core.EndNotRecorded{
			Execution: run.Step.JobExecutionID, JobName: run.Step.JobName, Step: run.Step.Name, StepID: run.Step.ID, To: end.status, Err: err,
		})
		return errors.Join(err, end.err, end.applyTo(run))
	}
	err = end.applyTo(run)
	e.ended(ctx, kind, run, end)
	return err
}

// write writes the final status, again if the database cannot be reached (rule L9), but not in a
// transaction, which is lost with its connection.
func (e *SimpleStepExecutor) write(ctx context.Context, run *model.StepRun, end *ending) error {
	once := func(ctx context.Context) error {
		_, err := e.repository.EndStep(ctx, run.Ref, end.change)
		return err
	}
	if _, in := tx.From(ctx, e.database); !in {
		return run.Services.Lease.Record(ctx, once)
	}
	ctx, cancel := context.WithTimeout(ctx, recordTime)
	defer cancel()
	return once(ctx)
}

// ended notifies the observers of the end once the repository's transaction in ctx, such as a group's,
// is committed. If it is reported as not committed, the group records another end, or reports this one.
func (e *SimpleStepExecutor) ended(ctx context.Context, kind string, run *model.StepRun, end *ending) {
	ended := core.StepEnded{Step: *run.Step, Kind: kind, Err: end.err}
	tx.AtEnd(ctx, e.database, func(committed bool) {
		if !committed {
			run.Withheld = &ended
			return
		}
		e.observer.Observe(ctx, ended)
	})
}

// inGroup returns where to record the end of a step in a group (rule T6). An end that holds only if the
// group commits is recorded in its transaction, or after it; so is a failure, which would be rolled
// back with it. Work that is committed, or undone, independently of the group is recorded outside it if
// the database allows.
func (e *SimpleStepExecutor) inGroup(ctx context.Context, end *ending) (where context.Context, later bool) {
	outside, ok := tx.Outside(ctx, e.database)
	if end.err != nil {
		return outside, end.part || end.success == nil || !ok
	}
	if !end.part {
		return outside, false
	}
	current, in := tx.From(ctx, e.database)
	return ctx, !in || current.ReadOnly()
}
