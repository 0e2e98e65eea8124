package repository

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// endings end executions, and what must end or continue with them: the steps of a job or of a branch, and the
// manager or parent that waits for them.
type endings struct {
	store *store
	*auditor
	*announcements
}

// lostOwner is the reason shown by an execution that was taken over.
const lostOwner = ports.LostOwner

// jobIsOver is the reason shown by a step that was unfinished when its job ended.
const jobIsOver = "the job ended before the step did"

// branchIsOver is the reason shown by a step that was unfinished when its branch ended.
const branchIsOver = "the branch ended before the step did"

// notBegun is the reason shown by a partition that no worker had taken when a stop was requested.
const notBegun = "stopped on request before it started"

// endLost ends an execution with a lost owner, and all its unfinished steps (rule L5). The update
// of the steps waits for a chunk that the old owner is committing. Once the epoch is raised, the
// positions are final. endLost returns nil if the execution has moved, or if its owner has renewed
// its lease, unless that owner is known to be dead.
func (r *endings) endLost(ctx context.Context, row *jobExecution, dead bool, act string, l *ledger) (*jobExecution, error) {
	first, args := "", []any{core.StatusFailed, core.ExitFailed, lostOwner, ports.MoveTakeOver, row.ID, row.Owner, row.Epoch, running(), dead}
	if act != actTakeOver { // a take-over has locked the row: its parent must not follow
		condition, bound, err := r.parentFirst(ctx, int64(row.ID))
		if err != nil {
			return nil, err
		}
		first, args = condition, append(args, bound...)
	}
	var jobs []jobExecution
	err := r.store.scan(ctx, &jobs, `UPDATE {job_execution}
		SET status_before = status, status = ?, exit_code = ?, error_text = ?, last_move = ?, last_epoch = epoch,
			epoch = epoch + 1, active = NULL, ended_at = {now}
		WHERE id = ? AND owner = ? AND epoch = ? AND status IN ? AND (? OR lease_until <= {now})`+first+`
		RETURNING status_before, epoch, ended_at, parent_id`, args...)
	if err != nil || len(jobs) == 0 {
		return nil, err
	}
	l.note(jobMachine, int64(row.ID), audit{
		JobExecutionID: row.ID, FromStatus: jobs[0].StatusBefore, Epoch: jobs[0].Epoch, Detail: "from " + row.Owner,
	}, act, ports.Executions().Move(ports.MoveTakeOver))
	if err := r.endSteps(ctx, row.ID, lostOwner, act, l); err != nil {
		return nil, err
	}
	return &jobs[0], r.childEnded(ctx, jobs[0].ParentID)
}

func (r *endings) endSteps(ctx context.Context, id core.JobExecutionID, reason, act string, l *ledger) error {
	steps, err := r.failSteps(ctx, id, reason)
	l.noteSteps(steps, act, ports.Executions().Move(ports.MoveEndWithJob))
	return err
}

// failSteps ends every unfinished step of the job execution and raises its epoch,
// so that a process that still runs it commits nothing more. It returns id,
// status_before and epoch of each.
func (r *endings) failSteps(ctx context.Context, id core.JobExecutionID, reason string) ([]stepExecution, error) {
	return r.failOpen(ctx, ofJob, int64(id), openStep, reason)
}

// failOpen is failSteps for the steps of a job or of a branch, in unfinished states.
func (r *endings) failOpen(ctx context.Context, column string, id int64, states, reason string) ([]stepExecution, error) {
	var steps []stepExecution
	first, bound, err := r.managersFirst(ctx, column, id)
	if err != nil {
		return nil, err
	}
	err = r.store.scan(ctx, &steps, `UPDATE {step_execution}
		SET status_before = status, status = ?, exit_code = ?, error_text = ?, last_move = ?, last_epoch = epoch,
			epoch = epoch + 1, ended_at = {now}
		WHERE `+column+` = ? AND `+states+first+`
		RETURNING id, job_execution_id, status_before, epoch, manager_id, flow`,
		append([]any{core.StatusFailed, core.ExitFailed, reason, ports.MoveEndWithJob, id}, bound...)...)
	if err != nil {
		return nil, err
	}
	return steps, r.countEnded(ctx, steps)
}

// stopUnassigned ends the partitions that no worker has taken, except parts of `finally`.
func (r *endings) stopUnassigned(ctx context.Context, job core.JobExecutionID, l *ledger) error {
	stop := ports.Executions().Move(ports.MoveStop)
	var steps []stepExecution
	first, bound, err := r.managersFirst(ctx, ofJob, int64(job))
	if err != nil {
		return err
	}
	err = r.store.scan(ctx, &steps, `UPDATE {step_execution} AS s
		SET status_before = status, status = ?, exit_code = ?, error_text = ?, last_move = ?, last_epoch = epoch, ended_at = {now}
		WHERE job_execution_id = ? AND `+openStep+` AND status = ? AND owner = '' AND manager_id IS NOT NULL AND NOT `+ofFinally+first+`
		RETURNING id, job_execution_id, status_before, epoch, manager_id, flow`,
		append([]any{stop.To, core.ExitStopped, notBegun, stop.Name, job, core.StatusStarting}, bound...)...)
	if err != nil {
		return err
	}
	l.noteSteps(steps, actEndStep, stop)
	return r.countEnded(ctx, steps)
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

// countEnded lowers the counts of open partitions of the steps' managers, whatever transition ended
// the steps. The caller passes only rows that its transaction ended. The unfinished steps of a
// branch end with its partition. countEnded announces an execution that waited for the last of
// them.
func (r *endings) countEnded(ctx context.Context, steps []stepExecution) error {
	counts := map[core.StepExecutionID]int{}
	for _, s := range steps {
		if id := orZero(s.ManagerID); id != 0 {
			counts[id]++
		}
	}
	if err := r.endBranches(ctx, steps); err != nil {
		return err
	}
	for _, manager := range slices.SortedFunc(maps.Keys(counts), cmp.Compare) {
		var left []stepExecution
		err := r.store.scan(ctx, &left, "UPDATE {step_execution} SET open_parts = open_parts - ? WHERE id = ? RETURNING job_execution_id, open_parts", counts[manager], manager)
		if err != nil {
			return err
		}
		for _, m := range left {
			if m.OpenParts > 0 {
				continue
			}
			if err := r.announceResume(ctx, m.JobExecutionID); err != nil {
				return err
			}
		}
	}
	return nil
}

// endBranches ends the unfinished steps of the branches that this transaction ended: no step
// outlives its branch, and a process that still runs one commits nothing more.
func (r *endings) endBranches(ctx context.Context, ended []stepExecution) error {
	for _, part := range ended {
		if part.ManagerID == nil || part.Flow == "" {
			continue
		}
		_, err := r.recorded(ctx, "", func(ctx context.Context, l *ledger) error {
			steps, err := r.failOpen(ctx, ofBranch, int64(part.ID), openStep, branchIsOver)
			l.noteSteps(steps, actEndStep, ports.Executions().Move(ports.MoveEndWithJob))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// childEnded announces the parent of a job that this transaction ended, if the parent waits for
// nothing else. parent is nil unless the job is a child job.
func (r *endings) childEnded(ctx context.Context, parent *core.JobExecutionID) error {
	if parent == nil {
		return nil
	}
	return r.announceResume(ctx, *parent)
}

// Locks are taken in the order job, manager, partition. The end of a partition locks its manager
// first, because it lowers the manager's count.

// managerFirst locks the manager of a step that ends, and the steps that are parked with it, before the step itself. If the
// last two partitions of a step end concurrently, the second one then sees that no other is open.
func (r *endings) managerFirst(ctx context.Context, step int64) (condition string, args []any, err error) {
	return r.first(ctx, "{step_execution}", `id IN (SELECT id FROM (SELECT p.manager_id AS id FROM {step_execution} p WHERE p.id = ? UNION
		SELECT m.id FROM {step_execution} m WHERE m.status = 'PARKED' AND m.job_execution_id = (SELECT job_execution_id FROM {step_execution} WHERE id = ?)) AS earlier)`, step, step)
}

// managersFirst does the same for the end of all steps of a job or of a branch: column is the one that names it.
func (r *endings) managersFirst(ctx context.Context, column string, id int64) (condition string, args []any, err error) {
	return r.first(ctx, "{step_execution}", column+" = ? AND open_parts > 0", id)
}

// parentFirst locks the parent of a child job that ends before the child: a parent that is parked at the same time either
// sees that the child ended, or is seen parked by the child.
func (r *endings) parentFirst(ctx context.Context, child int64) (condition string, args []any, err error) {
	return r.first(ctx, "{job_execution}", "id = (SELECT c.parent_id FROM {job_execution} c WHERE c.id = ?)", child)
}

// first locks rows before an UPDATE, and returns a condition for it. PostgreSQL does so in the same statement, and MySQL in the
// same transaction, by the primary key: an index would be locked before the row, and by an UPDATE after it. SQLite has one
// writer.
func (r *endings) first(ctx context.Context, table, which string, args ...any) (condition string, bound []any, err error) {
	text := "SELECT id FROM " + table + " WHERE " + which + " ORDER BY id"
	switch r.store.db.Dialect() {
	case tx.Postgres:
		return r.store.sql(" AND (SELECT count(*) FROM (" + text + " FOR NO KEY UPDATE) AS first) >= 0"), args, nil
	case tx.MySQL:
		var ids []int64
		if err = r.store.scan(ctx, &ids, text, args...); err == nil && len(ids) > 0 {
			err = r.store.scan(ctx, &ids, "SELECT id FROM "+table+" FORCE INDEX (PRIMARY) WHERE id {among} ORDER BY id FOR UPDATE", listed(ids))
		}
	case tx.SQLite:
	}
	return "", nil, err
}
