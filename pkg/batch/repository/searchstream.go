package repository

import (
	"context"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// stream selects executions by one condition.
type stream interface {
	// read returns the selected IDs between two, both included, and the last ID to which the answer is
	// complete. A page of it is bounded: through may come before to.
	read(ctx context.Context, w *walk, from, to core.JobExecutionID) (ids []core.JobExecutionID, through core.JobExecutionID, err error)
	// check returns those of the IDs that are selected.
	check(ctx context.Context, w *walk, ids []core.JobExecutionID) ([]core.JobExecutionID, error)
}

// allOf selects the IDs that all its streams select. The first one leads: it should select the fewest.
type allOf []stream

func (a allOf) read(ctx context.Context, w *walk, from, to core.JobExecutionID) (ids []core.JobExecutionID, through core.JobExecutionID, err error) {
	ids, through, err = a[0].read(ctx, w, from, to)
	for _, s := range a[1:] {
		if err != nil || len(ids) == 0 {
			break
		}
		ids, through, err = narrow(ctx, w, s, ids, through)
	}
	return ids, through, err
}

// Candidates that are further apart are checked, at most checkedAtOnce with one statement, which reads the first fewRows
// rows of each.
const (
	farApart      = 20
	checkedAtOnce = 50
	fewRows       = 200
)

// narrow keeps the candidates that s selects as well. They are complete up to through.
func narrow(ctx context.Context, w *walk, s stream, ids []core.JobExecutionID, through core.JobExecutionID) ([]core.JobExecutionID, core.JobExecutionID, error) {
	if whole, is := s.(*checkedStream); is {
		ids, err := whole.check(ctx, w, ids)
		return ids, through, err
	}
	first, last := ids[0], ids[len(ids)-1]
	if max(last-first, first-last)/farApart > core.JobExecutionID(len(ids)) {
		return checkSome(ctx, w, s, ids, through)
	}
	found, known, err := s.read(ctx, w, first, last)
	if w.before(known, last) {
		through = known
	}
	return w.both(ids, found), through, err
}

func checkSome(ctx context.Context, w *walk, s stream, ids []core.JobExecutionID, through core.JobExecutionID) (kept []core.JobExecutionID, _ core.JobExecutionID, err error) {
	last := ids[len(ids)-1]
	for some := range slices.Chunk(ids, checkedAtOnce) {
		found, err := s.check(ctx, w, some)
		if err != nil {
			return nil, 0, err
		}
		kept = append(kept, found...)
		if known := some[len(some)-1]; known != last && w.isSpent(0) {
			return kept, known, nil
		}
	}
	return kept, through, nil
}

// anyOf selects the IDs that one of its streams selects.
type anyOf []stream

func (a anyOf) read(ctx context.Context, w *walk, from, to core.JobExecutionID) (ids []core.JobExecutionID, through core.JobExecutionID, err error) {
	through = to
	for _, s := range a {
		found, known, err := s.read(ctx, w, from, through)
		if err != nil {
			return nil, 0, err
		}
		ids, through = append(ids, found...), known
	}
	return w.sort(w.cut(ids, through)), through, nil
}

func (a anyOf) check(ctx context.Context, w *walk, ids []core.JobExecutionID) (kept []core.JobExecutionID, err error) {
	for _, s := range a {
		found, err := s.check(ctx, w, ids)
		if err != nil {
			return nil, err
		}
		kept = append(kept, found...)
	}
	return w.sort(kept), nil
}

// idStream is a stream of known IDs, in the order of the search.
type idStream []core.JobExecutionID

func (f idStream) read(_ context.Context, w *walk, from, to core.JobExecutionID) ([]core.JobExecutionID, core.JobExecutionID, error) {
	first, _ := slices.BinarySearchFunc(f, from, w.compare)
	ids := f[first:]
	if len(ids) > w.rows {
		ids = ids[:w.rows]
		if last := ids[len(ids)-1]; w.before(last, to) {
			to = last
		}
	}
	return w.cut(slices.Clone(ids), to), to, nil
}

func (f idStream) check(_ context.Context, w *walk, ids []core.JobExecutionID) ([]core.JobExecutionID, error) {
	return w.both(ids, f), nil
}

// rowStream is a stream of the executions that have a row of a table, which is read in the order of an index.
type rowStream struct {
	table string
	// id is the column of the execution. sub orders the rows of one execution, if it may have several.
	id, sub string
	// where is the condition of the index; match is checked in each of its rows.
	where, match *conditions
}

type searchPage struct {
	ids []core.JobExecutionID
	// edge is the last row of the page; N is the number of its rows, Top the first ID.
	edge searchRow
}

type searchRow struct {
	ID  core.JobExecutionID
	Hit bool
	Sub int64
	N   int
	Top core.JobExecutionID
}

func (s *rowStream) read(ctx context.Context, w *walk, from, to core.JobExecutionID) (ids []core.JobExecutionID, through core.JobExecutionID, err error) {
	page, err := s.page(ctx, w, from, to, nil)
	last := page.edge.ID
	switch {
	case err != nil:
		return nil, 0, err
	case page.edge.N < w.rows:
		return page.ids, to, nil
	case s.sub == "" || slices.Contains(page.ids, last):
		return page.ids, last, nil
	case last != page.edge.Top: // the last execution may have more rows
		return page.ids, w.after(last, -1), nil
	}
	for page.edge.N == w.rows && len(page.ids) == 0 { // one execution with very many rows
		if page, err = s.page(ctx, w, last, last, &page.edge.Sub); err != nil {
			return nil, 0, err
		}
	}
	return page.ids, last, nil
}

// page reads the next rows between two executions; after is the last sub of those that were read.
func (s *rowStream) page(ctx context.Context, w *walk, from, to core.JobExecutionID, after *int64) (page searchPage, err error) {
	o := w.order()
	sub, by := "0", "x."+s.id+o.direction
	if s.sub != "" {
		sub, by = "x."+s.sub, by+", x."+s.sub+o.direction
	}
	where := conditions{texts: slices.Clone(s.where.texts), args: slices.Clone(s.where.args)}
	where.add(true, "x."+s.id+" BETWEEN ? AND ?", min(from, to), max(from, to))
	if after != nil {
		where.add(true, sub+" "+o.next+" ?", *after)
	}
	hit, args := "1", []any{}
	if len(s.match.texts) > 0 {
		hit, args = "CASE WHEN "+s.match.text()+" THEN 1 ELSE 0 END", slices.Clone(s.match.args)
	}
	text := "WITH page AS (SELECT x." + s.id + " AS id, " + sub + " AS sub, " + hit + " AS hit FROM " + s.table + " x WHERE " + where.text() + " ORDER BY " + by + " LIMIT ?)" +
		" SELECT id, 1 AS hit, 0 AS sub, 0 AS n, 0 AS top FROM page WHERE hit = 1 GROUP BY id" +
		" UNION ALL SELECT * FROM (SELECT id, 0, sub, (SELECT COUNT(*) FROM page), (SELECT " + o.first + "(id) FROM page) FROM page ORDER BY id" + o.reverse + ", sub" + o.reverse + " LIMIT 1) AS edge"
	var found []searchRow
	if err := w.store.scan(ctx, &found, text, append(append(args, where.args...), w.rows)...); err != nil {
		return page, err
	}
	for _, row := range found {
		if row.Hit {
			page.ids = append(page.ids, row.ID)
			continue
		}
		page.edge = row
	}
	page.ids = w.sort(page.ids)
	return page, nil
}

// check reads the first rows of each execution, and continues with those that have more.
func (s *rowStream) check(ctx context.Context, w *walk, ids []core.JobExecutionID) (kept []core.JobExecutionID, err error) {
	if s.sub == "" {
		return w.among(ctx, s.table, s.id, &conditions{slices.Concat(s.where.texts, s.match.texts), slices.Concat(s.where.args, s.match.args)}, ids)
	}
	var found []struct {
		ID    core.JobExecutionID
		State int
	}
	const hit = 1000
	is, of := "CASE WHEN "+s.match.text()+" THEN ? ELSE 0 END", " FROM "+s.table+" x WHERE "+strings.Join(append(slices.Clone(s.where.texts), "x."+s.id+" = e.id"), " AND ")
	state := "COALESCE(MAX(hit), 0) + COUNT(*)"
	if w.store.db.Dialect() == tx.MySQL { // it has read all rows
		state = "COALESCE(MAX(" + is + "), 0)"
	}
	err = w.store.scan(ctx, &found, "SELECT e.id, "+gormtx.Few(w.store.db.Dialect(), state, is+" AS hit", of, "")+" AS state FROM {job_execution} e WHERE e.id {among}",
		slices.Concat(s.match.args, []any{hit}, s.where.args, []any{fewRows, listed(ids)})...)
	for _, e := range found {
		is := e.State >= hit
		if !is && e.State == fewRows && err == nil {
			var more []core.JobExecutionID
			more, _, err = s.read(ctx, w, e.ID, e.ID)
			is = len(more) > 0
		}
		if is {
			kept = append(kept, e.ID)
		}
	}
	return w.sort(kept), err
}

// groupStream is a stream of the executions that have a row of a table with very many rows for each: one
// entry of the index is read for each execution.
type groupStream struct{ table, id, where string }

func (s *groupStream) read(ctx context.Context, w *walk, from, to core.JobExecutionID) ([]core.JobExecutionID, core.JobExecutionID, error) {
	o := w.order()
	next := func(more string) string {
		return "SELECT (SELECT x." + s.id + " FROM " + s.table + " x WHERE " + s.where + " AND x." + s.id + " BETWEEN ? AND ?" + more +
			" ORDER BY x." + s.id + o.direction + " LIMIT 1)"
	}
	var ids []core.JobExecutionID
	err := w.store.scan(ctx, &ids, "WITH RECURSIVE seen(id) AS ("+next("")+" UNION ALL "+next(" AND x."+s.id+" "+o.next+" seen.id")+
		" FROM seen WHERE seen.id IS NOT NULL) SELECT id FROM seen WHERE id IS NOT NULL LIMIT ?",
		min(from, to), max(from, to), min(from, to), max(from, to), w.rows)
	if err == nil && len(ids) == w.rows {
		to = ids[len(ids)-1]
	}
	return ids, to, err
}

func (s *groupStream) check(ctx context.Context, w *walk, ids []core.JobExecutionID) (kept []core.JobExecutionID, err error) {
	err = w.store.scan(ctx, &kept, "SELECT e.id FROM {job_execution} e WHERE e.id {among} AND EXISTS (SELECT 1 FROM "+s.table+" x WHERE "+s.where+" AND x."+s.id+" = e.id)", listed(ids))
	return w.sort(kept), err
}

// checkedStream is a stream that checks any number of IDs with one statement.
type checkedStream struct {
	stream
	table, id string
	where     *conditions
}

func (s *checkedStream) check(ctx context.Context, w *walk, ids []core.JobExecutionID) ([]core.JobExecutionID, error) {
	return w.among(ctx, s.table, s.id, s.where, ids)
}
