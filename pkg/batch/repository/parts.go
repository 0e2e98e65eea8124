package repository

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// partWindow is how many parts of a step one statement reads: a step may have 100,000.
const partWindow = 20_000

// partPages implements ports.Parts.
type partPages struct{ spans *spanReads }

// partedSteps walks from manager to manager in their index, between the first and the last step of the execution: it
// reads no parts.
const partedSteps = `WITH RECURSIVE
	bounds(low, high) AS (SELECT (SELECT id FROM {step_execution} WHERE job_execution_id = ? ORDER BY id LIMIT 1), (SELECT id FROM {step_execution} WHERE job_execution_id = ? ORDER BY id DESC LIMIT 1)),
	m(id) AS (
		SELECT (SELECT s.manager_id FROM {step_execution} s WHERE s.manager_id >= (SELECT low FROM bounds) ORDER BY s.manager_id LIMIT 1)
		UNION ALL SELECT (SELECT s.manager_id FROM {step_execution} s WHERE s.manager_id > m.id ORDER BY s.manager_id LIMIT 1)
		FROM m WHERE m.id IS NOT NULL AND m.id < (SELECT high FROM bounds))
	SELECT ` + stepSpan + ` FROM {step_execution} s WHERE id IN (SELECT id FROM (SELECT id FROM m LIMIT ?) AS first) AND job_execution_id = ? ORDER BY id`

// PartedSteps implements ports.Parts with one statement.
func (r *partPages) PartedSteps(ctx context.Context, id core.JobExecutionID) ([]ports.StepSpan, error) {
	list, err := r.spans.stepSpans(ctx, partedSteps, id, id, partWindow, id)
	if err != nil {
		return nil, fmt.Errorf("list the steps with parts of job execution %d: %w", id, err)
	}
	return list, nil
}

// PartCounts implements ports.Parts with one statement for each window.
func (r *partPages) PartCounts(ctx context.Context, manager core.StepExecutionID) (map[core.Status]int, error) {
	counts := map[core.Status]int{}
	err := r.windows(ctx, manager, func(status core.Status, n int, _ core.StepExecutionID) { counts[status] += n })
	return counts, err
}

// windows visits the counts of each window by status; first is the ID before the window.
func (r *partPages) windows(ctx context.Context, manager core.StepExecutionID, visit func(status core.Status, n int, first core.StepExecutionID)) error {
	for after, size := core.StepExecutionID(0), partWindow; size == partWindow; {
		first := after
		size = 0
		err := r.spans.store.each(ctx, `SELECT status, COUNT(*), MAX(id) FROM (SELECT id, status FROM {step_execution} WHERE manager_id = ? AND id > ? ORDER BY id LIMIT ?) w
			GROUP BY status`, []any{manager, first, partWindow}, func(rows *sql.Rows) error {
			var status core.Status
			var n int
			var last core.StepExecutionID
			if err := rows.Scan(&status, &n, &last); err != nil {
				return err
			}
			visit(status, n, first)
			size, after = size+n, max(after, last)
			return nil
		})
		if err != nil {
			return fmt.Errorf("count the parts of step execution %d: %w", manager, err)
		}
	}
	return nil
}

// The ranks by which parts are ordered. A part that waits has no duration.
const (
	numberRank   = "-id"
	durationRank = `CASE WHEN status = 'STARTING' THEN started_at - started_at ELSE COALESCE(ended_at, c.at) - started_at END`
	statusRank   = `CASE WHEN status IN ('FAILED', 'UNKNOWN') THEN 5 WHEN status IN ('STARTED', 'STOPPING') THEN 4 WHEN status IN ('STARTING', 'PARKED') THEN 3
		WHEN status IN ('STOPPED', 'ABANDONED') THEN 2 ELSE 1 END`
)

func (r *partPages) rank(of ports.PartOrder) string {
	switch {
	case of == ports.PartsByStatus:
		return statusRank
	case of == ports.PartsByNumber || of == "":
		return numberRank
	case r.spans.store.db.Dialect() == tx.MySQL:
		return "CASE WHEN status = 'STARTING' THEN 0 ELSE timestampdiff(MICROSECOND, started_at, COALESCE(ended_at, c.at)) END"
	case r.spans.store.db.Dialect() == tx.Postgres:
		return "CAST(EXTRACT(EPOCH FROM " + durationRank + ") * 1000000 AS bigint)"
	}
	return durationRank
}

// PartPage implements ports.Parts with two statements for each window, and one for the parts themselves.
func (r *partPages) PartPage(ctx context.Context, f ports.PartFilter) ([]ports.ListedPart, error) {
	places, err := r.places(ctx, f)
	if err != nil || len(places) == 0 {
		return nil, err
	}
	ids, of := make([]core.StepExecutionID, len(places)), make(map[core.StepExecutionID]int, len(places))
	for i, place := range places {
		ids[i], of[place.Part] = place.Part, i
	}
	steps, err := r.spans.store.readableSteps(ctx, r.spans.store.sql("id {among}"), listed(ids))
	if err != nil {
		return nil, fmt.Errorf("list the parts of step execution %d: %w", f.Manager, err)
	}
	list := make([]ports.ListedPart, len(steps))
	for i := range steps {
		list[i] = ports.ListedPart{Place: places[of[steps[i].ID]], Step: steps[i]}
	}
	slices.SortFunc(list, func(a, b ports.ListedPart) int { return inOrder(a.Place, b.Place) })
	return list, nil
}

func inOrder(a, b ports.PartPlace) int {
	return cmp.Or(cmp.Compare(b.Rank, a.Rank), cmp.Compare(a.Part, b.Part))
}

// places returns the first places of all windows after the filter's.
func (r *partPages) places(ctx context.Context, f ports.PartFilter) ([]ports.PartPlace, error) {
	byNumber := f.Order == ports.PartsByNumber || f.Order == ""
	if byNumber && !f.Left { // the first window of the rest
		var first core.StepExecutionID
		if f.After != nil {
			first = f.After.Part
		}
		return r.window(ctx, f, first, f.Limit)
	}
	var starts []core.StepExecutionID
	err := r.windows(ctx, f.Manager, func(_ core.Status, _ int, first core.StepExecutionID) {
		if len(starts) == 0 || starts[len(starts)-1] != first {
			starts = append(starts, first)
		}
	})
	if err != nil {
		return nil, err
	}
	var found []ports.PartPlace
	for _, first := range starts {
		more, err := r.window(ctx, f, first, partWindow)
		if err != nil {
			return nil, err
		}
		if found = append(found, more...); byNumber && len(found) >= f.Limit {
			break
		}
	}
	slices.SortFunc(found, inOrder)
	return found[:min(len(found), f.Limit)], nil
}

// window returns the first places, after the filter's, of a window of that many parts after first.
func (r *partPages) window(ctx context.Context, f ports.PartFilter, first core.StepExecutionID, size int) ([]ports.PartPlace, error) {
	c := &conditions{}
	c.add(true, "1 = 1")
	if f.After != nil {
		c.add(true, "(score < ? OR score = ? AND id > ?)", f.After.Rank, f.After.Rank, f.After.Part)
	}
	left := ""
	if f.Left {
		left = " WHERE status <> 'COMPLETED'"
	}
	var list []ports.PartPlace
	err := r.spans.store.each(ctx, `WITH c AS (SELECT {now} AS at),
			w AS (SELECT id, status, started_at, ended_at FROM {step_execution} WHERE manager_id = ? AND id > ? ORDER BY id LIMIT ?),
			ranked AS (SELECT w.id, `+r.rank(f.Order)+` AS score FROM w CROSS JOIN c`+left+`)
		SELECT id, score FROM ranked WHERE `+c.text()+" ORDER BY score DESC, id LIMIT ?",
		slices.Concat([]any{f.Manager, first, size}, c.args, []any{f.Limit}), func(rows *sql.Rows) error {
			var p ports.PartPlace
			err := rows.Scan(&p.Part, &p.Rank)
			list = append(list, p)
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("list the parts of step execution %d: %w", f.Manager, err)
	}
	return list, nil
}
