package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// taskSearch reads tasks back in pages of an index: of the IDs or, for one group, of its ordinals.
type taskSearch struct {
	r         taskQueries
	from      string // and the conditions that bound it
	fromArgs  []any
	key       string
	where     string
	whereArgs []any
	before    int64 // of key; 0 means from the end
}

const fewestSearched = 1_000

// Search implements taskports.TaskQueries.
func (r taskQueries) Search(ctx context.Context, f task.Filter, budget time.Duration) (list []task.Task, next task.ID, err error) {
	if f.Limit <= 0 {
		f.Limit = pageSize
	}
	s, err := r.newSearch(ctx, f)
	if err == nil && s != nil {
		list, next, err = s.run(ctx, f, budget)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("search tasks: %w", err)
	}
	return list, next, r.await(ctx, list)
}

func (s *taskSearch) run(ctx context.Context, f task.Filter, budget time.Duration) (list []task.Task, next task.ID, err error) {
	end := time.Now().Add(budget)
	for rows := fewestSearched; ; rows = min(2*rows, taskports.MostSearched) {
		begun := time.Now()
		ids, last, err := s.page(ctx, rows, f.Limit+1-len(list))
		if err != nil {
			return nil, 0, err
		}
		found, err := s.r.byID(ctx, ids)
		if err != nil {
			return nil, 0, err
		}
		list = append(list, slices.DeleteFunc(found, func(t task.Task) bool { return !hasText(&t, f.Text) })...)
		switch {
		case len(list) > f.Limit:
			return list[:f.Limit], list[f.Limit-1].ID, nil
		case last == 0:
			return list, 0, nil
		case time.Now().Add(2 * time.Since(begun)).After(end):
			return list, last, nil
		}
	}
}

func (r taskQueries) byID(ctx context.Context, ids []task.ID) ([]task.Task, error) {
	var all []taskRow
	for batch := range slices.Chunk(ids, insertBatch) {
		var rows []taskRow
		if err := r.scan(ctx, &rows, "SELECT * FROM {task} WHERE id IN ? ORDER BY id DESC", batch); err != nil {
			return nil, err
		}
		all = append(all, rows...)
	}
	return records(all), nil
}

// newSearch returns nil if no task can be found.
func (r taskQueries) newSearch(ctx context.Context, f task.Filter) (*taskSearch, error) {
	s := &taskSearch{r: r, from: "{task} WHERE 1 = 1", key: "id", before: int64(f.Before)}
	if f.Group != 0 {
		s.from, s.fromArgs, s.key = "{task} WHERE group_id = ?", []any{f.Group}, "ordinal"
		if f.Before != 0 {
			var at []int64
			if err := r.scan(ctx, &at, "SELECT ordinal FROM {task} WHERE id = ? AND group_id = ?", f.Before, f.Group); err != nil || len(at) == 0 {
				return nil, err
			}
			s.before = at[0]
		}
	}
	conditions := []string{"1 = 1"}
	where := func(holds bool, condition string, args ...any) {
		if holds {
			conditions, s.whereArgs = append(conditions, condition), append(s.whereArgs, args...)
		}
	}
	where(f.State != "", "state = ?", f.State)
	where(f.Type != "", "type = ?", f.Type)
	where(!f.Since.IsZero(), "created_at >= ?", gormtx.Instant{Time: f.Since})
	where(!f.Until.IsZero(), "created_at < ?", gormtx.Instant{Time: f.Until})
	if f.Text != "" {
		text, args := r.textIn(f.Text)
		where(true, text, args...)
	}
	s.where = strings.Join(conditions, " AND ")
	if f.Group != 0 {
		return s, nil
	}
	return s.between(ctx, f)
}

// textIn is a condition of all tasks that have a text. Others may have it in the name of a field: hasText excludes them.
func (r taskQueries) textIn(text string) (condition string, args []any) {
	like := gormtx.Like(r.db.Dialect())
	quoted, err := json.Marshal(text)
	if err != nil { // it is UTF-8
		quoted = []byte(`"` + text + `"`)
	}
	var is []string
	for _, of := range [][2]string{{"type", text}, {"last_error", text}, {"spec", string(quoted[1 : len(quoted)-1])}} {
		is, args = append(is, of[0]+" "+like+" ? ESCAPE '!'"), append(args, "%"+strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace(of[1])+"%")
	}
	return "(" + strings.Join(is, " OR ") + ")", args
}

func hasText(t *task.Task, text string) bool {
	return slices.ContainsFunc([]string{t.Spec.Type, t.Spec.Title, t.Spec.Key, t.Spec.IdempotencyKey, t.LastError}, func(s string) bool {
		return strings.Contains(strings.ToLower(s), strings.ToLower(text))
	})
}

// nearTime is how many tasks of about one time may have IDs in another order.
const nearTime = 1_000

// between bounds the search by the IDs of tasks submitted at about the times; nil means that there are none.
func (s *taskSearch) between(ctx context.Context, f task.Filter) (*taskSearch, error) {
	edge := func(of, condition, order string, at time.Time) (int64, error) {
		var ids []int64
		err := s.r.scan(ctx, &ids, "SELECT COALESCE("+of+"(id), 0) FROM (SELECT id FROM {task} WHERE created_at "+condition+" ? ORDER BY created_at"+order+" LIMIT ?) AS near", gormtx.Instant{Time: at}, nearTime)
		if err != nil || len(ids) == 0 {
			return 0, err
		}
		return ids[0], nil
	}
	if !f.Until.IsZero() {
		newest, err := edge("max", "<", " DESC", f.Until)
		if err != nil || newest == 0 {
			return nil, err
		}
		if s.before == 0 || newest < s.before {
			s.before = newest + 1
		}
	}
	if !f.Since.IsZero() {
		oldest, err := edge("min", ">=", "", f.Since)
		if err != nil || oldest == 0 {
			return nil, err
		}
		s.from, s.fromArgs = s.from+" AND id >= ?", append(s.fromArgs, oldest)
	}
	return s, nil
}

// page searches the next rows, and moves on to the last one of them or, if there are more hits than limit, to the last
// hit. last is its ID; 0 means that all was searched.
func (s *taskSearch) page(ctx context.Context, rows, limit int) (ids []task.ID, last task.ID, err error) {
	from, args := s.from, slices.Clone(s.fromArgs)
	if s.before != 0 {
		from, args = from+" AND "+s.key+" < ?", append(args, s.before)
	}
	from += " ORDER BY " + s.key + " DESC LIMIT ?"
	type place struct {
		ID  task.ID
		Key int64
	}
	var hits, edge []place
	columns := "SELECT id, " + s.key + ` AS "key" FROM `
	text := columns + "(SELECT id, ordinal, type, state, spec, last_error, created_at FROM " + from + ") AS page WHERE " + s.where + " ORDER BY " + s.key + " DESC LIMIT ?"
	if err := s.r.scan(ctx, &hits, text, slices.Concat(args, []any{rows}, s.whereArgs, []any{limit})...); err != nil {
		return nil, 0, err
	}
	for _, hit := range hits {
		ids = append(ids, hit.ID)
	}
	if len(hits) == limit {
		edge = hits[limit-1:]
	} else if err := s.r.scan(ctx, &edge, columns+from+" OFFSET ?", append(args, 1, rows-1)...); err != nil || len(edge) == 0 {
		return ids, 0, err
	}
	s.before = edge[0].Key
	return ids, edge[0].ID, nil
}
