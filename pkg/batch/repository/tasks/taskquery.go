package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// taskQueries implements taskports.TaskQueries.
type taskQueries struct {
	*store
	moved taskports.LogStore // if nil, moved log text is not found here
}

const pageSize = 100

func (r taskQueries) Task(ctx context.Context, id task.ID) (*task.Task, error) {
	var rows []taskRow
	err := r.scan(ctx, &rows, "SELECT * FROM {task} WHERE id = ?", id)
	if err == nil && len(rows) == 0 {
		err = core.ErrNotFound
	}
	if err != nil {
		return nil, named(id, err)
	}
	list := records(rows)
	err = r.await(ctx, list)
	return &list[0], err
}

func (r taskQueries) Tasks(ctx context.Context, f task.Filter) ([]task.Task, error) {
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
	where(f.ScheduledFor != "", "scheduled_for = ?", f.ScheduledFor)
	where(f.Unfinished, "state IN ?", slices.DeleteFunc(taskports.States(), task.State.IsOver))
	if f.Limit <= 0 {
		f.Limit = pageSize
	}
	var rows []taskRow
	err := r.scan(ctx, &rows, "SELECT * FROM {task} WHERE "+strings.Join(conditions, " AND ")+" ORDER BY id DESC LIMIT ?", append(args, f.Limit)...)
	if err != nil {
		return nil, fmt.Errorf("list tasks: %w", err)
	}
	list := records(rows)
	return list, r.await(ctx, list)
}

const maxAwaited = 5

func (r taskQueries) await(ctx context.Context, list []task.Task) error {
	at := map[task.ID]int{}
	var ids []task.ID
	for i, t := range list {
		if t.State == task.Waiting {
			at[t.ID], ids = i, append(ids, t.ID)
		}
	}
	for batch := range slices.Chunk(ids, insertBatch) {
		var rows []struct {
			TaskID, NeedsID task.ID
			Needs           string
			State           task.State
			Open            int
		}
		err := r.scan(ctx, &rows, `SELECT task_id, needs_id, needs, state, open FROM (SELECT a.task_id, a.needs_id, a.needs, n.state,
			count(*) OVER (PARTITION BY a.task_id) AS open, row_number() OVER (PARTITION BY a.task_id ORDER BY a.needs_id) AS nth
			FROM {task_after} a JOIN {task} n ON n.id = a.needs_id WHERE a.task_id IN ? AND n.state <> 'SUCCEEDED') AS awaited
			WHERE nth <= ? ORDER BY task_id, needs_id`, batch, maxAwaited)
		if err != nil {
			return fmt.Errorf("find the tasks that tasks wait for: %w", err)
		}
		for _, row := range rows {
			t := &list[at[row.TaskID]]
			t.OpenAfterCount = row.Open
			t.OpenAfter = append(t.OpenAfter, task.Awaited{ID: row.NeedsID, Key: row.Needs, State: row.State})
		}
	}
	return nil
}

// Attempts returns the oldest first.
func (r taskQueries) Attempts(ctx context.Context, id task.ID) ([]taskports.Attempt, error) {
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
	return list, r.addExecutions(ctx, t, list)
}

// addExecutions adds to each attempt of a task of type job the execution that it started or, if it started none, followed.
func (r taskQueries) addExecutions(ctx context.Context, t *task.Task, list []taskports.Attempt) error {
	if t.Spec.Type != task.TypeJob || len(list) == 0 {
		return nil
	}
	var rows []struct {
		ID        core.JobExecutionID
		CreatedAt gormtx.Instant
	}
	if err := r.scan(ctx, &rows, "SELECT id, created_at FROM {job_execution} WHERE task_id = ? ORDER BY id", t.ID); err != nil {
		return named(t.ID, err)
	}
	for i := range list {
		for _, row := range rows {
			if i+1 == len(list) || row.CreatedAt.Before(list[i+1].StartedAt) {
				list[i].JobExecution = row.ID
			}
		}
	}
	return nil
}

func (r taskQueries) logs(ctx context.Context, id task.ID) (map[taskports.AttemptID][]taskLog, error) {
	var rows []taskLog
	err := r.scan(ctx, &rows, "SELECT l.* FROM {task_log} l JOIN {task_attempt} a ON a.id = l.attempt_id WHERE a.task_id = ? ORDER BY l.attempt_id, l.ordinal", id)
	logs := map[taskports.AttemptID][]taskLog{}
	for _, row := range rows {
		logs[row.AttemptID] = append(logs[row.AttemptID], row)
	}
	return logs, named(id, err)
}

// text returns the text of a log. For moved text that is not found here, it returns its location.
func (r taskQueries) text(ctx context.Context, log taskLog) string {
	switch {
	case log.Body != nil:
		return *log.Body
	case r.moved == nil:
		return "(moved to " + log.LogRef + ")"
	}
	text, err := r.moved.Get(ctx, log.LogRef)
	if err != nil {
		return fmt.Sprintf("(moved to %s, which cannot be read here: %v)", log.LogRef, err)
	}
	return text
}

// Decisions returns the oldest first.
func (r taskQueries) Decisions(ctx context.Context, id task.ID) ([]taskports.DecisionRecord, error) {
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
		err := errors.Join(json.Unmarshal([]byte(row.Decision), &list[i].Decision), json.Unmarshal([]byte(row.Spent), &list[i].Spent))
		if err != nil {
			return nil, fmt.Errorf("a stored decision of task %d: %w", id, err)
		}
	}
	return list, nil
}
