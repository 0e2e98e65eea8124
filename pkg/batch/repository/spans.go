package repository

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// spanReads implements ports.Spans. An execution may have 100,000 steps, so rows are read without
// reflection, and no statement reads more rows than a page has.
type spanReads struct{ store *store }

// AttemptSpans implements ports.Spans with one statement.
func (r *spanReads) AttemptSpans(ctx context.Context, id core.JobInstanceID, limit int) ([]ports.AttemptSpan, error) {
	var list []ports.AttemptSpan
	known := parsedOwners{}
	err := r.store.each(ctx, `SELECT id, attempt, status, owner, CASE WHEN epoch > 1 OR owner = '' THEN 1 ELSE 0 END, step_count, created_at, started_at, ended_at
		FROM {job_execution} WHERE instance_id = ? ORDER BY id DESC LIMIT ?`, []any{id, limit}, func(rows *sql.Rows) error {
		var a ports.AttemptSpan
		var owner string
		var created, started, ended instant
		err := rows.Scan(&a.ID, &a.Attempt, &a.Status, &owner, &a.Resumed, &a.Steps, &created, &started, &ended)
		a.Owner, a.CreatedAt, a.StartedAt, a.EndedAt = known.parse(owner), created.Time, started.Time, ended.Time
		list = append(list, a)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the attempts of job instance %d: %w", id, err)
	}
	return list, nil
}

// stepSpan are the columns of a ports.StepSpan, from {step_execution} s.
const stepSpan = `id, job_execution_id, COALESCE(first_id, 0), name, flow, ordinal, element, COALESCE(manager_id, 0), COALESCE(branch_id, 0), assigned_count, status,
	read_count, filter_count, write_count, read_skip_count, process_skip_count, write_skip_count, commit_count, rollback_count, owner, started_at, ended_at,
	CASE WHEN s.branch_id IS NULL THEN s.lease_until ELSE (SELECT b.lease_until FROM {step_execution} b WHERE b.id = s.branch_id) END`

// StepSpans implements ports.Spans with one statement, in the order of its index.
func (r *spanReads) StepSpans(ctx context.Context, id core.JobExecutionID, after core.StepExecutionID, limit int) ([]ports.StepSpan, error) {
	list, err := r.stepSpans(ctx, "SELECT "+stepSpan+" FROM {step_execution} s WHERE "+ofExecutionAfter("s")+" ORDER BY job_execution_id, id LIMIT ?", id, after, id, limit)
	if err != nil {
		return nil, fmt.Errorf("read the steps of job execution %d: %w", id, err)
	}
	return list, nil
}

// MainSpans implements ports.Spans with one statement.
func (r *spanReads) MainSpans(ctx context.Context, id core.JobExecutionID, after core.StepExecutionID, limit int) ([]ports.StepSpan, error) {
	list, err := r.stepSpans(ctx, "SELECT "+stepSpan+" FROM {step_execution} s WHERE "+ofExecutionAfter("s")+" AND manager_id IS NULL ORDER BY job_execution_id, id LIMIT ?", id, after, id, limit)
	if err != nil {
		return nil, fmt.Errorf("read the steps of job execution %d: %w", id, err)
	}
	return list, nil
}

func (r *spanReads) stepSpans(ctx context.Context, text string, args ...any) ([]ports.StepSpan, error) {
	var list []ports.StepSpan
	known := parsedOwners{}
	err := r.store.each(ctx, text, args, func(rows *sql.Rows) error {
		list = append(list, ports.StepSpan{})
		s := &list[len(list)-1]
		c := &s.Counters
		var owner string
		var started, ended, lease instant
		err := rows.Scan(&s.ID, &s.Execution, &s.First, &s.Name, &s.Visit.Flow, &s.Visit.Ordinal, &s.Visit.Element, &s.Manager, &s.Branch, &s.Assigned, &s.Status,
			&c.Read, &c.Filter, &c.Write, &c.ReadSkip, &c.ProcessSkip, &c.WriteSkip, &c.Commit, &c.Rollback, &owner, &started, &ended, &lease)
		s.Owner, s.StartedAt, s.EndedAt, s.LeaseUntil = known.parse(owner), started.Time, ended.Time, lease.Time
		if s.First == 0 {
			s.First = s.ID
		}
		return err
	})
	return list, err
}

// holdsPage is how many rows of the audit one statement reads; most of them are of other acts.
const holdsPage = 20_000

// selectHolds selects the rows of a page, and its last one, which has the page's size and is the place of the next page.
const selectHolds = `WITH page AS (SELECT id, at, act, actor, step_execution_id, to_status FROM {audit} WHERE job_execution_id = ? AND id > ? ORDER BY id LIMIT ?)
	SELECT id, at, CASE WHEN act = 'launch' AND to_status = 'PARKED' THEN 'park' WHEN act = 'plan partitions' AND step_execution_id <> 0 THEN 'plan'
			WHEN act = 'assign' AND to_status = 'STARTED' OR act IN ('park', 'resume', 'release') THEN act ELSE '' END, step_execution_id, actor, (SELECT COUNT(*) FROM page)
	FROM page WHERE act IN ('park', 'resume', 'release', 'plan partitions') OR act = 'assign' AND to_status = 'STARTED' OR act = 'launch' AND to_status = 'PARKED'
		OR id = (SELECT MAX(id) FROM page) ORDER BY id`

// Holds implements ports.Spans with one statement, over the index of the execution's audit.
func (r *spanReads) Holds(ctx context.Context, id core.JobExecutionID, after int64) (list []ports.Hold, next int64, err error) {
	known := parsedOwners{}
	err = r.store.each(ctx, selectHolds, []any{id, after, holdsPage}, func(rows *sql.Rows) error {
		var h ports.Hold
		var at instant
		var owner string
		var last, size int64
		if err := rows.Scan(&last, &at, &h.Kind, &h.Step, &owner, &size); err != nil {
			return err
		}
		if size == holdsPage {
			next = last
		}
		if h.Kind != "" {
			h.At, h.Owner = at.Time, known.parse(owner)
			list = append(list, h)
		}
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("read when job execution %d waited: %w", id, err)
	}
	return list, next, nil
}

// selectTaskSpans leaves the beginning of a wait open where a task waited for its time or for other tasks as well.
const selectTaskSpans = `SELECT t.id, g.id, g.step_execution_id, t.type, COALESCE(a.number, 0), COALESCE(a.state, t.state), COALESCE(a.worker, ''),
		CASE WHEN g.ordered OR t.spec LIKE '%"delay":%' THEN 0 ELSE 1 END, t.created_at, a.started_at, a.ended_at
	FROM {task_group} g JOIN {task} t ON t.group_id = g.id LEFT JOIN {task_attempt} a ON a.task_id = t.id
	WHERE g.step_execution_id {among} LIMIT ?`

// TaskSpans implements ports.Spans with one statement.
func (r *spanReads) TaskSpans(ctx context.Context, steps []core.StepExecutionID, limit int) ([]ports.TaskSpan, error) {
	if len(steps) == 0 {
		return nil, nil
	}
	var list []ports.TaskSpan
	err := r.store.each(ctx, selectTaskSpans, []any{listed(steps), limit}, func(rows *sql.Rows) error {
		var t ports.TaskSpan
		var created, started, ended instant
		err := rows.Scan(&t.Task, &t.Group, &t.Step, &t.Type, &t.Number, &t.State, &t.Worker, &t.Ready, &created, &started, &ended)
		t.CreatedAt, t.StartedAt, t.EndedAt = created.Time, started.Time, ended.Time
		list = append(list, t)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the tasks of %d steps: %w", len(steps), err)
	}
	slices.SortFunc(list, func(a, b ports.TaskSpan) int {
		return cmp.Or(cmp.Compare(a.Task, b.Task), cmp.Compare(a.Number, b.Number))
	})
	return list, nil
}

// ChildSpans implements ports.Spans with one statement.
func (r *spanReads) ChildSpans(ctx context.Context, parents []core.JobExecutionID, limit int) ([]ports.ChildSpan, error) {
	var list []ports.ChildSpan
	known := parsedOwners{}
	err := r.store.each(ctx, `SELECT id, job_name, parent_id, COALESCE(parent_call, 0), status, owner, created_at, started_at, ended_at
		FROM {job_execution} WHERE parent_id {among} LIMIT ?`, []any{listed(parents), limit}, func(rows *sql.Rows) error {
		var c ports.ChildSpan
		var owner string
		var created, started, ended instant
		err := rows.Scan(&c.ID, &c.JobName, &c.Parent, &c.Call, &c.Status, &owner, &created, &started, &ended)
		c.Owner, c.CreatedAt, c.StartedAt, c.EndedAt = known.parse(owner), created.Time, started.Time, ended.Time
		list = append(list, c)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the child jobs of %d job executions: %w", len(parents), err)
	}
	slices.SortFunc(list, func(a, b ports.ChildSpan) int { return cmp.Compare(a.ID, b.ID) })
	return list, nil
}

// mostWorkers bounds the names of workers.
const mostWorkers = 10_000

// WorkerNames implements ports.Spans with one statement.
func (r *spanReads) WorkerNames(ctx context.Context) (map[core.Owner]string, error) {
	names := map[core.Owner]string{}
	err := r.store.each(ctx, "SELECT name, owner FROM {worker} WHERE owner <> '' LIMIT ?", []any{mostWorkers}, func(rows *sql.Rows) error {
		var name, owner string
		err := rows.Scan(&name, &owner)
		names[ports.ParseOwner(owner)] = name
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the names of workers: %w", err)
	}
	return names, nil
}

// parsedOwners parses each text once: most rows of a page have one of a few owners.
type parsedOwners map[string]core.Owner

func (o parsedOwners) parse(text string) core.Owner {
	owner, known := o[text]
	if !known {
		owner = ports.ParseOwner(text)
		o[text] = owner
	}
	return owner
}

// each calls f for each row of a query. text may use the placeholders of sql.
func (s *store) each(ctx context.Context, text string, args []any, f func(*sql.Rows) error) error {
	rows, err := s.session(ctx).Raw(s.sql(text), args...).Rows()
	if err != nil {
		return err
	}
	for rows.Next() {
		if err := f(rows); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}
