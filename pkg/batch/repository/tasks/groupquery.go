package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// groupQueries implements taskports.GroupQueries.
type groupQueries struct {
	*store
	groups groups
}

func (r groupQueries) Group(ctx context.Context, id task.GroupID) (*task.Group, error) {
	var rows []taskGroup
	err := r.scan(ctx, &rows, "SELECT * FROM {task_group} WHERE id = ?", id)
	if err == nil && len(rows) == 0 {
		err = core.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("group %d: %w", id, err)
	}
	return r.group(ctx, &rows[0])
}

func (r groupQueries) Groups(ctx context.Context, before task.GroupID, limit int) ([]task.Group, error) {
	if limit <= 0 {
		limit = pageSize
	}
	before = cmp.Or(before, math.MaxInt64)
	var rows []taskGroup
	err := r.scan(ctx, &rows, "SELECT * FROM {task_group} WHERE id < ? ORDER BY id DESC LIMIT ?", before, limit)
	if err != nil {
		return nil, fmt.Errorf("list groups: %w", err)
	}
	list := make([]task.Group, 0, len(rows))
	for i := range rows {
		g, err := r.group(ctx, &rows[i])
		if err != nil {
			return nil, err
		}
		list = append(list, *g)
	}
	return list, nil
}

func (r groupQueries) group(ctx context.Context, row *taskGroup) (*task.Group, error) {
	status, err := r.groups.status(ctx, row.ID, !row.CancelRequestedAt.IsZero())
	if err != nil {
		return nil, err
	}
	g := &task.Group{
		GroupStatus: *status, Title: row.Title, Decider: row.Decider, CancelRequestedAt: timeOf(row.CancelRequestedAt), DeadlineAt: timeOf(row.DeadlineAt),
		CreatedAt: row.CreatedAt.Time, UpdatedAt: row.UpdatedAt.Time,
	}
	bounds, err := boundsOf(row.ID, row.Budget)
	g.Budget, g.Parallel = bounds.Budget, bounds.Parallel
	return g, err
}

func (r groupQueries) Results(ctx context.Context, id task.GroupID, limit int) ([]json.RawMessage, error) {
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

func (r groupQueries) Unsuccessful(ctx context.Context, id task.GroupID, limit int) ([]task.Task, error) {
	var rows []taskRow
	err := r.scan(ctx, &rows, "SELECT * FROM {task} WHERE group_id = ? AND state IN ? ORDER BY ordinal LIMIT ?", id, unsuccessful(), limit)
	if err != nil {
		return nil, fmt.Errorf("group %d: %w", id, err)
	}
	return records(rows), nil
}

func (r groupQueries) OpenGroupsOf(ctx context.Context, instance core.JobInstanceID) (ids []task.GroupID, err error) {
	err = r.scan(ctx, &ids, `SELECT g.id FROM {job_execution} j JOIN {step_execution} s ON s.job_execution_id = j.id
		JOIN {task_group} g ON g.step_execution_id = s.id WHERE j.instance_id = ?
		AND EXISTS (SELECT 1 FROM {task} t WHERE t.group_id = g.id AND t.state NOT IN ?) ORDER BY g.id`, instance, overStates())
	return ids, wrapped(err, "find groups of tasks of job instance %d", instance)
}

func (r groupQueries) OpenGroupsBefore(ctx context.Context, step core.StepExecutionID) (ids []task.GroupID, err error) {
	err = r.scan(ctx, &ids, `SELECT g.id FROM {step_execution} own JOIN {job_execution} e ON e.id = own.job_execution_id
		JOIN {job_execution} j ON j.instance_id = e.instance_id
		JOIN {step_execution} s ON s.job_execution_id = j.id AND s.name = own.name AND s.id < own.id
		JOIN {task_group} g ON g.step_execution_id = s.id WHERE own.id = ?
		AND EXISTS (SELECT 1 FROM {task} t WHERE t.group_id = g.id AND t.state NOT IN ?) ORDER BY g.id`, step, overStates())
	return ids, wrapped(err, "find groups of tasks before step execution %d", step)
}

func (r groupQueries) GroupOf(ctx context.Context, key string) (id task.GroupID, err error) {
	err = r.scan(ctx, &id, "SELECT id FROM {task_group} WHERE idempotency_key = ?", key)
	return id, wrapped(err, "the group of the key %q", key)
}
