package batchtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Exec runs a statement on the default database, outside any transaction.
func (e *Env) Exec(statement string, args ...any) { e.t.Helper(); e.ExecOn("", statement, args...) }

// ExecOn is Exec on a named database.
func (e *Env) ExecOn(database, statement string, args ...any) {
	e.t.Helper()
	if _, err := e.Database(database).Conn().ExecContext(e.t.Context(), statement, args...); err != nil {
		e.t.Fatalf("batchtest: %s: %v", statement, err)
	}
}

// Rows returns the rows of a query on the default database as texts, values separated by "|": NULL for
// null, numbers in canonical text (rule D7), times in UTC as RFC 3339.
func (e *Env) Rows(query string, args ...any) []string {
	e.t.Helper()
	return e.RowsOn("", query, args...)
}

// RowsOn is Rows on a named database.
func (e *Env) RowsOn(database, query string, args ...any) []string {
	e.t.Helper()
	rows, err := queryText(e.t.Context(), e.Database(database), query, args...)
	if err != nil {
		e.t.Fatalf("batchtest: %s: %v", query, err)
	}
	return rows
}

// HasRows checks the rows of a query on the default database, see [Env.Rows].
func (e *Env) HasRows(query string, want ...string) {
	e.t.Helper()
	e.HasRowsOn("", query, want...)
}

// HasRowsOn is HasRows on a named database.
func (e *Env) HasRowsOn(database, query string, want ...string) {
	e.t.Helper()
	if got := e.RowsOn(database, query); !slices.Equal(got, want) {
		e.t.Errorf("%s:\n%s", query, difference(want, got))
	}
}

func queryText(ctx context.Context, db tx.Database, query string, args ...any) (list []string, err error) {
	rows, err := db.Conn().QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() {
		if cerr := rows.Close(); err == nil {
			err = cerr
		}
	}()
	types, err := rows.ColumnTypes()
	if err != nil {
		return nil, err
	}
	values := make([]any, len(types))
	into := make([]any, len(types))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		if err := sqlvalue.Scanned(db.Dialect(), types, values); err != nil {
			return nil, err
		}
		texts := make([]string, len(values))
		for i, v := range values {
			texts[i] = valueText(v)
		}
		list = append(list, strings.Join(texts, "|"))
	}
	return list, rows.Err()
}

func valueText(v any) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case []byte:
		return string(v)
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	case float64:
		return row.FloatText(v)
	}
	return fmt.Sprint(v)
}

const shown = 20

func difference(want, got []string) string {
	count := map[string]int{}
	for _, l := range want {
		count[l]++
	}
	var lines []string
	for _, l := range got {
		if count[l] == 0 {
			lines = append(lines, "  too much: "+l)
			continue
		}
		count[l]--
	}
	for _, l := range want {
		if count[l] > 0 {
			count[l]--
			lines = append(lines, "  missing:  "+l)
		}
	}
	switch {
	case len(lines) == 0:
		return fmt.Sprintf("  in another order: got %q, want %q", got, want)
	case len(lines) > shown:
		lines = append(lines[:shown], fmt.Sprintf("  and %d more", len(lines)-shown))
	}
	return strings.Join(lines, "\n")
}
