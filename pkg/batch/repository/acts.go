package repository

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Acts of both tables share one list: one table's numbers are even, the other's odd.
const (
	jobActs = `SELECT 2 * a.id AS id, a.at, a.verb, a.person AS actor, a.job_execution_id AS execution, 0 AS task, a.detail,
		CASE WHEN a.job_name <> '' THEN a.job_name ELSE COALESCE((SELECT e.job_name FROM {job_execution} e WHERE e.id = a.job_execution_id), '') END AS job_name
		FROM {audit} a WHERE a.verb <> ''`
	taskActs = `SELECT 2 * t.id + 1, t.at, t.verb, t.person, 0, t.task_id, t.detail, '' FROM {task_audit} t WHERE t.verb <> ''`
)

const actPage = 50

// acts implements ports.Acts.
type acts struct{ store *store }

// Acts implements ports.Acts: one statement, and one more for a page after the first.
func (r *acts) Acts(ctx context.Context, f ports.ActFilter) ([]ports.Act, error) {
	c := &conditions{}
	c.add(true, "1 = 1")
	if f.Before != 0 {
		var at []struct{ At instant }
		table, id := "{audit}", f.Before/2
		if f.Before%2 != 0 {
			table = "{task_audit}"
		}
		if err := r.store.scan(ctx, &at, "SELECT at FROM "+table+" WHERE id = ?", id); err != nil {
			return nil, fmt.Errorf("list acts: %w", err)
		}
		if len(at) == 0 {
			return nil, fmt.Errorf("list acts before %d: %w", f.Before, core.ErrNotFound)
		}
		c.add(true, "(at < ? OR at = ? AND id < ?)", at[0].At, at[0].At, f.Before)
	}
	c.add(!f.Since.IsZero(), "at >= ?", instant{Time: f.Since})
	c.add(f.Verb != "", "verb = ?", f.Verb)
	c.add(f.Actor != "", `(actor = ? OR actor = ? OR actor LIKE ? ESCAPE '!')`, f.Actor, "API client "+f.Actor, likeText(f.Actor)+" (%")
	c.add(f.JobName != "", "job_name = ?", f.JobName)
	if f.Limit <= 0 {
		f.Limit = actPage
	}
	var rows []struct {
		ID                           int64
		At                           instant
		Verb, Actor, Detail, JobName string
		Execution                    core.JobExecutionID
		Task                         int64
	}
	err := r.store.scan(ctx, &rows, "SELECT * FROM ("+jobActs+" UNION ALL "+taskActs+") AS acts WHERE "+c.text()+
		" ORDER BY at DESC, id DESC LIMIT ?", append(c.args, f.Limit)...)
	if err != nil {
		return nil, fmt.Errorf("list acts: %w", err)
	}
	list := make([]ports.Act, len(rows))
	for i, row := range rows {
		list[i] = ports.Act{ID: row.ID, At: row.At.Time, Verb: row.Verb, Actor: row.Actor, JobName: row.JobName, Execution: row.Execution, Task: row.Task, Detail: row.Detail}
	}
	return list, nil
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
