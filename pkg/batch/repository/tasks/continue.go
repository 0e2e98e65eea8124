package tasks

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/guard"
)

// released is the condition that no worker works on an ended task any more.
func (r *Repository) released() guard.Condition {
	return guard.Condition{SQL: r.sql("lease_until IS NULL OR lease_until < {now}"), Reason: "its worker has not released it yet"}
}

// rerunning resets a task so that it is attempted like a new one.
func (r *Repository) rerunning() []guard.Assignment {
	return append(r.delivering(), guard.Set("attempts", 0), guard.SetSQL("deadline_at", "NULL"), guard.SetSQL("next_run_at", "NULL"))
}

// rerunningLater does so when the worker has released the task, or its lease has expired.
func (r *Repository) rerunningLater() []guard.Assignment {
	return []guard.Assignment{guard.SetSQL("next_run_at", "lease_until"), r.now("updated_at")}
}

// resetBudget resets the budget of a group: earlier attempts do not count any more. It withdraws the
// cancellation of the group.
func (r *Repository) resetBudget(ctx context.Context, id task.GroupID) error {
	_, err := r.exec(ctx, "UPDATE {task_group} SET updated_at = {now}, stalled = FALSE, cancel_requested_at = NULL, counted_after = (SELECT COALESCE(max(id), 0) FROM {task_attempt} WHERE group_id = ?) WHERE id = ?", id, id)
	return err
}

// Continue implements taskports.Submissions. It locks the group's row first, as CancelGroup does.
func (r *Repository) Continue(ctx context.Context, id task.GroupID, step core.StepExecutionID, actor, reason string) (ds []taskports.Delivery, err error) {
	err = r.transact(ctx, func(ctx context.Context) error {
		group, err := r.lockGroup(ctx, id)
		if err != nil {
			return err
		}
		if _, err := r.exec(ctx, "UPDATE {task_group} SET step_execution_id = ? WHERE id = ?", step, id); err != nil {
			return err
		}
		if err := r.resetBudget(ctx, id); err != nil {
			return err
		}
		if ds, err = r.rerunAll(ctx, group, actor, reason); err != nil {
			return err
		}
		return r.renew(ctx, group)
	})
	if err != nil {
		return nil, fmt.Errorf("continue group %d: %w", id, err)
	}
	return ds, nil
}

// rerunAll makes MoveWaitAgain for tasks that wait for others, MoveRerun for tasks that no worker
// has any more, and MoveRerunLater for the rest. It waits for rows that a worker is just releasing.
func (r *Repository) rerunAll(ctx context.Context, group *taskGroup, actor, reason string) (ds []taskports.Delivery, err error) {
	var locked []task.ID
	id := group.ID
	if err := r.scan(ctx, &locked, "SELECT id FROM {task} WHERE group_id = ? AND state IN ? ORDER BY id{lock}", id, unsuccessful()); err != nil || len(locked) == 0 {
		return nil, err
	}
	ofGroup := guard.Condition{SQL: "group_id = ?", Args: []any{id}}
	if group.Ordered {
		wait := guard.Bulk{Move: taskports.MoveWaitAgain, Where: []guard.Condition{ofGroup, {SQL: "NOT (" + r.ready() + ")"}}, Limit: bulk, Set: r.waitingAgain(), Trigger: "continue_group"}
		if err := r.moveEach(ctx, wait, actor, reason, func([]int64) error { return nil }); err != nil {
			return nil, err
		}
	}
	again := guard.Bulk{Move: taskports.MoveRerun, Where: []guard.Condition{ofGroup, r.released()}, Limit: bulk, Set: r.rerunning(), Trigger: "continue_group"}
	err = r.moveEach(ctx, again, actor, reason, func(ids []int64) error {
		waiting, err := r.byID(ctx, ids)
		ds = append(ds, waiting...)
		return err
	})
	if err != nil {
		return nil, err
	}
	later := guard.Bulk{Move: taskports.MoveRerunLater, Where: []guard.Condition{ofGroup}, Limit: bulk, Set: r.rerunningLater(), Trigger: "continue_group"}
	return ds, r.moveEach(ctx, later, actor, reason, func([]int64) error { return nil })
}

// moveEach moves all rows that a bulk selects, and calls done with the IDs of each statement.
func (r *Repository) moveEach(ctx context.Context, b guard.Bulk, actor, reason string, done func(ids []int64) error) error {
	for {
		moved, err := r.tasks.MoveAll(ctx, b)
		if err != nil || len(moved) == 0 {
			return err
		}
		ids := make([]int64, len(moved))
		for i, m := range moved {
			ids[i] = m.ID
			if err := r.audit(ctx, task.ID(m.ID), b.Trigger, actor, m.Before, r.tasks.Machine().Move(b.Move).To, m.Epoch, reason); err != nil {
				return err
			}
		}
		if err := done(ids); err != nil {
			return err
		}
	}
}

func (r *Repository) renew(ctx context.Context, group *taskGroup) error {
	budget, err := group.budget()
	if err != nil {
		return err
	}
	deadline, args := "NULL", []any{}
	if budget.Deadline > 0 {
		deadline, args = "{later}", []any{budget.Deadline.Microseconds()}
	}
	over := []task.State{task.Succeeded, task.Failed, task.TimedOut, task.Canceled}
	_, err = r.exec(ctx, "UPDATE {task} SET attempts = 0, deadline_at = "+deadline+" WHERE group_id = ? AND state NOT IN ?", append(args, group.ID, over)...)
	if err == nil {
		_, err = r.exec(ctx, "UPDATE {task_group} SET deadline_at = "+deadline+" WHERE id = ?", append(args, group.ID)...)
	}
	return err
}

// Results implements taskports.Queries.
func (r *Repository) Results(ctx context.Context, id task.GroupID, limit int) ([]json.RawMessage, error) {
	var rows []struct {
		ID      task.ID
		Outcome string
	}
	err := r.scan(ctx, &rows, `SELECT t.id, COALESCE(a.outcome, '') AS outcome FROM {task} t
		LEFT JOIN {task_attempt} a ON a.task_id = t.id AND a.state = ? AND t.state = ? WHERE t.group_id = ? ORDER BY t.ordinal`,
		taskports.AttemptSuccess, task.Succeeded, id)
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

// Unsuccessful implements taskports.Queries.
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

func unsuccessful() []task.State { return []task.State{task.Failed, task.TimedOut, task.Canceled} }

// OpenGroupsOf implements taskports.Queries.
func (r *Repository) OpenGroupsOf(ctx context.Context, instance core.JobInstanceID) (ids []task.GroupID, err error) {
	over := []task.State{task.Succeeded, task.Failed, task.TimedOut, task.Canceled}
	err = r.scan(ctx, &ids, `SELECT g.id FROM {job_execution} j JOIN {step_execution} s ON s.job_execution_id = j.id
		JOIN {task_group} g ON g.step_execution_id = s.id WHERE j.instance_id = ?
		AND EXISTS (SELECT 1 FROM {task} t WHERE t.group_id = g.id AND t.state NOT IN ?) ORDER BY g.id`, instance, over)
	if err != nil {
		return nil, fmt.Errorf("find groups of tasks of job instance %d: %w", instance, err)
	}
	return ids, nil
}

// OpenGroupsBefore implements taskports.Queries.
func (r *Repository) OpenGroupsBefore(ctx context.Context, step core.StepExecutionID) (ids []task.GroupID, err error) {
	over := []task.State{task.Succeeded, task.Failed, task.TimedOut, task.Canceled}
	err = r.scan(ctx, &ids, `SELECT g.id FROM {step_execution} own JOIN {job_execution} e ON e.id = own.job_execution_id
		JOIN {job_execution} j ON j.instance_id = e.instance_id
		JOIN {step_execution} s ON s.job_execution_id = j.id AND s.name = own.name AND s.id < own.id
		JOIN {task_group} g ON g.step_execution_id = s.id WHERE own.id = ?
		AND EXISTS (SELECT 1 FROM {task} t WHERE t.group_id = g.id AND t.state NOT IN ?) ORDER BY g.id`, step, over)
	if err != nil {
		return nil, fmt.Errorf("find groups of tasks before step execution %d: %w", step, err)
	}
	return ids, nil
}

// GroupOf implements taskports.Queries.
func (r *Repository) GroupOf(ctx context.Context, key string) (id task.GroupID, err error) {
	if err = r.scan(ctx, &id, "SELECT id FROM {task_group} WHERE idempotency_key = ?", key); err != nil {
		return 0, fmt.Errorf("the group of the key %q: %w", key, err)
	}
	return id, nil
}
