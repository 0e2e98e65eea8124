package repository

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// parentFirst is the condition with which the UPDATE that ends a child job locks its parent before
// the child: a parent that is parked at the same time either sees that the child ended, or is seen
// parked by the child. Its bind variable is the child's ID. SQLite has one writer and needs no
// lock.
func (r *endings) parentFirst() string {
	if r.store.db.Dialect() != tx.Postgres {
		return " AND ? IS NOT NULL"
	}
	return r.store.sql(` AND (SELECT count(*) FROM (SELECT id FROM {job_execution}
		WHERE id = (SELECT c.parent_id FROM {job_execution} c WHERE c.id = ?) FOR NO KEY UPDATE) AS p) >= 0`)
}

// childEnded announces the parent of a job that this transaction ended, if the parent waits for
// nothing else. parent is nil unless the job is a child job.
func (r *endings) childEnded(ctx context.Context, parent *core.JobExecutionID) error {
	if parent == nil {
		return nil
	}
	return r.announceResume(ctx, *parent)
}

// stopUnbegun ends an execution that was launched for workers and that no worker has begun.
func (r *endings) stopUnbegun(ctx context.Context, id core.JobExecutionID, l *ledger) error {
	stop := ports.Executions().Move(ports.MoveStop)
	var rows []jobExecution
	err := r.store.scan(ctx, &rows, `UPDATE {job_execution}
		SET status_before = status, status = ?, exit_code = ?, error_text = ?, last_move = ?, last_epoch = epoch, active = NULL, ended_at = {now}
		WHERE id = ? AND owner = '' AND started_at IS NULL AND status IN ? RETURNING status_before, epoch, parent_id`,
		stop.To, core.ExitStopped, notBegun, stop.Name, id, stop.From)
	if err != nil || len(rows) == 0 {
		return err
	}
	l.note(jobMachine, int64(id), audit{JobExecutionID: id, FromStatus: rows[0].StatusBefore, Epoch: rows[0].Epoch}, actRequestStop, stop)
	return r.childEnded(ctx, rows[0].ParentID)
}

// stopChildren requests a stop of the running child jobs, except children of `finally`.
func (r *stops) stopChildren(ctx context.Context, id core.JobExecutionID, actor string) error {
	var children []core.JobExecutionID
	err := r.store.scan(ctx, &children, `SELECT c.id FROM {job_execution} c WHERE c.parent_id = ? AND c.active = 1
		AND NOT EXISTS (SELECT 1 FROM {step_execution} s WHERE s.id = c.parent_call AND s.flow = ?)`, id, ports.FlowFinally)
	if err != nil {
		return fmt.Errorf("job execution %d: read its child jobs: %w", id, err)
	}
	for _, child := range children {
		if _, err := r.RequestStop(ctx, child, actor); err != nil && !hasEnded(err) {
			return err
		}
	}
	return nil
}

// RecoverChildren implements ports.Parks.
func (r *parks) RecoverChildren(ctx context.Context, actor string, dead func(core.Owner) bool) error {
	lost, err := r.takeovers.lostOf(ctx, "status IN ? AND parent_id IN (SELECT p.id FROM {job_execution} p WHERE p.active = 1 AND p.owner = '')", dead)
	if err != nil {
		return fmt.Errorf("find child jobs that lost their owner: %w", err)
	}
	for _, c := range lost {
		if _, err := r.takeovers.recover(ctx, c, actor); err != nil {
			return fmt.Errorf("recover job execution %d: %w", c.Row.ID, err)
		}
	}
	return nil
}

// before returns the execution of the instance before this one, or nil.
func (r *explorer) before(ctx context.Context, e *core.JobExecution) (*core.JobExecution, error) {
	list, err := r.Executions(ctx, ports.ExecutionFilter{Instance: e.InstanceID, Before: e.ID, Limit: 1})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}
