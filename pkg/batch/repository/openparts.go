package repository

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Locks are taken in the order job, manager, partition. The end of a partition locks its manager
// first, because it lowers the manager's count.

// managerFirst is the condition with which the UPDATE that ends one step locks the step's manager,
// and the steps that are parked with it, before the step itself. If the last two partitions of a
// step end concurrently, the second one then sees that no other is open. Both bind variables are
// the step's ID. SQLite has one writer and needs no lock.
func (r *endings) managerFirst() string {
	if r.store.db.Dialect() != tx.Postgres {
		return " AND ? IS NOT NULL AND ? IS NOT NULL"
	}
	return r.store.sql(` AND (SELECT count(*) FROM (SELECT id FROM {step_execution} WHERE id IN (
		SELECT p.manager_id FROM {step_execution} p WHERE p.id = ? UNION
		SELECT m.id FROM {step_execution} m WHERE m.status = 'PARKED' AND m.job_execution_id = (SELECT job_execution_id FROM {step_execution} WHERE id = ?))
		ORDER BY id FOR NO KEY UPDATE) AS m) >= 0`)
}

// managersFirst does the same for the UPDATE that ends all steps of a job or of a branch: column is
// the one that names it, and the bind variable is its ID.
func (r *endings) managersFirst(column string) string {
	if r.store.db.Dialect() != tx.Postgres {
		return " AND ? IS NOT NULL"
	}
	return r.store.sql(` AND (SELECT count(*) FROM (SELECT id FROM {step_execution}
		WHERE ` + column + ` = ? AND open_parts > 0 ORDER BY id FOR NO KEY UPDATE) AS m) >= 0`)
}

// countEnded lowers the counts of open partitions of the steps' managers, whatever transition ended
// the steps. The caller passes only rows that its transaction ended. The unfinished steps of a
// branch end with its partition. countEnded announces an execution that waited for the last of
// them.
func (r *endings) countEnded(ctx context.Context, steps []stepExecution) error {
	counts := map[core.StepExecutionID]int{}
	for _, s := range steps {
		if id := idOf(s.ManagerID); id != 0 {
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

// OpenParts implements ports.PartitionPlans.
func (r *plans) OpenParts(ctx context.Context, manager core.StepExecutionID) (int64, error) {
	var open []int64
	err := r.store.scan(ctx, &open, "SELECT open_parts FROM {step_execution} WHERE id = ?", manager)
	if err != nil {
		return 0, fmt.Errorf("count the partitions of step execution %d: %w", manager, err)
	}
	if len(open) == 0 {
		return 0, fmt.Errorf("count the partitions of step execution %d: %w", manager, core.ErrNotFound)
	}
	return open[0], nil
}

// StopPartitions implements ports.PartitionPlans.
func (r *plans) StopPartitions(ctx context.Context, job ports.JobRef) error {
	_, err := r.recorded(ctx, job.Owner.String(), func(ctx context.Context, l *ledger) error {
		held, err := r.holdJob(ctx, job, 0, true)
		if err == nil && held == nil {
			err = core.ErrLostOwner
		}
		if err != nil {
			return err
		}
		return r.stopUnassigned(ctx, job.ID, l)
	})
	if err != nil {
		return fmt.Errorf("stop the partitions of job execution %d: %w", job.ID, err)
	}
	return nil
}

// ofFinally is the condition that row s of a partition belongs to a step of `finally`, which a stop
// does not stop (rule L13).
const ofFinally = `(SELECT m.flow FROM {step_execution} m WHERE m.id = s.manager_id) = '` + ports.FlowFinally + `'`

// stopUnassigned ends the partitions that no worker has taken, except parts of `finally`.
func (r *endings) stopUnassigned(ctx context.Context, job core.JobExecutionID, l *ledger) error {
	stop := ports.Executions().Move(ports.MoveStop)
	var steps []stepExecution
	err := r.store.scan(ctx, &steps, `UPDATE {step_execution} AS s
		SET status_before = status, status = ?, exit_code = ?, error_text = ?, last_move = ?, last_epoch = epoch, ended_at = {now}
		WHERE job_execution_id = ? AND `+openStep+` AND status = ? AND owner = '' AND manager_id IS NOT NULL AND NOT `+ofFinally+r.managersFirst(ofJob)+`
		RETURNING id, job_execution_id, status_before, epoch, manager_id, flow`,
		stop.To, core.ExitStopped, notBegun, stop.Name, job, core.StatusStarting, job)
	if err != nil {
		return err
	}
	l.noteSteps(steps, actEndStep, stop)
	return r.countEnded(ctx, steps)
}

// notBegun is the reason shown by a partition that no worker had taken when a stop was requested.
const notBegun = "stopped on request before it started"
