package tasks

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// mostOutputs is the number of outputs that a page lists.
const mostOutputs = 200

type outputRow struct {
	AttemptID          taskports.AttemptID
	Ordinal            int
	Kind               task.ArtifactKind
	LogRef             string
	Number, Characters int
}

// Log implements taskports.TaskQueries: it reads the lengths of the outputs, and a part of one.
func (r taskQueries) Log(ctx context.Context, f taskports.LogFilter) (*taskports.TaskLog, error) {
	if _, err := r.Task(ctx, f.Task); err != nil {
		return nil, err
	}
	var rows []outputRow
	err := r.scan(ctx, &rows, `SELECT l.attempt_id, l.ordinal, l.kind, l.log_ref, a.number, COALESCE(length(l.body), 0) AS characters
		FROM {task_attempt} a JOIN {task_log} l ON l.attempt_id = a.id WHERE a.task_id = ? ORDER BY a.number DESC, l.ordinal LIMIT ?`, f.Task, mostOutputs)
	if err != nil {
		return nil, named(f.Task, err)
	}
	log := &taskports.TaskLog{Task: f.Task, Outputs: []taskports.TaskOutput{}, From: f.From}
	var chosen *outputRow
	for i := range rows {
		row := &rows[i]
		log.Outputs = append(log.Outputs, taskports.TaskOutput{Attempt: row.Number, Output: row.Kind, Characters: row.Characters})
		if chosen == nil && (f.Attempt == 0 || f.Attempt == row.Number) && (f.Output == "" || f.Output == row.Kind) {
			chosen = row
		}
	}
	switch {
	case chosen != nil:
		return log, named(f.Task, r.fillLog(ctx, log, chosen, f))
	case f.Attempt != 0 || f.Output != "":
		return nil, named(f.Task, fmt.Errorf("attempt %d, output %q: %w", f.Attempt, f.Output, core.ErrNotFound))
	}
	return log, nil
}

func (r taskQueries) fillLog(ctx context.Context, log *taskports.TaskLog, of *outputRow, f taskports.LogFilter) error {
	log.Attempt, log.Output = of.Number, string(of.Kind)
	length := of.Characters
	if of.LogRef == "" {
		var text []string
		err := r.scan(ctx, &text, "SELECT COALESCE(substr(body, ?, ?), '') FROM {task_log} WHERE attempt_id = ? AND ordinal = ?", f.From+1, f.Limit, of.AttemptID, of.Ordinal)
		if err != nil {
			return err
		}
		if len(text) > 0 {
			log.Text = text[0]
		}
	} else {
		whole := []rune(r.text(ctx, taskLog{LogRef: of.LogRef}))
		length = len(whole)
		from := min(f.From, length)
		log.Text = string(whole[from:min(from+f.Limit, length)])
	}
	if end := f.From + f.Limit; end < length {
		log.Next = end
	}
	return nil
}
