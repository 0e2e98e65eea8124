package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

const pageSize = 100

// Task implements taskports.Queries.
func (r *Repository) Task(ctx context.Context, id task.ID) (*task.Task, error) {
	var rows []taskRow
	err := r.scan(ctx, &rows, "SELECT * FROM {task} WHERE id = ?", id)
	if err == nil && len(rows) == 0 {
		err = core.ErrNotFound
	}
	if err != nil {
		return nil, named(id, err)
	}
	t, err := rows[0].record()
	if err != nil {
		return nil, err
	}
	list := []task.Task{*t}
	err = r.await(ctx, list)
	return &list[0], err
}

// Tasks implements taskports.Queries.
func (r *Repository) Tasks(ctx context.Context, f task.Filter) ([]task.Task, error) {
	conditions, args := []string{"1 = 1"}, []any{}
	where := func(holds bool, condition string, arg any) {
		if holds {
			conditions, args = append(conditions, condition), append(args, arg)
		}
	}
	where(f.Group != 0, "group_id = ?", f.Group)
	where(f.State != "", "state = ?", f.State)
	where(f.Type != "", "type = ?", f.Type)
	where(f.Before != 0, "id < ?", f.Before)
	where(f.JobDefinition != 0, "job_definition_id = ?", f.JobDefinition)
	where(f.Unfinished, "state IN ?", slices.DeleteFunc(task.States(), task.State.IsOver))
	if f.Limit <= 0 {
		f.Limit = pageSize
	}
	var rows []taskRow
	err := r.scan(ctx, &rows, "SELECT * FROM {task} WHERE "+strings.Join(conditions, " AND ")+" ORDER BY id DESC LIMIT ?", append(args, f.Limit)...)
	if err != nil {
		return nil, fmt.Errorf("list tasks: %w", err)
	}
	list := make([]task.Task, 0, len(rows))
	for i := range rows {
		t, err := rows[i].record()
		if err != nil {
			return nil, err
		}
		list = append(list, *t)
	}
	return list, r.await(ctx, list)
}

// Group implements taskports.Queries.
func (r *Repository) Group(ctx context.Context, id task.GroupID) (*task.Group, error) {
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

// Groups implements taskports.Queries.
func (r *Repository) Groups(ctx context.Context, before task.GroupID, limit int) ([]task.Group, error) {
	if limit <= 0 {
		limit = pageSize
	}
	if before == 0 {
		before = math.MaxInt64
	}
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

func (r *Repository) group(ctx context.Context, row *taskGroup) (*task.Group, error) {
	status, err := r.status(ctx, row.ID, !row.CancelRequestedAt.IsZero())
	if err != nil {
		return nil, err
	}
	g := &task.Group{
		GroupStatus: *status, Title: row.Title, Decider: row.Decider, CancelRequestedAt: timeOf(row.CancelRequestedAt), DeadlineAt: timeOf(row.DeadlineAt),
		CreatedAt: row.CreatedAt.Time, UpdatedAt: row.UpdatedAt.Time,
	}
	if err := json.Unmarshal([]byte(row.Budget), &g.Budget); err != nil {
		return nil, fmt.Errorf("the stored budget of group %d: %w", row.ID, err)
	}
	return g, nil
}

func (r *Repository) status(ctx context.Context, id task.GroupID, cancelRequested bool) (*task.GroupStatus, error) {
	var rows []struct {
		State task.State
		N     int
	}
	if err := r.scan(ctx, &rows, "SELECT state, count(*) AS n FROM {task} WHERE group_id = ? GROUP BY state", id); err != nil {
		return nil, fmt.Errorf("group %d: %w", id, err)
	}
	states := map[task.State]int{}
	for _, row := range rows {
		states[row.State] = row.N
	}
	s := task.StatusOf(id, states, cancelRequested)
	return &s, nil
}

// Attempts implements taskports.Queries, oldest first.
func (r *Repository) Attempts(ctx context.Context, id task.ID) ([]taskports.Attempt, error) {
	t, err := r.Task(ctx, id)
	if err != nil {
		return nil, err
	}
	var rows []taskAttempt
	if err := r.scan(ctx, &rows, "SELECT * FROM {task_attempt} WHERE task_id = ? ORDER BY number", id); err != nil {
		return nil, named(id, err)
	}
	logs, err := r.logs(ctx, id)
	if err != nil {
		return nil, err
	}
	list := make([]taskports.Attempt, len(rows))
	for i, row := range rows {
		list[i] = taskports.Attempt{
			ID: row.ID, TaskID: row.TaskID, Number: row.Number, State: row.State, Worker: row.Worker, Action: t.Spec, Reason: row.Reason,
			StartedAt: row.StartedAt.Time, EndedAt: timeOf(row.EndedAt),
		}
		if row.JobExecutionID != nil {
			list[i].JobExecution = *row.JobExecutionID
		}
		if row.Outcome == "" {
			continue
		}
		list[i].Outcome = &task.Outcome{}
		if err := json.Unmarshal([]byte(row.Outcome), list[i].Outcome); err != nil {
			return nil, fmt.Errorf("the stored outcome of attempt %d: %w", row.ID, err)
		}
		for _, log := range logs[row.ID] {
			if log.Ordinal < len(list[i].Outcome.Artifacts) {
				list[i].Outcome.Artifacts[log.Ordinal].Text = r.text(ctx, log)
			}
		}
	}
	return list, nil
}

func (r *Repository) logs(ctx context.Context, id task.ID) (map[task.AttemptID][]taskLog, error) {
	var rows []taskLog
	err := r.scan(ctx, &rows, "SELECT l.* FROM {task_log} l JOIN {task_attempt} a ON a.id = l.attempt_id WHERE a.task_id = ? ORDER BY l.attempt_id, l.ordinal", id)
	logs := map[task.AttemptID][]taskLog{}
	for _, row := range rows {
		logs[row.AttemptID] = append(logs[row.AttemptID], row)
	}
	return logs, named(id, err)
}

// Decisions implements taskports.Queries, oldest first.
func (r *Repository) Decisions(ctx context.Context, id task.ID) ([]taskports.DecisionRecord, error) {
	var rows []taskDecision
	if err := r.scan(ctx, &rows, "SELECT * FROM {task_decision} WHERE task_id = ? ORDER BY id", id); err != nil {
		return nil, named(id, err)
	}
	list := make([]taskports.DecisionRecord, len(rows))
	for i, row := range rows {
		list[i] = taskports.DecisionRecord{TaskID: row.TaskID, Trigger: row.Trigger, Policy: row.Policy, DecidedAt: row.DecidedAt.Time}
		if row.AttemptID != nil {
			list[i].Attempt = *row.AttemptID
		}
		if err := json.Unmarshal([]byte(row.Decision), &list[i].Decision); err != nil {
			return nil, fmt.Errorf("a stored decision of task %d: %w", id, err)
		}
		if err := json.Unmarshal([]byte(row.Spent), &list[i].Spent); err != nil {
			return nil, fmt.Errorf("a stored decision of task %d: %w", id, err)
		}
	}
	return list, nil
}

// WaitingTypes implements taskports.Queries.
func (r *Repository) WaitingTypes(ctx context.Context) ([]string, error) {
	var types []string
	err := r.scan(ctx, &types, "SELECT DISTINCT type FROM {task} WHERE state IN ('PENDING', 'ORPHANED', 'RETRY_SCHEDULED') ORDER BY type")
	if err != nil {
		return nil, fmt.Errorf("list the types of waiting tasks: %w", err)
	}
	return types, nil
}

// WaitingDeciders implements taskports.Queries.
func (r *Repository) WaitingDeciders(ctx context.Context) ([]taskports.WaitingDecider, error) {
	var named []taskports.WaitingDecider
	err := r.scan(ctx, &named, `SELECT g.decider AS name, count(*) AS tasks FROM {task} t JOIN {task_group} g ON g.id = t.group_id
		WHERE t.state IN ('WAITING', 'PENDING', 'ORPHANED', 'RETRY_SCHEDULED', 'ASSIGNED', 'RUNNING') AND g.decider <> '' GROUP BY g.decider ORDER BY g.decider`)
	if err != nil || len(named) == 0 {
		return nil, wrapped("list the deciders that tasks wait for", err)
	}
	workers, err := r.Workers(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(named, func(d taskports.WaitingDecider) bool {
		return slices.ContainsFunc(workers, func(w taskports.Worker) bool {
			return w.State == taskports.WorkerActive && slices.Contains(w.Deciders, d.Name)
		})
	}), nil
}

func wrapped(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Workers implements taskports.Queries: active ones first, then by name.
func (r *Repository) Workers(ctx context.Context) ([]taskports.Worker, error) {
	var rows []struct {
		Name, Types, Deciders, Version, State string
		Labels                                string
		Capacity, Executing                   int
		Parts                                 bool
		StartedAt, HeartbeatAt                gormtx.Instant
	}
	err := r.scan(ctx, &rows, `SELECT name, capacity, types, deciders, labels, parts, version, started_at, heartbeat_at,
		CASE WHEN left_at IS NOT NULL THEN 'GONE' WHEN lease_until < {now} THEN 'LOST' WHEN draining_at IS NOT NULL THEN 'DRAINING' ELSE 'ACTIVE' END AS state,
		(SELECT count(*) FROM {task} t WHERE t.worker = w.name AND t.state IN ('ASSIGNED', 'RUNNING')) AS executing
		FROM {worker} w ORDER BY 9, name`)
	if err != nil {
		return nil, fmt.Errorf("list workers: %w", err)
	}
	list := make([]taskports.Worker, len(rows))
	for i, row := range rows {
		list[i] = taskports.Worker{
			Name: row.Name, Capacity: row.Capacity, Parts: row.Parts, Version: row.Version, State: row.State, Executing: row.Executing,
			StartedAt: row.StartedAt.Time, HeartbeatAt: row.HeartbeatAt.Time,
		}
		if err := json.Unmarshal([]byte(row.Types), &list[i].Types); err != nil {
			return nil, fmt.Errorf("the stored types of worker %s: %w", row.Name, err)
		}
		if err := json.Unmarshal([]byte(row.Labels), &list[i].Labels); err != nil {
			return nil, fmt.Errorf("the stored labels of worker %s: %w", row.Name, err)
		}
		if err := json.Unmarshal([]byte(row.Deciders), &list[i].Deciders); err != nil {
			return nil, fmt.Errorf("the stored deciders of worker %s: %w", row.Name, err)
		}
	}
	return list, nil
}

// PartWorkers returns the number of live workers that take partitions of steps and continue parked
// executions.
func (r *Repository) PartWorkers(ctx context.Context) (int, error) {
	var n int
	err := r.scan(ctx, &n, "SELECT count(*) FROM {worker} WHERE parts AND left_at IS NULL AND lease_until >= {now}")
	if err != nil {
		return 0, fmt.Errorf("count the workers that take parts: %w", err)
	}
	return n, nil
}
