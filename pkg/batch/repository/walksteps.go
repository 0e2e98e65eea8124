package repository

import (
	"context"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// walkOf is a walk with steps that move together: a job's walk, or the walk of a branch by a
// worker.
type walkOf struct {
	column string
	id     int64
}

// condition leaves the steps of branches that workers walk out of the steps of a job.
func (w walkOf) condition() string {
	if w.column == ofJob {
		return " AND branch_id IS NULL"
	}
	return ""
}

// parkSteps parks the unfinished steps of a job's own walk, or of a branch.
func (r *moves) parkSteps(ctx context.Context, of walkOf, l *ledger) error {
	park := ports.Executions().Move(ports.MovePark)
	var steps []stepExecution
	err := r.store.scan(ctx, &steps, `UPDATE {step_execution}
		SET status_before = status, status = ?, last_move = ?, last_epoch = epoch, owner = ''
		WHERE `+of.column+` = ? AND `+openStep+` AND status IN ? AND manager_id IS NULL`+of.condition()+`
		RETURNING id, job_execution_id, status_before, epoch`, park.To, park.Name, of.id, park.From)
	l.noteSteps(steps, actPark, park)
	return err
}

// resumeSteps makes an owner the owner of the parked steps of a walk, and returns their guards.
func (r *moves) resumeSteps(ctx context.Context, of walkOf, owner core.Owner, l *ledger) ([]ports.StepRef, error) {
	resume := ports.Executions().Move(ports.MoveResume)
	var steps []stepExecution
	err := r.store.scan(ctx, &steps, `UPDATE {step_execution}
		SET status_before = status, status = ?, last_move = ?, last_epoch = epoch, epoch = epoch + 1, owner = ?
		WHERE `+of.column+` = ? AND `+openStep+` AND status = ? AND owner = '' AND manager_id IS NULL`+of.condition()+`
		RETURNING id, job_execution_id, status_before, epoch`, resume.To, resume.Name, owner.String(), of.id, core.StatusParked)
	l.noteSteps(steps, actResume, resume)
	refs := make([]ports.StepRef, len(steps))
	for i, s := range steps {
		refs[i] = ports.StepRef{ID: s.ID, Owner: owner, Epoch: s.Epoch}
	}
	return refs, err
}
