package tasks

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// purges implements taskports.Purges.
type purges struct{ *store }

const unfinished = "('WAITING', 'PENDING', 'ASSIGNED', 'RUNNING', 'RETRY_SCHEDULED', 'ORPHANED')"

// purgeable is the condition under which a group g may be deleted: each of its tasks ended longer
// ago than an age in microseconds, and no remaining step reads their results. It takes the negative
// age twice.
const purgeable = `g.created_at < {later}
	AND NOT EXISTS (SELECT 1 FROM {task} t WHERE t.group_id = g.id AND (t.state IN ` + unfinished + ` OR t.updated_at >= {later}))
	AND NOT EXISTS (SELECT 1 FROM {step_execution} s WHERE s.id = g.step_execution_id)`

// PurgeTasks implements task.Purges. It locks a group before its tasks, as everywhere, and judges
// it again: a rerun of one of the tasks comes before, and keeps the group, or finds nothing.
func (r purges) PurgeTasks(ctx context.Context, age time.Duration, limit int, actor string) (groups int, err error) {
	err = r.transact(ctx, func(ctx context.Context) error {
		var found, locked, ids []task.GroupID
		old := -age.Microseconds()
		err := r.scan(ctx, &found, "SELECT g.id FROM {task_group} g WHERE "+purgeable+" ORDER BY g.id LIMIT ?", old, old, limit)
		if err != nil || len(found) == 0 {
			return err
		}
		if err := r.scan(ctx, &locked, "SELECT id FROM {task_group} WHERE id IN ? ORDER BY id{lock}", found); err != nil {
			return err
		}
		if err := r.scan(ctx, &locked, "SELECT group_id FROM {task} WHERE group_id IN ? ORDER BY id{lock}", found); err != nil {
			return err
		}
		if err := r.scan(ctx, &ids, "SELECT g.id FROM {task_group} g WHERE g.id IN ? AND "+purgeable, found, old, old); err != nil || len(ids) == 0 {
			return err
		}
		groups = len(ids)
		return r.deleteGroups(ctx, ids, actor)
	})
	if err != nil {
		return 0, fmt.Errorf("purge tasks: %w", err)
	}
	return groups, nil
}

func (r purges) deleteGroups(ctx context.Context, ids []task.GroupID, actor string) error {
	const ofGroups = "(SELECT id FROM {task} WHERE group_id IN ?)"
	for _, text := range []string{
		"DELETE FROM {task_log} WHERE attempt_id IN (SELECT id FROM {task_attempt} WHERE task_id IN " + ofGroups + ")",
		"DELETE FROM {task_decision} WHERE task_id IN " + ofGroups,
		"DELETE FROM {task_attempt} WHERE task_id IN " + ofGroups,
		"DELETE FROM {task_after} WHERE task_id IN " + ofGroups,
		"DELETE FROM {task} WHERE group_id IN ?",
		"DELETE FROM {task_group} WHERE id IN ?",
	} {
		if _, err := r.exec(ctx, text, ids); err != nil {
			return err
		}
	}
	for _, id := range ids {
		if err := r.note(ctx, "purge", actor, "group "+strconv.FormatInt(int64(id), 10)); err != nil {
			return err
		}
	}
	return nil
}

// logs implements taskports.Logs.
type logs struct{ *store }

// MoveLogs implements taskports.Logs. A text is in the store before its row names the store: a process
// that is killed between the two leaves a copy, which the next call writes again.
func (r logs) MoveLogs(ctx context.Context, to taskports.LogStore, age time.Duration, limit int) (int, error) {
	var rows []struct {
		ID        int64
		AttemptID taskports.AttemptID
		Ordinal   int
		Kind      string
		Body      string
	}
	err := r.scan(ctx, &rows, "SELECT id, attempt_id, ordinal, kind, body FROM {task_log} WHERE body IS NOT NULL AND created_at < {later} ORDER BY created_at LIMIT ?",
		-age.Microseconds(), limit)
	if err != nil {
		return 0, fmt.Errorf("find old log text: %w", err)
	}
	for i, row := range rows {
		ref, err := to.Put(ctx, fmt.Sprintf("attempt-%d-%d-%s.log", row.AttemptID, row.Ordinal, row.Kind), row.Body)
		if err == nil {
			_, err = r.exec(ctx, "UPDATE {task_log} SET body = NULL, log_ref = ? WHERE id = ? AND body IS NOT NULL", ref, row.ID)
		}
		if err != nil {
			return i, fmt.Errorf("move the log of attempt %d: %w", row.AttemptID, err)
		}
	}
	return len(rows), nil
}
