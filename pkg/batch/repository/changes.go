package repository

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// changeSource is the statement that reads a source. Numbered ones have a bind
// variable for the number. Each reads an index that is as large as its answer.
type changeSource struct {
	source   ports.ChangeSource
	numbered bool
	text     string
}

func changeSources() []changeSource {
	const open = `status IN ('STARTING', 'STARTED', 'PARKED', 'STOPPING')`
	return []changeSource{
		{ports.ChangeOfAudit, true, `SELECT 'audit' AS source, id, job_execution_id AS execution, step_execution_id AS step, 0 AS task, job_name AS name, act AS mark
			FROM {audit} WHERE id > ? ORDER BY id DESC`},
		{ports.ChangeOfTaskAudit, true, `SELECT 'task_audit' AS source, id, 0 AS execution, 0 AS step, task_id AS task, '' AS name, act AS mark
			FROM {task_audit} WHERE id > ? ORDER BY id DESC`},
		{ports.ChangeOfTask, true, `SELECT 'task' AS source, id, 0 AS execution, 0 AS step, id AS task, '' AS name, '' AS mark
			FROM {task} WHERE id > ? ORDER BY id DESC`},
		{ports.ChangeOfAttempt, true, `SELECT 'attempt' AS source, id, 0 AS execution, 0 AS step, task_id AS task, '' AS name, '' AS mark
			FROM {task_attempt} WHERE id > ? ORDER BY id DESC`},
		{ports.ChangeOfHeldTask, false, `SELECT 'held' AS source, id, 0 AS execution, 0 AS step, id AS task, '' AS name, state || ' ' || CAST(attempt AS TEXT) AS mark
			FROM {task} WHERE state IN ('ASSIGNED', 'RUNNING')`},
		{ports.ChangeOfStep, false, `SELECT 'step' AS source, id, job_execution_id AS execution, id AS step, 0 AS task, '' AS name,
				CAST(commit_count + rollback_count AS TEXT) || ' ' || CAST(read_count + filter_count + write_count + read_skip_count + process_skip_count + write_skip_count AS TEXT)
				|| ' ' || CAST(open_parts AS TEXT) AS mark
			FROM {step_execution} WHERE ` + open},
		{ports.ChangeOfDefinition, false, `SELECT 'definition' AS source, id, 0 AS execution, 0 AS step, 0 AS task, name,
				version || ' ' || CASE WHEN enabled THEN 'on' ELSE 'off' END || ' ' || CAST(updated_at AS TEXT) || ' ' || CAST(scheduled_until AS TEXT) AS mark
			FROM {job_definition}`},
		{ports.ChangeOfWorker, false, `SELECT 'worker' AS source, 0 AS id, 0 AS execution, 0 AS step, 0 AS task, name,
				CASE WHEN left_at IS NOT NULL THEN 'left' WHEN lease_until < {now} THEN 'lost' WHEN draining_at IS NOT NULL THEN 'draining' ELSE 'active' END
				|| ' ' || CAST(started_at AS TEXT) || ' ' || CAST(capacity AS TEXT) AS mark
			FROM {worker}`},
	}
}

// changeReader implements ports.Changes.
type changeReader struct{ store *store }

// Changes implements ports.Changes.
func (r *changeReader) Changes(ctx context.Context, req ports.ChangesRequest) ([]ports.ChangeRow, error) {
	var parts []string
	var args []any
	for _, s := range changeSources() {
		after, wanted := req.After[s.source]
		if !wanted {
			continue
		}
		text := s.text
		if s.numbered {
			args = append(args, after)
		}
		if s.source == ports.ChangeOfStep && len(req.Executions) > 0 {
			text += " AND job_execution_id {among}"
			args = append(args, listed(slices.Sorted(slices.Values(req.Executions))))
		}
		parts = append(parts, "SELECT * FROM ("+text+" LIMIT ?) AS of_"+string(s.source))
		args = append(args, req.Limit)
	}
	if len(parts) == 0 {
		return nil, nil
	}
	var rows []struct {
		Source    ports.ChangeSource
		ID        int64
		Execution core.JobExecutionID
		Step      core.StepExecutionID
		Task      int64
		Name      string
		Mark      string
	}
	if err := r.store.scan(ctx, &rows, strings.Join(parts, "\nUNION ALL "), args...); err != nil {
		return nil, fmt.Errorf("read the changes: %w", err)
	}
	list := make([]ports.ChangeRow, len(rows))
	for i, row := range rows {
		list[i] = ports.ChangeRow(row)
	}
	return list, nil
}
