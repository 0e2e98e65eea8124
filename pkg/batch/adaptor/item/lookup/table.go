package lookup

import (
	"container/list"
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/internal/txwork"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// table keeps the most recently used answers.
type table struct {
	db        tx.Database
	plan      *plan
	statement string
	// places of texts of times, by column (see sqlvalue.AsWritten)
	written map[int]int
	fields  []row.Field

	mu    sync.Mutex
	known map[string]*list.Element
	used  list.List // of *answer, those used last in front
	bytes int64
}

// values is nil if there is no row
type answer struct {
	key    string
	values []row.Value
	size   int64
}

func newTable(db tx.Database, name string, plan *plan) *table {
	t := &table{db: db, plan: plan, known: map[string]*list.Element{}}
	var columns, conditions []string
	for _, of := range plan.take {
		f := *plan.other.Field(of.at)
		columns, t.fields = append(columns, db.Dialect().Quote(f.Source())), append(t.fields, f)
	}
	if len(columns) == 0 {
		columns = []string{"1"}
	}
	if db.Dialect() == tx.SQLite {
		t.written = map[int]int{}
		for i := range t.fields {
			if t.fields[i].Zone != nil {
				t.written[i], columns = len(columns), append(columns, "+"+columns[i])
			}
		}
	}
	for i, k := range plan.key {
		conditions = append(conditions, condition(db.Dialect(), plan.other.Field(k.at), i+1))
	}
	t.statement = "select " + strings.Join(columns, ", ") + " from " + db.Dialect().Quote(name) + " where " + strings.Join(conditions, " and ") + " limit 2"
	return t
}

// MySQL compares texts by a collation, and a decimal with a text as floats.
func condition(d tx.Dialect, f *row.Field, n int) string {
	column, variable := d.Quote(f.Source()), d.Placeholder(n)
	switch {
	case d == tx.MySQL && f.Kind == row.String:
		return column + " = " + variable + " and cast(cast(" + column + " as char) as binary) = " + variable
	case d == tx.MySQL && f.Kind == row.DecimalKind:
		variable = "cast(" + variable + " as decimal(65, 30))"
	}
	return column + " = " + variable
}

func (t *table) find(ctx context.Context, of []byte, key []row.Value) ([]row.Value, error) {
	if a := t.remembered(of); a != nil {
		return a.values, nil
	}
	values, err := t.query(ctx, key)
	if err != nil {
		return nil, err
	}
	t.remember(&answer{key: string(of), values: values, size: sizeOf(of, values)})
	return values, nil
}

func (t *table) remembered(of []byte) *answer {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.known[string(of)]
	if e == nil {
		return nil
	}
	t.used.MoveToFront(e)
	return e.Value.(*answer) //nolint:forcetypeassert // a list of them
}

func (t *table) remember(a *answer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known[a.key] != nil || a.size > t.plan.bound { // another goroutine asked as well
		return
	}
	t.known[a.key], t.bytes = t.used.PushFront(a), t.bytes+a.size
	for t.bytes > t.plan.bound {
		oldest := t.used.Remove(t.used.Back()).(*answer) //nolint:forcetypeassert // a list of them
		delete(t.known, oldest.key)
		t.bytes -= oldest.size
	}
}

func (t *table) query(ctx context.Context, key []row.Value) (values []row.Value, err error) {
	args := make([]any, len(key))
	for i, v := range key {
		if err := sqlvalue.Check(v); err != nil {
			return nil, nil //nolint:nilerr // no database holds such a key
		}
		args[i] = t.bind(v)
	}
	txwork.Authored(ctx)
	result, err := tx.ConnOf(ctx, t.db).QueryContext(ctx, t.statement, args...)
	if err != nil {
		return nil, fmt.Errorf("query the table: %w", err)
	}
	defer func() {
		if failure := result.Close(); err == nil && failure != nil {
			err = fmt.Errorf("query the table: %w", failure)
		}
	}()
	types, err := result.ColumnTypes()
	if err != nil {
		return nil, fmt.Errorf("query the table: %w", err)
	}
	cells, places := make([]any, len(types)), make([]any, len(types))
	for i := range cells {
		places[i] = &cells[i]
	}
	for n := 0; result.Next(); n++ {
		if n == 1 {
			return nil, errTwice
		}
		if err := result.Scan(places...); err != nil {
			return nil, fmt.Errorf("query the table: %w", err)
		}
		if err := sqlvalue.Scanned(t.db.Dialect(), types, cells); err != nil {
			return nil, err
		}
		values = make([]row.Value, len(t.fields))
		for i := range t.fields {
			if text, ok := cells[i].([]byte); ok && t.db.Dialect() == tx.Postgres { // types that the driver passes as text
				cells[i] = string(text)
			}
			fit, x := sqlvalue.Fit, cells[i]
			if at, is := t.written[i]; is && sqlvalue.IsTimeColumn(types[i]) {
				fit, x = sqlvalue.FitWritten, cells[at]
			}
			if values[i], err = fit(&t.fields[i], x); err != nil {
				return nil, err
			}
		}
	}
	if err := result.Err(); err != nil {
		return nil, fmt.Errorf("query the table: %w", err)
	}
	return values, nil
}

func (t *table) bind(v row.Value) any {
	return sqlvalue.Bind(t.db.Dialect())(v)
}
