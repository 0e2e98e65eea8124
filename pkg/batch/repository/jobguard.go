package repository

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// jobGuard locks the row of a job execution under its guard.
type jobGuard struct{ *moves }

// holdJob locks the job execution's row under its guard for so many new steps, or returns nil.
// Unless always is set it ignores an execution with a requested stop.
func (r *jobGuard) holdJob(ctx context.Context, job ports.JobRef, steps int, always bool) (*jobExecution, error) {
	if job.Branch != 0 {
		held, err := r.holdBranch(ctx, job)
		if err != nil || !held {
			return nil, err
		}
	}
	var rows []jobExecution
	text, args := holdSQL(job, steps, always)
	err := r.store.scan(ctx, &rows, text, args...)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

func holdSQL(job ports.JobRef, steps int, always bool) (text string, args []any) {
	guarded, args := "owner = ? AND epoch = ? AND status IN ?", []any{steps, job.ID, job.Owner.String(), job.Epoch, stepStates()}
	if job.Branch != 0 {
		guarded, args = "active = 1", args[:2]
	}
	if !always {
		guarded += " AND NOT stop_requested"
	}
	return "UPDATE {job_execution} SET step_count = step_count + ? WHERE id = ? AND " + guarded + " RETURNING job_name", args
}

// holdBranch locks the row of the job, and then the row of the partition that walks the branch,
// under its guard: a process that takes the partition from its worker either comes before it, and
// the step is refused, or after it, and finds the step.
func (r *jobGuard) holdBranch(ctx context.Context, job ports.JobRef) (bool, error) {
	var found []int64
	err := r.store.scan(ctx, &found, "SELECT id FROM {job_execution} WHERE id = ? AND active = 1 {for no key update}", job.ID)
	if err != nil || len(found) == 0 {
		return false, err
	}
	found = nil
	err = r.store.scan(ctx, &found, "SELECT id FROM {step_execution} WHERE id = ? AND "+ownEpoch+" AND status IN ? {for no key update}",
		job.Branch, job.Owner.String(), job.Epoch, job.Epoch, stepStates())
	return len(found) > 0, err
}

func stepStates() []core.Status { return ports.MoveTo(core.StatusCompleted).From }

// refuseStep returns why holdJob found no row. No answer is benign: without its own row the step
// must not run.
func (r *jobGuard) refuseStep(ctx context.Context, job ports.JobRef) (verdict, error) {
	m := ownJobMove(job, ports.MoveTo(core.StatusStarted), actStartStep)
	if job.Branch != 0 {
		m = stepMove(ports.StepRef{ID: job.Branch, Owner: job.Owner, Epoch: job.Epoch}, m.move, m.act)
	}
	v, err := r.classify(ctx, m, ports.Executions())
	if err != nil {
		return v, err
	}
	stopped, err := r.isStopped(ctx, job.ID)
	if err != nil {
		return v, err
	}
	if stopped && !errors.Is(v.err, core.ErrLostOwner) && slices.Contains(stepStates(), v.current) {
		v.answer, v.err = core.Rejected, fmt.Errorf("a stop of execution %d was requested: %w", job.ID, core.ErrStopped)
		return v, nil
	}
	if v.err == nil {
		v.err = &core.TransitionError{Machine: m.machine, ID: m.id, Move: m.move.Name, To: core.StatusStarted, Current: v.current}
	}
	if refused, ok := errors.AsType[*core.TransitionError](v.err); ok && v.current != "" {
		refused.From, refused.Reason = stepStates(), "a step cannot start now"
	}
	v.answer = core.Rejected
	return v, nil
}

func (r *jobGuard) isStopped(ctx context.Context, id core.JobExecutionID) (bool, error) {
	var asked []bool
	err := r.store.scan(ctx, &asked, "SELECT stop_requested FROM {job_execution} WHERE id = ?", id)
	return len(asked) > 0 && asked[0], err
}

// unlessStopped is the condition under which a partition begins: no stop of its execution was
// requested, or the partition belongs to a step of `finally`. Both bind variables are the
// partition's ID. It locks the job's row before the partition's, as every start does, so that a
// request either comes first and is seen, or finds the partition begun.
const unlessStopped = `(NOT (SELECT j.stop_requested FROM {job_execution} j
			WHERE j.id = (SELECT p.job_execution_id FROM {step_execution} p WHERE p.id = ?) {for share})
		OR EXISTS (SELECT 1 FROM {step_execution} p JOIN {step_execution} m ON m.id = p.manager_id
			WHERE p.id = ? AND m.flow = '` + ports.FlowFinally + `'))`
