package tasks

import (
	"context"
	"fmt"
	"strings"

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

// Log implements taskports.TaskQueries: it reads the lengths of the outputs, and one of them.
func (r taskQueries) Log(ctx context.Context, f taskports.LogFilter) (*taskports.TaskLog, error) {
	if _, err := r.Task(ctx, f.Task); err != nil {
		return nil, err
	}
	var rows []outputRow
	err := r.scan(ctx, &rows, `SELECT l.attempt_id, l.ordinal, l.kind, l.log_ref, a.number, COALESCE({characters}(l.body), 0) AS characters
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
	var text []string
	if of.LogRef == "" {
		err := r.scan(ctx, &text, "SELECT COALESCE(body, '') FROM {task_log} WHERE attempt_id = ? AND ordinal = ?", of.AttemptID, of.Ordinal)
		if err != nil {
			return err
		}
	} else {
		text = []string{r.text(ctx, taskLog{LogRef: of.LogRef})}
	}
	whole := strings.Join(text, "") // none if it was purged in between
	if f.Mask != nil {
		whole = f.Mask(whole)
	}
	characters := []rune(whole)
	from := min(f.From, len(characters))
	end := min(from+f.Limit, len(characters))
	if log.Text = string(characters[from:end]); end < len(characters) {
		log.Next = end
	}
	return nil
}
