package repository

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// runSpan are the columns of a ports.RunSpan.
const runSpan = "id, job_name, status, COALESCE(started_at, created_at) AS started_at, ended_at"

// attemptsOfRuns bounds the executions of one call of ScheduledRuns.
const attemptsOfRuns = 20_000

// EndedRuns implements ports.JobHistory with one statement over the index of ends.
func (r *jobHistory) EndedRuns(ctx context.Context, since time.Time, limit int) ([]ports.RunSpan, error) {
	list, err := r.runSpans(ctx, "SELECT "+runSpan+" FROM {job_execution} WHERE ended_at >= ? ORDER BY ended_at DESC, id DESC LIMIT ?", instant{Time: since}, limit)
	if err != nil {
		return nil, fmt.Errorf("list the executions that ended since %s: %w", since.Format(time.RFC3339), err)
	}
	return list, nil
}

// ActiveRuns implements ports.JobHistory with one statement over the index of statuses.
func (r *jobHistory) ActiveRuns(ctx context.Context, limit int) ([]ports.RunSpan, error) {
	var pages []string
	var args []any
	for _, status := range ports.ActiveStatuses() {
		pages = append(pages, "SELECT * FROM (SELECT "+runSpan+" FROM {job_execution} WHERE status = '"+string(status)+"' ORDER BY id LIMIT ?) AS page")
		args = append(args, limit)
	}
	list, err := r.runSpans(ctx, "SELECT * FROM ("+strings.Join(pages, " UNION ALL ")+") AS pages ORDER BY id LIMIT ?", append(args, limit)...)
	if err != nil {
		return nil, fmt.Errorf("list the running executions: %w", err)
	}
	return list, nil
}

func (r *jobHistory) runSpans(ctx context.Context, text string, args ...any) ([]ports.RunSpan, error) {
	var list []ports.RunSpan
	err := r.store.each(ctx, text, args, func(rows *sql.Rows) error {
		s, err := scanSpan(rows)
		list = append(list, s)
		return err
	})
	return list, err
}

// scanSpan reads the columns before, and runSpan.
func scanSpan(rows *sql.Rows, before ...any) (ports.RunSpan, error) {
	var s ports.RunSpan
	var started, ended instant
	err := rows.Scan(append(before, &s.ID, &s.JobName, &s.Status, &started, &ended)...)
	s.StartedAt, s.EndedAt = started.Time, ended.Time
	return s, err
}

// selectScheduled looks up each key in the index of scheduled times.
const (
	selectScheduled  = `SELECT t.job_definition_id, t.scheduled_for, t.id, t.state, t.last_error, t.created_at FROM `
	scheduledSQLite  = `json_each(?) AS k CROSS JOIN {task} t ON t.job_definition_id = json_extract(k.value, '$[0]') AND t.scheduled_for = json_extract(k.value, '$[1]')`
	scheduledMySQL   = `json_table(?, '$[*]' COLUMNS (definition bigint PATH '$[0]', at varchar(64) PATH '$[1]')) AS k JOIN {task} t ON t.job_definition_id = k.definition AND t.scheduled_for = k.at`
	scheduledInArray = `json_array_elements(CAST(? AS json)) AS k JOIN {task} t ON t.job_definition_id = CAST(k->>0 AS bigint) AND t.scheduled_for = k->>1`
)

// ScheduledRuns implements ports.JobHistory with two statements: the tasks of the times, and their executions.
func (r *jobHistory) ScheduledRuns(ctx context.Context, times ...ports.ScheduledKey) (map[ports.ScheduledKey]ports.ScheduledRun, error) {
	if len(times) == 0 {
		return nil, nil
	}
	pairs := make([][2]any, len(times))
	for i, of := range times {
		pairs[i] = [2]any{of.Definition, of.Key}
	}
	keys, err := json.Marshal(pairs)
	if err != nil {
		return nil, err
	}
	from := map[tx.Dialect]string{tx.SQLite: scheduledSQLite, tx.Postgres: scheduledInArray, tx.MySQL: scheduledMySQL}[r.store.db.Dialect()]
	found := make(map[ports.ScheduledKey]ports.ScheduledRun, len(times))
	byTask := map[int64]ports.ScheduledKey{}
	var ids []int64
	err = r.store.each(ctx, selectScheduled+from, []any{string(keys)}, func(rows *sql.Rows) error {
		var of ports.ScheduledKey
		var run ports.ScheduledRun
		var created instant
		err := rows.Scan(&of.Definition, &of.Key, &run.Task, &run.State, &run.Error, &created)
		run.CreatedAt = created.Time
		found[of], byTask[run.Task], ids = run, of, append(ids, run.Task)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the runs of scheduled times: %w", err)
	}
	return found, r.addAttempts(ctx, ids, byTask, found)
}

func (r *jobHistory) addAttempts(ctx context.Context, ids []int64, byTask map[int64]ports.ScheduledKey, found map[ports.ScheduledKey]ports.ScheduledRun) error {
	if len(ids) == 0 {
		return nil
	}
	err := r.store.each(ctx, "SELECT task_id, "+runSpan+" FROM {job_execution} WHERE task_id {among} ORDER BY id LIMIT ?", []any{listed(ids), attemptsOfRuns}, func(rows *sql.Rows) error {
		var of int64
		s, err := scanSpan(rows, &of)
		run := found[byTask[of]]
		run.Attempts = append(run.Attempts, s)
		found[byTask[of]] = run
		return err
	})
	if err != nil {
		return fmt.Errorf("list the executions of scheduled times: %w", err)
	}
	return nil
}

// ScheduleActs implements ports.JobHistory with one statement over the index of acts.
func (r *jobHistory) ScheduleActs(ctx context.Context, since time.Time, limit int) (list []ports.Act, err error) {
	err = r.store.each(ctx, `SELECT id, at, verb, job_name, detail FROM
		(SELECT id, at, verb, job_name, detail FROM {audit} WHERE verb <> '' AND at >= ? ORDER BY at, id LIMIT ?) AS acts
		WHERE verb IN (?, ?, ?, ?) ORDER BY at, id`,
		[]any{instant{Time: since}, limit, actLeaveOut, actRegister, actEnable, actDisable}, func(rows *sql.Rows) error {
			var a ports.Act
			var at instant
			err := rows.Scan(&a.ID, &at, &a.Verb, &a.JobName, &a.Detail)
			a.ID, a.At, a.Detail = 2*a.ID, at.Time, strings.TrimPrefix(a.Detail, a.JobName+": ")
			list = append(list, a)
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("list the acts on schedules: %w", err)
	}
	return list, nil
}
