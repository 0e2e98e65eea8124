package tasks

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

const unfinished = "('WAITING', 'PENDING', 'ASSIGNED', 'RUNNING', 'RETRY_SCHEDULED', 'ORPHANED')"

// purgeable is the condition under which a group g may be deleted: each of its tasks ended longer
// ago than an age in microseconds, and no remaining step reads their results. It takes the negative
// age twice.
const purgeable = `g.created_at < {later}
	AND NOT EXISTS (SELECT 1 FROM {task} t WHERE t.group_id = g.id AND (t.state IN ` + unfinished + ` OR t.updated_at >= {later}))
	AND NOT EXISTS (SELECT 1 FROM {step_execution} s WHERE s.id = g.step_execution_id)`

// PurgeTasks implements task.Purges. It locks a group before its tasks, as everywhere, and judges
// it again: a rerun of one of the tasks comes before, and keeps the group, or finds nothing.
func (r *Repository) PurgeTasks(ctx context.Context, age time.Duration, limit int, actor string) (groups int, err error) {
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

func (r *Repository) deleteGroups(ctx context.Context, ids []task.GroupID, actor string) error {
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
		if err := r.audit(ctx, 0, "purge", actor, "", "", 0, "group "+strconv.FormatInt(int64(id), 10)); err != nil {
			return err
		}
	}
	return nil
}
