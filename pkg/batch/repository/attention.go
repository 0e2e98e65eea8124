package repository

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// The number of executions of a status, and of executions with skipped items, that one page searches.
const (
	searchedAttempts = 2_000
	searchedSkips    = 300
	searchedActs     = 5_000
	maxOpenSteps     = 1_000
)

const (
	// unclearedAttempts reads the executions of a status backwards in its index, and looks each up until
	// the limit is reached. Joins, and EXISTS, would tempt PostgreSQL to read the whole table; and so
	// would the status as a bind variable, since it then plans for a frequent one.
	unclearedAttempts = `SELECT p.id FROM (SELECT id FROM {job_execution} WHERE status = '%s' AND id >= ? AND id < ? ORDER BY id DESC LIMIT ?) AS p
		WHERE (SELECT CASE WHEN e.parent_id IS NOT NULL THEN 0
				WHEN (SELECT n.id FROM {job_execution} n WHERE n.instance_id = e.instance_id ORDER BY n.id DESC LIMIT 1) <> e.id THEN 0
				WHEN e.task_id IS NOT NULL AND (SELECT t.state FROM {task} t WHERE t.id = e.task_id) IN ('PENDING', 'ASSIGNED', 'RUNNING', 'RETRY_SCHEDULED', 'ORPHANED') THEN 0
				WHEN e.redrive_of IS NOT NULL AND (SELECT r.id FROM {job_execution} r WHERE r.redrive_of = e.redrive_of AND r.id > e.id AND r.status = 'COMPLETED' LIMIT 1) IS NOT NULL
					AND (SELECT k.id FROM {skipped_item} k WHERE k.job_execution_id = e.redrive_of AND k.redriven_by IS NULL LIMIT 1) IS NULL THEN 0
				ELSE 1 END FROM {job_execution} e WHERE e.id = p.id) = 1
		ORDER BY p.id DESC LIMIT ?`
	// reachedAttempt is the last execution that unclearedAttempts would read.
	reachedAttempt = `SELECT count(*) AS n, COALESCE(min(id), 0) AS id FROM (SELECT id FROM {job_execution}
		WHERE status = '%s' AND id >= ? AND id < ? ORDER BY id DESC LIMIT ?) AS e`
	// withSkips walks from execution to execution in the index of items that are left, until the limit is
	// reached. The last row is the last execution of the walk, if there may be more.
	withSkips = `WITH RECURSIVE x(id) AS (
			SELECT * FROM (SELECT max(k.job_execution_id) FROM {skipped_item} k WHERE k.redriven_by IS NULL AND k.job_execution_id < ? AND k.job_execution_id >= ?) AS first
			UNION ALL
			SELECT (SELECT max(k.job_execution_id) FROM {skipped_item} k WHERE k.redriven_by IS NULL AND k.job_execution_id < x.id AND k.job_execution_id >= ?)
			FROM x WHERE x.id IS NOT NULL),
		walk(id) AS (SELECT id FROM x WHERE id IS NOT NULL LIMIT ?)
		SELECT * FROM (SELECT w.id AS id, 0 AS reached FROM walk w
		WHERE (SELECT CASE WHEN e.redrive_of IS NULL THEN (SELECT n.status FROM {job_execution} n WHERE n.instance_id = e.instance_id ORDER BY n.id DESC LIMIT 1) END
			FROM {job_execution} e WHERE e.id = w.id) = 'COMPLETED' LIMIT ?) AS page
		UNION ALL SELECT * FROM (SELECT id, 1 AS reached FROM walk LIMIT 1 OFFSET ?) AS last`
	firstSince = `SELECT COALESCE((SELECT id FROM {job_execution} WHERE created_at >= ? ORDER BY created_at, id LIMIT 1), 0)`
)

// attention implements ports.Attention.
type attention struct{ store *store }

// OldestRunning implements ports.Attention with one statement over the index of statuses.
func (r *attention) OldestRunning(ctx context.Context, limit int) ([]core.JobExecutionID, error) {
	var pages []string
	var args []any
	for _, status := range ports.ActiveStatuses() {
		pages = append(pages, "SELECT id FROM (SELECT id FROM {job_execution} WHERE status = '"+string(status)+"' ORDER BY id LIMIT ?) AS page")
		args = append(args, limit)
	}
	var ids []core.JobExecutionID
	err := r.store.scan(ctx, &ids, "SELECT id FROM ("+strings.Join(pages, " UNION ALL ")+") AS pages ORDER BY id LIMIT ?", append(args, limit)...)
	if err != nil {
		return nil, fmt.Errorf("list the oldest running executions: %w", err)
	}
	return ids, nil
}

// OpenSteps implements ports.Attention with one statement over the index of open steps.
func (r *attention) OpenSteps(ctx context.Context, before time.Time, ids ...core.JobExecutionID) ([]ports.OpenStep, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var rows []struct {
		ID        core.StepExecutionID
		Execution core.JobExecutionID
		Name      string
		Commits   int64
		StartedAt instant
	}
	err := r.store.scan(ctx, &rows, `SELECT s.id, s.job_execution_id AS execution, s.name, s.commit_count AS commits, s.started_at FROM {step_execution} s
		WHERE s.job_execution_id {among} AND s.`+openStep+` AND s.status = 'STARTED' AND s.owner <> '' AND s.started_at < ?
			AND (SELECT p.id FROM {step_execution} p WHERE p.manager_id = s.id LIMIT 1) IS NULL LIMIT ?`,
		listed(ids), instant{Time: before}, maxOpenSteps)
	if err != nil {
		return nil, fmt.Errorf("list running steps: %w", err)
	}
	steps := make([]ports.OpenStep, len(rows))
	for i, row := range rows {
		steps[i] = ports.OpenStep{ID: row.ID, Execution: row.Execution, Name: row.Name, Commits: row.Commits, StartedAt: row.StartedAt.Time}
	}
	return steps, nil
}

// Uncleared implements ports.Attention with a statement for each kind.
func (r *attention) Uncleared(ctx context.Context, req ports.UnclearedRequest) (found ports.Uncleared, err error) {
	s := unclearedSearch{attention: r, limit: req.Limit, before: cmp.Or(req.Before, 1<<62)}
	if err := r.store.scan(ctx, &s.first, firstSince, instant{Time: req.Since}); err != nil {
		return found, fmt.Errorf("find the first execution since %s: %w", req.Since.Format(time.RFC3339), err)
	}
	if s.first == 0 {
		return found, nil
	}
	for _, status := range []core.Status{core.StatusFailed, core.StatusStopped, core.StatusUnknown} {
		ids, err := s.attempts(ctx, status)
		if err != nil {
			return found, fmt.Errorf("list executions that are %s: %w", status, err)
		}
		found.Attempts = append(found.Attempts, ids...)
	}
	if found.Skipped, err = s.skips(ctx); err != nil {
		return found, fmt.Errorf("list executions with skipped items: %w", err)
	}
	found.Reached = s.reached
	found.Attempts, found.Skipped = notBelow(found.Attempts, s.reached), notBelow(found.Skipped, s.reached)
	return found, nil
}

// notBelow leaves the rest to the next page, since not every kind was searched as far.
func notBelow(ids []core.JobExecutionID, reached core.JobExecutionID) []core.JobExecutionID {
	return slices.DeleteFunc(ids, func(id core.JobExecutionID) bool { return id < reached })
}

type unclearedSearch struct {
	*attention
	first, before core.JobExecutionID
	limit         int
	reached       core.JobExecutionID
}

func (s *unclearedSearch) attempts(ctx context.Context, status core.Status) (ids []core.JobExecutionID, err error) {
	page := []any{s.first, s.before, searchedAttempts}
	err = s.store.scan(ctx, &ids, fmt.Sprintf(unclearedAttempts, status), append(page, s.limit)...)
	if err != nil || len(ids) == s.limit {
		if err == nil {
			s.reachedBy(ids[len(ids)-1])
		}
		return ids, err
	}
	var last struct {
		N  int
		ID core.JobExecutionID
	}
	if err = s.store.scan(ctx, &last, fmt.Sprintf(reachedAttempt, status), page...); err == nil && last.N == searchedAttempts {
		s.reachedBy(last.ID)
	}
	return ids, err
}

func (s *unclearedSearch) skips(ctx context.Context) (ids []core.JobExecutionID, err error) {
	var rows []struct {
		ID      core.JobExecutionID
		Reached int
	}
	if err := s.store.scan(ctx, &rows, withSkips, s.before, s.first, s.first, searchedSkips, s.limit, searchedSkips-1); err != nil {
		return nil, err
	}
	for _, row := range rows {
		if row.Reached == 0 {
			ids = append(ids, row.ID)
		} else if len(ids) < s.limit {
			s.reachedBy(row.ID)
		}
	}
	if len(ids) == s.limit {
		s.reachedBy(ids[len(ids)-1])
	}
	return ids, nil
}

func (s *unclearedSearch) reachedBy(id core.JobExecutionID) {
	if id > s.first {
		s.reached = max(s.reached, id)
	}
}
