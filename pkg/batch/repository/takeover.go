package repository

import (
	"context"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// takeovers end executions that lost their owner.
type takeovers struct{ *endings }

// lostOf returns the running executions with a lost owner, among the executions of a condition with
// the statuses as its bind variable.
func (r *takeovers) lostOf(ctx context.Context, condition string, dead func(core.Owner) bool) (lost []lostCandidate, err error) {
	var held []lostCandidate
	err = r.store.scan(ctx, &held, "SELECT id, status, owner, epoch, lease_until <= {now} AS expired FROM {job_execution} WHERE "+condition, running())
	if err != nil {
		return nil, err
	}
	for _, c := range held {
		c.dead = dead != nil && c.Row.Owner != "" && dead(ports.ParseOwner(c.Row.Owner))
		if c.dead || c.Expired {
			lost = append(lost, c)
		}
	}
	return lost, nil
}

// lostCandidate is an execution that may be lost: it runs and its lease has expired or its owner is
// dead; or it has ended and a step of it has not.
type lostCandidate struct {
	Row     jobExecution `gorm:"embedded"`
	Expired bool
	dead    bool
}

// recover ends one candidate, and reports whether there was something to end.
func (r *takeovers) recover(ctx context.Context, c lostCandidate, actor string) (bool, error) {
	l, err := r.recorded(ctx, actor, func(ctx context.Context, l *ledger) (err error) {
		if c.Row.Status.IsOver() { // final: no transition leads back
			err = r.endSteps(ctx, c.Row.ID, jobIsOver, actRecover, l)
		} else {
			_, err = r.endLost(ctx, &c.Row, c.dead, actRecover, l)
		}
		return err
	})
	if err != nil {
		return false, err
	}
	return len(l.audits) > 0, nil
}

// settle makes FAILED the execution, and its steps, that are UNKNOWN and ended by lose_commit (rule
// C10). The next attempt of such a step writes itself into the checkpoint's row, which waits for
// the transaction that may still commit, and resumes after the position that the row has then (rule
// L5).
func (r *takeovers) settle(ctx context.Context, id core.JobExecutionID, l *ledger) error {
	move := ports.Executions().Move(ports.MoveSettle)
	set := " SET status_before = status, status = ?, exit_code = CASE WHEN exit_code = ? THEN ? ELSE exit_code END, last_move = ?, last_epoch = epoch, epoch = epoch + 1"
	args := []any{move.To, core.ExitUnknown, core.ExitFailed, move.Name, id, move.From, ports.MoveLoseCommit}
	var jobs []jobExecution
	err := r.store.scan(ctx, &jobs, "UPDATE {job_execution}"+set+" WHERE id = ? AND status IN ? AND last_move = ? RETURNING id, status_before, epoch", args...)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		l.note(jobMachine, int64(j.ID), audit{JobExecutionID: j.ID, FromStatus: j.StatusBefore, Epoch: j.Epoch}, actSettle, move)
	}
	var steps []stepExecution
	err = r.store.scan(ctx, &steps, "UPDATE {step_execution}"+set+" WHERE job_execution_id = ? AND status IN ? AND last_move = ? RETURNING id, job_execution_id, status_before, epoch", args...)
	l.noteSteps(steps, actSettle, move)
	return err
}

// settleable returns the executions that settle can make FAILED: a checkpoint determines the
// outcome of each of their steps.
func (r *takeovers) settleable(ctx context.Context) (ids []core.JobExecutionID, err error) {
	err = r.store.scan(ctx, &ids, `SELECT id FROM {job_execution} WHERE status = 'UNKNOWN' AND last_move = 'lose_commit'
		AND NOT EXISTS (SELECT 1 FROM {step_execution} s WHERE s.job_execution_id = {job_execution}.id AND s.status = 'UNKNOWN' AND s.last_move <> 'lose_commit')`)
	return ids, err
}
