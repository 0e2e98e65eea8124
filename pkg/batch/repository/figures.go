package repository

import (
	"context"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Each text below reads an index that grows with the number of jobs or of open work, never the
// history.
const (
	// lastCompleted walks from job to job in an index of completed executions.
	lastCompleted = `WITH RECURSIVE job(name) AS (
			SELECT * FROM (SELECT job_name FROM {job_execution} WHERE status = 'COMPLETED' AND redrive_of IS NULL ORDER BY job_name LIMIT 1) AS first
			UNION ALL
			SELECT (SELECT e.job_name FROM {job_execution} e WHERE e.status = 'COMPLETED' AND e.redrive_of IS NULL AND e.job_name > job.name ORDER BY e.job_name LIMIT 1)
			FROM job WHERE job.name IS NOT NULL)
		SELECT name, (SELECT e.ended_at FROM {job_execution} e WHERE e.status = 'COMPLETED' AND e.redrive_of IS NULL AND e.job_name = job.name
			AND e.ended_at IS NOT NULL ORDER BY e.ended_at DESC LIMIT 1) AS at
		FROM job WHERE name IS NOT NULL LIMIT ?`
	openExecutions = `SELECT job_name, status, count(*) AS n, min(created_at) AS since FROM {job_execution}
		WHERE status IN ('STARTING', 'STARTED', 'PARKED', 'STOPPING', 'UNKNOWN') GROUP BY job_name, status LIMIT ?`
	// waitingWork counts the work that waits for a worker, by the workers that may take it.
	waitingWork = `SELECT 'task' AS kind, type AS name, count(*) AS n FROM {task}
			WHERE state IN ('PENDING', 'ORPHANED') AND (next_run_at IS NULL OR next_run_at <= {now}) GROUP BY type
		UNION ALL SELECT 'part', job_name, count(*) FROM {step_execution}
			WHERE id > 0 AND manager_id IS NOT NULL AND status IN ('STARTING', 'STARTED', 'PARKED', 'STOPPING') AND status <> 'PARKED'
			AND (owner = '' OR lease_until <= {now}) GROUP BY job_name
		UNION ALL SELECT 'event', topic, count(*) FROM {event} WHERE dead_at IS NOT NULL GROUP BY topic
		UNION ALL SELECT 'worker', '', count(*) FROM {worker} WHERE left_at IS NULL AND lease_until >= {now}`
	// waitingRuns selects the scheduled runs that have not begun, with the database's clock.
	waitingRuns = `SELECT job_definition_id AS definition, min(created_at) AS since, {now} AS now FROM {task}
			WHERE type = 'job' AND state IN ('PENDING', 'ORPHANED') AND job_definition_id IS NOT NULL GROUP BY job_definition_id
		UNION ALL SELECT 0, {now}, {now}`
)

const maxFigures = 10_000

// figures reads the numbers that are monitored.
type figures struct{ store *store }

// Figures reads all figures except the schedules', with four statements (rule OP1). waiting has, by
// the definition's ID, when its oldest scheduled run that has not begun was submitted.
func (r *figures) Figures(ctx context.Context) (f core.Figures, waiting map[int64]time.Time, err error) {
	f = core.Figures{Completed: map[string]time.Time{}, Tasks: map[string]int64{}, Parts: map[string]int64{}, DeadEvents: map[string]int64{}}
	waiting = map[int64]time.Time{}
	for _, read := range []func() error{
		func() error { return r.readCompleted(ctx, f.Completed) },
		func() error { return r.readOpen(ctx, &f) },
		func() error { return r.readWaiting(ctx, &f) },
		func() (err error) { f.At, err = r.readWaitingRuns(ctx, waiting); return err },
	} {
		if err := read(); err != nil {
			return core.Figures{}, nil, fmt.Errorf("read the figures of the history: %w", err)
		}
	}
	return f, waiting, nil
}

func (r *figures) readCompleted(ctx context.Context, into map[string]time.Time) error {
	var rows []struct {
		Name string
		At   instant
	}
	err := r.store.scan(ctx, &rows, lastCompleted, maxFigures)
	for _, row := range rows {
		into[row.Name] = row.At.Time
	}
	return err
}

func (r *figures) readOpen(ctx context.Context, f *core.Figures) error {
	var rows []struct {
		JobName string
		Status  core.Status
		N       int64
		Since   instant
	}
	err := r.store.scan(ctx, &rows, openExecutions, maxFigures)
	for _, row := range rows {
		f.Open = append(f.Open, core.OpenFigure{JobName: row.JobName, Status: row.Status, Count: row.N, Since: row.Since.Time})
	}
	return err
}

func (r *figures) readWaiting(ctx context.Context, f *core.Figures) error {
	var rows []struct {
		Kind, Name string
		N          int64
	}
	err := r.store.scan(ctx, &rows, waitingWork)
	for _, row := range rows {
		switch row.Kind {
		case "task":
			f.Tasks[row.Name] = row.N
		case "part":
			f.Parts[row.Name] = row.N
		case "event":
			f.DeadEvents[row.Name] = row.N
		case "worker":
			f.Workers = row.N
		}
	}
	return err
}

func (r *figures) readWaitingRuns(ctx context.Context, into map[int64]time.Time) (now time.Time, err error) {
	var rows []struct {
		Definition int64
		Since, Now instant
	}
	err = r.store.scan(ctx, &rows, waitingRuns)
	for _, row := range rows {
		if now = row.Now.Time; row.Definition != 0 {
			into[row.Definition] = row.Since.Time
		}
	}
	return now, err
}
