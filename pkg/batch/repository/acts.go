package repository

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Acts of both tables share one list: one table's numbers are even, the other's odd. Each statement reads
// the newest acts of both before a key, over their indexes, and selects among these.
const (
	jobActs = `SELECT 2 * a.id AS id, a.at, a.verb, a.person AS actor, a.job_execution_id AS execution, 0 AS task, a.detail,
		CASE WHEN a.job_name <> '' THEN a.job_name ELSE COALESCE((SELECT e.job_name FROM {job_execution} e WHERE e.id = a.job_execution_id), '') END AS job_name
		FROM (SELECT * FROM {audit} WHERE verb <> ''`
	taskActs = `SELECT 2 * t.id + 1, t.at, t.verb, t.person, 0, t.task_id, t.detail, '' FROM (SELECT * FROM {task_audit} WHERE verb <> ''`
	newestOf = ` ORDER BY at DESC, id DESC LIMIT ?) AS `
)

const (
	actPage = 50
	// actsAtOnce are the acts of each table that one statement reads to find some of them.
	actsAtOnce = 5_000
)

// acts implements ports.Acts.
type acts struct{ store *store }

// Acts implements ports.Acts: one statement, and one more for a page after the first, or to search on.
func (r *acts) Acts(ctx context.Context, f ports.ActFilter) (list []ports.Act, next int64, err error) {
	if f.Limit <= 0 {
		f.Limit = actPage
	}
	if f.Instance != 0 {
		list, err = r.scanActs(ctx, jobActs+` AND job_execution_id IN (SELECT id FROM {job_execution} WHERE instance_id = ?
			UNION ALL SELECT d.id FROM {job_execution} d JOIN {job_execution} o ON o.id = d.redrive_of WHERE o.instance_id = ?)
			ORDER BY job_execution_id DESC, id DESC LIMIT ?) AS a`, f.Instance, f.Instance, f.Limit)
		return list, 0, err
	}
	c := &conditions{}
	c.add(true, "1 = 1")
	c.add(f.Verb != "", "verb = ?", f.Verb)
	c.add(f.Actor != "", `(actor = ? OR actor = ? OR actor LIKE ? ESCAPE '!')`, f.Actor, ports.ClientActor+f.Actor, likeText(f.Actor)+" (%")
	c.add(f.JobName != "", "job_name = ?", f.JobName)
	read := max(actsAtOnce, f.Limit)
	if len(c.args) == 0 {
		read = f.Limit
	}
	acts, args, err := r.newestActs(ctx, f, read)
	if err != nil {
		return nil, 0, fmt.Errorf("list acts: %w", err)
	}
	list, err = r.scanActs(ctx, "SELECT * FROM ("+acts+") AS acts WHERE "+c.text()+" ORDER BY at DESC, id DESC LIMIT ?", slices.Concat(args, c.args, []any{f.Limit})...)
	switch {
	case err != nil:
		return nil, 0, err
	case len(list) == f.Limit:
		return list, list[f.Limit-1].ID, nil
	case read == f.Limit:
		return list, 0, nil
	}
	var last []int64
	if err := r.store.scan(ctx, &last, "SELECT id FROM ("+acts+") AS acts ORDER BY at DESC, id DESC LIMIT 1 OFFSET ?", append(args, read-1)...); err != nil {
		return nil, 0, fmt.Errorf("list acts: %w", err)
	}
	if len(last) > 0 {
		next = last[0]
	}
	return list, next, nil
}

func (r *acts) scanActs(ctx context.Context, query string, args ...any) ([]ports.Act, error) {
	var rows []struct {
		ID                           int64
		At                           instant
		Verb, Actor, Detail, JobName string
		Execution                    core.JobExecutionID
		Task                         int64
	}
	if err := r.store.scan(ctx, &rows, query, args...); err != nil {
		return nil, fmt.Errorf("list acts: %w", err)
	}
	list := make([]ports.Act, len(rows))
	for i, row := range rows {
		list[i] = ports.Act{ID: row.ID, At: row.At.Time, Verb: row.Verb, Actor: row.Actor, JobName: row.JobName, Execution: row.Execution, Task: row.Task, Detail: row.Detail}
	}
	return list, nil
}

// newestActs is the text of the newest acts before the key of the filter, at most that many.
func (r *acts) newestActs(ctx context.Context, f ports.ActFilter, limit int) (text string, args []any, err error) {
	job, task := &conditions{}, &conditions{}
	if f.Before != 0 {
		var at []struct{ At instant }
		table, id := "{audit}", f.Before/2
		if f.Before%2 != 0 {
			table = "{task_audit}"
		}
		if err := r.store.scan(ctx, &at, "SELECT at FROM "+table+" WHERE id = ?", id); err != nil {
			return "", nil, err
		}
		if len(at) == 0 {
			return "", nil, fmt.Errorf("before %d: %w", f.Before, core.ErrNotFound)
		}
		const before = "at <= ? AND (at < ? OR id < ?)"
		job.add(true, before, at[0].At, at[0].At, (f.Before+1)/2)
		task.add(true, before, at[0].At, at[0].At, f.Before/2)
	}
	for _, c := range []*conditions{job, task} {
		c.add(!f.Since.IsZero(), "at >= ?", instant{Time: f.Since})
	}
	of := func(acts string, c *conditions, name string) string {
		if len(c.args) > 0 {
			acts += " AND " + c.text()
		}
		args = append(append(args, c.args...), limit)
		return acts + newestOf + name
	}
	text = "SELECT * FROM (" + of(jobActs, job, "a") + " UNION ALL " + of(taskActs, task, "t") + ") AS both_kinds ORDER BY at DESC, id DESC LIMIT ?"
	return text, append(args, limit), nil
}

// likeText escapes text for LIKE, with ! as the escape character.
func likeText(text string) string {
	return strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace(text)
}

// NoteAct implements ports.Acts.
func (r *acts) NoteAct(ctx context.Context, verb, actor, detail string) error {
	return r.store.auditDefinition(ctx, verb, actor, "", storable(detail))
}

// PurgeActs implements ports.Acts. It reads the oldest rows only, however many younger ones exist.
func (r *acts) PurgeActs(ctx context.Context, age time.Duration, limit int) (n int64, err error) {
	for _, table := range []string{"{audit}", "{task_audit}"} {
		done := r.store.exec(ctx, "DELETE FROM "+table+" WHERE id IN (SELECT id FROM (SELECT id, at FROM "+table+" ORDER BY id LIMIT ?) AS oldest WHERE at < {later})",
			limit, -age.Microseconds())
		if done.Error != nil {
			return n, fmt.Errorf("purge the audit: %w", done.Error)
		}
		n += done.RowsAffected
	}
	return n, nil
}
