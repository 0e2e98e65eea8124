package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// workerQueries implements taskports.WorkerQueries.
type workerQueries struct{ *store }

// Workers implements taskports.WorkerQueries: active ones first, then by name.
func (r workerQueries) Workers(ctx context.Context) ([]taskports.Worker, error) {
	var rows []struct {
		Name, Types, Deciders, Version, State string
		Labels                                string
		Capacity, Executing                   int
		Parts                                 bool
		StartedAt, HeartbeatAt                gormtx.Instant
		LeaseUntil, Now                       gormtx.Instant
	}
	err := r.scan(ctx, &rows, `SELECT name, capacity, types, deciders, labels, parts, version, started_at, heartbeat_at,
		CASE WHEN left_at IS NOT NULL THEN 'GONE' WHEN lease_until < {now} THEN 'LOST' WHEN draining_at IS NOT NULL THEN 'DRAINING' ELSE 'ACTIVE' END AS state,
		(SELECT count(*) FROM {task} t WHERE t.worker = w.name AND t.state IN ('ASSIGNED', 'RUNNING')) AS executing,
		lease_until, {now} AS now FROM {worker} w ORDER BY state, name`)
	if err != nil {
		return nil, fmt.Errorf("list workers: %w", err)
	}
	list := make([]taskports.Worker, len(rows))
	for i, row := range rows {
		list[i] = taskports.Worker{
			Name: row.Name, Capacity: row.Capacity, Parts: row.Parts, Version: row.Version, State: row.State, Executing: row.Executing,
			StartedAt: row.StartedAt.Time, HeartbeatAt: row.HeartbeatAt.Time,
			LeaseLeft: row.LeaseUntil.Sub(row.Now.Time).Seconds(),
		}
		for _, column := range []struct {
			name, text string
			into       any
		}{{"types", row.Types, &list[i].Types}, {"labels", row.Labels, &list[i].Labels}, {"deciders", row.Deciders, &list[i].Deciders}} {
			if err := json.Unmarshal([]byte(column.text), column.into); err != nil {
				return nil, fmt.Errorf("the stored %s of worker %s: %w", column.name, row.Name, err)
			}
		}
	}
	return list, nil
}

// PartWorkers returns the number of live workers that take partitions of steps and continue parked
// executions.
func (r workerQueries) PartWorkers(ctx context.Context) (int, error) {
	var n int
	err := r.scan(ctx, &n, "SELECT count(*) FROM {worker} WHERE parts AND left_at IS NULL AND lease_until >= {now}")
	return n, wrapped(err, "count the workers that take parts")
}

// WaitingTypes implements taskports.WorkerQueries. For each type it reads the beginning of the index of
// waiting tasks, and for retries the beginning of the index of their times.
func (r workerQueries) WaitingTypes(ctx context.Context) ([]taskports.WaitingType, error) {
	var rows []struct {
		Name  string
		Tasks int
		Since gormtx.Instant
	}
	few := func(aggregate, column, order string) string {
		return gormtx.Few(r.db.Dialect(), aggregate, column, " FROM {task} t WHERE t.type = types.name AND t.state IN ('PENDING', 'ORPHANED')", order)
	}
	err := r.scan(ctx, &rows, `WITH RECURSIVE types(name) AS (
			SELECT * FROM (SELECT min(type) FROM {task} WHERE state IN ('PENDING', 'ORPHANED')) AS first
			UNION ALL SELECT (SELECT min(t.type) FROM {task} t WHERE t.state IN ('PENDING', 'ORPHANED') AND t.type > types.name) FROM types WHERE types.name IS NOT NULL)
		SELECT name, CAST(sum(tasks) AS bigint) AS tasks, min(since) AS since FROM (
			SELECT name, `+few("count(*)", "1", "")+` AS tasks, `+few("min(created_at)", "t.created_at", " ORDER BY t.type, t.placement, t.priority, t.id")+` AS since
			FROM types WHERE name IS NOT NULL
			UNION ALL SELECT type, count(*), min(created_at) FROM (SELECT type, created_at FROM {task}
				WHERE state = 'RETRY_SCHEDULED' AND next_run_at IS NOT NULL ORDER BY next_run_at LIMIT ?) AS retries GROUP BY type) AS waiting
		GROUP BY name ORDER BY name`, taskports.MostWaiting, taskports.MostWaiting, taskports.MostWaiting)
	if err != nil {
		return nil, wrapped(err, "list the types of waiting tasks")
	}
	types := make([]taskports.WaitingType, len(rows))
	for i, row := range rows {
		types[i] = taskports.WaitingType{Name: row.Name, Tasks: min(row.Tasks, taskports.MostWaiting), Since: row.Since.Time}
	}
	return types, nil
}

func (r workerQueries) WaitingDeciders(ctx context.Context) ([]taskports.WaitingDecider, error) {
	var named []taskports.WaitingDecider
	err := r.scan(ctx, &named, `SELECT g.decider AS name, count(*) AS tasks FROM {task} t JOIN {task_group} g ON g.id = t.group_id
		WHERE t.state IN ('WAITING', 'PENDING', 'ORPHANED', 'RETRY_SCHEDULED', 'ASSIGNED', 'RUNNING') AND g.decider <> '' GROUP BY g.decider ORDER BY g.decider`)
	if err != nil || len(named) == 0 {
		return nil, wrapped(err, "list the deciders that tasks wait for")
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

// heldRow is a row of Held.
type heldRow struct {
	Kind                       ports.PlacedKind
	ID                         int64
	Worker, Owner, Name, State string
	Execution                  core.JobExecutionID
	Since, LeaseUntil, Now     gormtx.Instant
}

// The parts of Held. The texts have a column for each field of a heldRow but Worker, which the tasks alone have.
const (
	heldTasks = `SELECT 'task' AS kind, id, worker, '' AS owner, type AS name, state, 0 AS execution, assigned_at AS since, lease_until, {now} AS now
		FROM {task} WHERE state IN ('ASSIGNED', 'RUNNING') LIMIT ?`
	heldParts = `SELECT 'part' AS kind, id, '' AS worker, owner, name, status AS state, job_execution_id AS execution, started_at AS since, lease_until, {now} AS now
		FROM (SELECT * FROM {step_execution} WHERE manager_id IS NOT NULL AND status IN ('STARTING', 'STARTED', 'PARKED', 'STOPPING') ORDER BY id LIMIT ?) AS open WHERE owner <> '' LIMIT ?`
	heldExecutions = `SELECT 'execution' AS kind, id, '' AS worker, owner, job_name AS name, status AS state, id AS execution, started_at AS since, lease_until, {now} AS now
		FROM {job_execution} WHERE status = ? AND owner <> '' ORDER BY id LIMIT ?`
)

// Held implements taskports.WorkerQueries.
func (r workerQueries) Held(ctx context.Context) (held []taskports.Held, more bool, err error) {
	names, err := r.owners(ctx)
	if err != nil {
		return nil, false, err
	}
	read := func(text string, args ...any) {
		var rows []heldRow
		if err == nil {
			err = wrapped(r.scan(ctx, &rows, text, append(args, taskports.MostHeld+1)...), "list the work that processes hold")
		}
		if len(rows) > taskports.MostHeld {
			rows, more = rows[:taskports.MostHeld], true
		}
		for i := range rows {
			held = append(held, rows[i].held(names))
		}
	}
	read(heldTasks)
	read(heldParts, taskports.MostSearched)
	for _, status := range []core.Status{core.StatusStarting, core.StatusStarted, core.StatusStopping} {
		read(heldExecutions, status)
	}
	if err != nil || more {
		return held, more, err
	}
	var others []int64 // open parts beyond those that were searched
	err = r.scan(ctx, &others, "SELECT id FROM {step_execution} WHERE manager_id IS NOT NULL AND status IN ('STARTING', 'STARTED', 'PARKED', 'STOPPING') ORDER BY id LIMIT 1 OFFSET ?", taskports.MostSearched)
	return held, len(others) > 0, wrapped(err, "list the work that processes hold")
}

// owners returns the names of the workers that did not leave, by the owner of their parts and executions.
func (r workerQueries) owners(ctx context.Context) (map[string]string, error) {
	var rows []struct{ Name, Owner string }
	err := r.scan(ctx, &rows, "SELECT name, owner FROM {worker} WHERE owner <> '' AND left_at IS NULL")
	names := make(map[string]string, len(rows))
	for _, row := range rows {
		names[row.Owner] = row.Name
	}
	return names, wrapped(err, "list the owners of workers")
}

func (row *heldRow) held(names map[string]string) taskports.Held {
	h := taskports.Held{Worker: row.Worker, Kind: row.Kind, ID: row.ID, Name: row.Name, Execution: row.Execution, State: row.State, Since: row.Since.Time}
	if row.Owner != "" {
		if h.Worker = names[row.Owner]; h.Worker == "" {
			of := ports.ParseOwner(row.Owner)
			h.Process = fmt.Sprintf("%s:%d", of.Host, of.PID)
		}
	}
	if !row.LeaseUntil.IsZero() {
		left := row.LeaseUntil.Sub(row.Now.Time).Seconds()
		h.LeaseLeft = &left
	}
	return h
}
