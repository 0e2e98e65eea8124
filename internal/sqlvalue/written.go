package sqlvalue

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Querier is a connection.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// AsWritten returns a SELECT for SQLite whose columns of times return the stored texts, and their
// declared types: the driver would make them UTC, with or without an offset (rule D5). Any other
// statement is unchanged.
func AsWritten(ctx context.Context, conn Querier, statement string, args []any) (text string, times []string) {
	source := " from (\n" + strings.TrimRight(statement, "; \t\r\n") + "\n) q"
	rows, err := conn.QueryContext(ctx, "select *"+source+" limit 0", args...)
	if err != nil {
		return statement, nil
	}
	types, err := rows.ColumnTypes()
	if cerr := rows.Close(); err != nil || cerr != nil || rows.Err() != nil {
		return statement, nil
	}
	columns, found := make([]string, len(types)), false
	times = make([]string, len(types))
	for i, t := range types {
		name := `"` + strings.ReplaceAll(t.Name(), `"`, `""`) + `"`
		columns[i] = "q." + name
		if IsTimeColumn(t) {
			columns[i], times[i], found = "+q."+name+" as "+name, t.DatabaseTypeName(), true // an expression has no declared type
		}
	}
	if !found {
		return statement, nil
	}
	return "select " + strings.Join(columns, ", ") + source, times
}

// HasZone reports fields with local times of a zone: see [AsWritten].
func HasZone(s *row.Schema) bool {
	for i := range s.Len() {
		if s.Field(i).Zone != nil {
			return true
		}
	}
	return false
}

// IsTimeColumn reports a SQLite column of texts that the driver makes UTC times.
func IsTimeColumn(t *sql.ColumnType) bool {
	switch t.DatabaseTypeName() {
	case "DATE", "DATETIME", "TIMESTAMP":
		return true
	}
	return false
}

var writtenForms = [...]string{
	time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999 -0700 MST",
	"2006-01-02 15:04:05.999999999", "2006-01-02T15:04:05.999999999", "2006-01-02 15:04", "2006-01-02T15:04",
}

const withOffset = 3 // of writtenForms

// WrittenTime reads a time; without an offset in the zone (rule D5), a day as midnight in UTC, cut
// to microseconds. False: something else. A nil zone is UTC.
func WrittenTime(text string, zone *time.Location) (t time.Time, isDay, ok bool) {
	if d, err := row.ParseDate(text); err == nil {
		return d.Time(), true, true
	}
	for i, form := range writtenForms {
		t, err := time.Parse(form, text)
		if err == nil && i >= withOffset {
			t, err = row.LocalTime(t, zone)
		}
		if err == nil {
			return t.UTC().Truncate(time.Microsecond), false, true
		}
	}
	return time.Time{}, false, false
}

// FitWritten is [Fit] of a value of a column of times, see [AsWritten].
func FitWritten(f *row.Field, x any) (row.Value, error) {
	text, is := x.(string)
	if !is {
		return Fit(f, x)
	}
	t, isDay, ok := WrittenTime(text, f.Zone)
	switch {
	case !ok:
		return Fit(f, x)
	case isDay && f.Kind == row.Timestamp:
		t = row.DateOf(t).Begins(f.Zone)
	}
	return Fit(f, t)
}
