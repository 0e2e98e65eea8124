package tasks

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/guard"
)

// letGoOf is the condition that no worker is at work on a task that is over.
func (r *Repository) letGoOf() guard.Condition {
	return guard.Condition{SQL: r.sql("lease_until IS NULL OR lease_until < {now}"), Reason: "its worker has not let go of it yet"}
}

// rerunning makes a task be attempted as if it were new.
func (r *Repository) rerunning() []guard.Assignment {
	return append(r.delivering(), guard.Set("attempts", 0), guard.SetSQL("deadline_at", "NULL"), guard.SetSQL("next_run_at", "NULL"))
}

// Continue implements task.Submissions. The group's row is locked first, as by CancelGroup.
func (r *Repository) Continue(
	ctx context.Context, id task.GroupID, step core.StepExecutionID, actor, reason string,
) (left int, ds []task.Delivery, err error) {
	err = r.transact(ctx, func(ctx context.Context) error {
		left, ds = 0, nil
		if _, err := r.lockGroup(ctx, id); err != nil {
			return err
		}
		_, err := r.exec(ctx, "UPDATE {task_group} SET step_execution_id = ?, cancel_requested_at = NULL, updated_at = {now} WHERE id = ?", step, id)
		if err != nil {
			return err
		}
		if ds, err = r.rerunAll(ctx, id, actor, reason); err != nil {
			return err
		}
		return r.scan(ctx, &left, "SELECT count(*) FROM {task} WHERE group_id = ? AND state IN ?", id, unsuccessful())
	})
	if err != nil {
		return 0, nil, fmt.Errorf("continue group %d: %w", id, err)
	}
	return left, ds, nil
}

// rerunAll makes MoveRerun of what no worker has any more.
func (r *Repository) rerunAll(ctx context.Context, id task.GroupID, actor, reason string) (ds []task.Delivery, err error) {
	for {
		moved, err := r.tasks.MoveAll(ctx, guard.Bulk{
			Move: task.MoveRerun, Where: []guard.Condition{{SQL: "group_id = ?", Args: []any{id}}, r.letGoOf()}, Limit: bulk,
			Set: r.rerunning(), Trigger: "continue_group",
		})
		if err != nil || len(moved) == 0 {
			return ds, err
		}
		ids := make([]int64, len(moved))
		for i, m := range moved {
			ids[i] = m.ID
			if err := r.audit(ctx, task.ID(m.ID), "continue_group", actor, m.Before, task.Pending, m.Epoch, reason); err != nil {
				return nil, err
			}
		}
		waiting, err := r.byID(ctx, ids)
		if err != nil {
			return nil, err
		}
		ds = append(ds, waiting...)
	}
}

// Results implements task.Queries.
func (r *Repository) Results(ctx context.Context, id task.GroupID, limit int) ([]json.RawMessage, error) {
	var rows []struct {
		ID      task.ID
		Outcome string
	}
	err := r.scan(ctx, &rows, `SELECT t.id, COALESCE(a.outcome, '') AS outcome FROM {task} t
		LEFT JOIN {task_attempt} a ON a.task_id = t.id AND a.state = ? AND t.state = ? WHERE t.group_id = ? ORDER BY t.ordinal`,
		task.AttemptSuccess, task.Succeeded, id)
	if err != nil {
		return nil, fmt.Errorf("results of group %d: %w", id, err)
	}
	values, size := make([]json.RawMessage, len(rows)), 0
	for i, row := range rows {
		values[i] = json.RawMessage("null")
		var o task.Outcome
		if row.Outcome != "" {
			if err := json.Unmarshal([]byte(row.Outcome), &o); err != nil {
				return nil, fmt.Errorf("the stored outcome of task %d: %w", row.ID, err)
			}
		}
		for _, a := range o.Artifacts {
			if a.Kind == task.KindJSON {
				values[i] = a.JSON
			}
		}
		if size += len(values[i]) + 1; size > limit {
			return nil, nil
		}
	}
	return values, nil
}

// Unsuccessful implements task.Queries.
func (r *Repository) Unsuccessful(ctx context.Context, id task.GroupID, limit int) ([]task.Task, error) {
	var rows []taskRow
	err := r.scan(ctx, &rows, "SELECT * FROM {task} WHERE group_id = ? AND state IN ? ORDER BY ordinal LIMIT ?", id, unsuccessful(), limit)
	if err != nil {
		return nil, fmt.Errorf("group %d: %w", id, err)
	}
	list := make([]task.Task, len(rows))
	for i := range rows {
		t, err := rows[i].record()
		if err != nil {
			return nil, err
		}
		list[i] = *t
	}
	return list, nil
}

// unsuccessful are the states of tasks that ended without success.
func unsuccessful() []task.State { return []task.State{task.Failed, task.TimedOut, task.Canceled} }

// GroupOf implements task.Queries.
func (r *Repository) GroupOf(ctx context.Context, key string) (id task.GroupID, err error) {
	if err = r.scan(ctx, &id, "SELECT id FROM {task_group} WHERE idempotency_key = ?", key); err != nil {
		return 0, fmt.Errorf("the group of the key %q: %w", key, err)
	}
	return id, nil
}
