package repository

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// searches implements ports.Searches.
type searches struct{ store *store }

// The number of rows of one page of a stream: a page that was read quickly is followed by a larger
// one.
const (
	fewestRows = 500
	firstRows  = 1000
	mostRows   = 10_000
)

// Search implements ports.Searches. Each condition is a stream of IDs in the order of the search,
// which is read in pages; the search continues after the last ID to which all of them are known.
func (r *searches) Search(ctx context.Context, search ports.ExecutionSearch) (ports.Found, error) {
	if search.Filter.Limit <= 0 {
		search.Filter.Limit = defaultPageSize
	}
	w := newWalk(r.store, search)
	streams, err := (&searchStreams{store: r.store, search: search, walk: w}).all(ctx)
	if err != nil {
		return ports.Found{}, fmt.Errorf("search executions: %w", err)
	}
	found, err := w.run(ctx, streams, search.Filter.Limit)
	if err == nil && found.Reached != 0 {
		found.ReachedAt, err = r.createdAbout(ctx, found.Reached, w.up)
	}
	if err != nil {
		return ports.Found{}, fmt.Errorf("search executions: %w", err)
	}
	return found, nil
}

// createdAbout returns the time of the execution with this ID, or of the nearest that was searched.
func (r *searches) createdAbout(ctx context.Context, id core.JobExecutionID, up bool) (time.Time, error) {
	where := "id >= ? ORDER BY id"
	if up {
		where = "id <= ? ORDER BY id DESC"
	}
	var rows []createdAt
	err := r.store.scan(ctx, &rows, "SELECT id, created_at FROM {job_execution} WHERE "+where+" LIMIT 1", id)
	if err != nil || len(rows) == 0 {
		return time.Time{}, err
	}
	return rows[0].CreatedAt.Time, nil
}

// ParameterNames implements ports.Searches: one statement, which reads one entry of an index for each name.
func (r *searches) ParameterNames(ctx context.Context, limit int) ([]string, error) {
	var rows []struct{ Name string }
	err := r.store.scan(ctx, &rows, `WITH RECURSIVE seen(name) AS (
			SELECT MIN(p.name) FROM {job_execution_param} p
			UNION ALL SELECT (SELECT MIN(p.name) FROM {job_execution_param} p WHERE p.name > seen.name) FROM seen WHERE seen.name IS NOT NULL)
		SELECT name FROM seen WHERE name IS NOT NULL LIMIT ?`, limit)
	if err != nil {
		return nil, fmt.Errorf("list the names of parameters: %w", err)
	}
	names := make([]string, len(rows))
	for i, row := range rows {
		names[i] = row.Name
	}
	return names, nil
}

// walk is the order and the state of a search.
type walk struct {
	store *store
	up    bool // from small IDs to large ones
	// from and to are the first and the last ID to search.
	from, to core.JobExecutionID
	rows     int // of a page
	budget   time.Duration
	until    time.Time
}

func newWalk(s *store, search ports.ExecutionSearch) *walk {
	w := &walk{store: s, up: search.After > 0, rows: firstRows, budget: search.Budget, until: time.Now().Add(search.Budget)}
	w.from, w.to = math.MaxInt64, 1
	if search.Filter.Before > 0 {
		w.from = search.Filter.Before - 1
	}
	if w.up {
		w.from, w.to = search.After+1, math.MaxInt64
	}
	return w
}

// run reads pages until limit IDs and one more are found, the budget is spent or all is searched.
func (w *walk) run(ctx context.Context, all allOf, limit int) (found ports.Found, err error) {
	for !w.before(w.to, w.from) {
		begun := time.Now()
		ids, through, err := all.read(ctx, w, w.from, w.to)
		if err != nil {
			return ports.Found{}, err
		}
		found.IDs = append(found.IDs, ids...)
		if len(found.IDs) > limit {
			found.IDs = found.IDs[:limit]
			found.Reached = found.IDs[limit-1]
			return found, nil
		}
		if through == w.to {
			return found, nil
		}
		took := time.Since(begun)
		if w.from = w.after(through, 1); w.isSpent(took) {
			found.Reached = through
			return found, nil
		}
		w.adapt(took)
	}
	return found, nil
}

// adapt changes the size of pages by the time that one took.
func (w *walk) adapt(took time.Duration) {
	switch {
	case took < w.budget/8:
		w.rows = min(2*w.rows, mostRows)
	case took > w.budget/2:
		w.rows = max(w.rows/2, fewestRows)
	}
}

// isSpent reports whether the budget does not suffice for work that takes as long.
func (w *walk) isSpent(took time.Duration) bool { return !time.Now().Add(took).Before(w.until) }

// before reports whether the search meets a before b.
func (w *walk) before(a, b core.JobExecutionID) bool { return w.compare(a, b) < 0 }

func (w *walk) compare(a, b core.JobExecutionID) int {
	if w.up {
		return cmp.Compare(a, b)
	}
	return cmp.Compare(b, a)
}

// after is the nth ID after id, or before it if n is negative.
func (w *walk) after(id core.JobExecutionID, n int64) core.JobExecutionID {
	if w.up {
		return id + core.JobExecutionID(n)
	}
	return id - core.JobExecutionID(n)
}

// sort puts IDs in the order of the search, each once.
func (w *walk) sort(ids []core.JobExecutionID) []core.JobExecutionID {
	slices.SortFunc(ids, w.compare)
	return slices.Compact(ids)
}

// cut keeps the IDs up to the last one.
func (w *walk) cut(ids []core.JobExecutionID, last core.JobExecutionID) []core.JobExecutionID {
	return slices.DeleteFunc(ids, func(id core.JobExecutionID) bool { return w.before(last, id) })
}

// both returns the IDs that are also in the second list; both lists are in the order of the search.
func (w *walk) both(ids, found []core.JobExecutionID) []core.JobExecutionID {
	return slices.DeleteFunc(ids, func(id core.JobExecutionID) bool {
		_, is := slices.BinarySearchFunc(found, id, w.compare)
		return !is
	})
}

// among returns the IDs with a row that fulfils the conditions.
func (w *walk) among(ctx context.Context, table, id string, where *conditions, ids []core.JobExecutionID) (kept []core.JobExecutionID, err error) {
	text := "SELECT x." + id + " FROM " + table + " x WHERE x." + id + " {among}"
	if len(where.texts) > 0 {
		text += " AND " + where.text()
	}
	err = w.store.scan(ctx, &kept, text, append([]any{listed(ids)}, where.args...)...)
	return w.sort(kept), err
}

// searchOrder has the words of SQL for the order of the search.
type searchOrder struct{ direction, reverse, first, next string }

func (w *walk) order() searchOrder {
	if w.up {
		return searchOrder{"", " DESC", "MIN", ">"}
	}
	return searchOrder{" DESC", "", "MAX", "<"}
}
