package repository

import (
	"context"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const announceBatch = 1000

// announcements notify workers of work that is ready.
type announcements struct {
	store     *store
	announcer ports.Announcer // may be nil
}

// announceParts announces new rows without a placement, in the transaction that inserts them.
func (r *announcements) announceParts(ctx context.Context, rows []*stepExecution, parts []core.Partition) error {
	if r.announcer == nil {
		return nil
	}
	for batch := range slices.Chunk(rows, announceBatch) {
		list := make([]ports.Ready, 0, len(batch))
		for i, row := range batch {
			if parts[i].On.Stored() == "" {
				list = append(list, ports.Ready{Part: row.ID, Execution: row.JobExecutionID, Epoch: row.Epoch})
			}
		}
		parts = parts[len(batch):]
		if err := r.announcer.Announce(ctx, list...); err != nil {
			return fmt.Errorf("announce partitions: %w", err)
		}
	}
	return nil
}

// announceStep announces a partition that lost its owner, in the transaction that removed the
// owner.
func (r *announcements) announceStep(ctx context.Context, id core.StepExecutionID) error {
	return r.announce(ctx, readyPart+` WHERE s.id = ? AND s.owner = '' AND s.manager_id IS NOT NULL AND s.`+openStep+` AND NOT `+placedPart, id, "")
}

// announceResume announces an execution if it is parked and waits for nothing any more. The end of
// any work that it waits for calls this in its transaction. On PostgreSQL that transaction has
// locked the steps that are parked (managerFirst), and Park announces after it has locked them: so
// of two concurrent transactions one sees the other's changes.
func (r *announcements) announceResume(ctx context.Context, id core.JobExecutionID) error {
	return r.announce(ctx, readyExecution+` WHERE id = ? AND owner = '' AND status IN ? AND NOT `+waits+` AND NOT `+placedExecution,
		id, ports.Executions().Move(ports.MoveResume).From, "")
}

// announceStop announces a parked execution that waited only for tasks when a stop was requested:
// the process that resumes it cancels them.
func (r *announcements) announceStop(ctx context.Context, id core.JobExecutionID) error {
	return r.announce(ctx, readyExecution+` WHERE id = ? AND owner = '' AND status IN ? AND NOT `+waits+` AND EXISTS (SELECT 1 `+openTasks+`)`,
		id, ports.Executions().Move(ports.MoveResume).From)
}

// TasksEnded announces the execution with a parked step that waits for a group of tasks, if it
// waits for nothing any more. It is called in the transaction that ended tasks of the group, after
// its writes. It locks the step, whatever its status, and the steps that are parked with it, as the
// end of a partition does (managerFirst): a concurrent park of the step waits or is waited for, and
// one of the two sees the other's changes.
func (r *announcements) TasksEnded(ctx context.Context, step core.StepExecutionID) error {
	var locked []stepExecution
	err := r.store.scan(ctx, &locked, `SELECT id, job_execution_id, status FROM {step_execution} WHERE id = ? OR status = 'PARKED' AND
		job_execution_id = (SELECT job_execution_id FROM {step_execution} WHERE id = ?) ORDER BY id {for no key update}`, step, step)
	if err != nil {
		return fmt.Errorf("lock executions that wait for tasks: %w", err)
	}
	for _, s := range locked {
		if s.Status == core.StatusParked {
			return r.announceResume(ctx, s.JobExecutionID)
		}
	}
	return nil
}

func (r *announcements) announce(ctx context.Context, text string, args ...any) error {
	if r.announcer == nil {
		return nil
	}
	list, err := r.ready(ctx, text, args...)
	if err != nil || len(list) == 0 {
		return err
	}
	if err := r.announcer.Announce(ctx, list...); err != nil {
		return fmt.Errorf("announce work that is ready: %w", err)
	}
	return nil
}

// readyPart and readyExecution select the columns of a readyRow.
const (
	readyPart = `SELECT s.id AS part, s.job_execution_id AS execution, s.epoch,
		(SELECT e.created_at FROM {job_execution} e WHERE e.id = s.job_execution_id) AS since FROM {step_execution} s`
	readyExecution = `SELECT id AS execution, epoch, created_at AS since FROM {job_execution}`
)

type readyRow struct {
	Part      core.StepExecutionID
	Execution core.JobExecutionID
	Epoch     int64
	Since     instant
}

func (r *announcements) ready(ctx context.Context, text string, args ...any) ([]ports.Ready, error) {
	var rows []readyRow
	if err := r.store.scan(ctx, &rows, text, args...); err != nil {
		return nil, err
	}
	list := make([]ports.Ready, len(rows))
	for i, row := range rows {
		list[i] = ports.Ready{Part: row.Part, Execution: row.Execution, Epoch: row.Epoch, Since: row.Since.Time}
	}
	return list, nil
}
