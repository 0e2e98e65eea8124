package jobtest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// clock reads the times of a column (rule D5).
type clock struct {
	isTime bool
	zone   *time.Location // nil is UTC
}

// A `timestamp` of PostgreSQL keeps local times as they are (rule D8a).
func clockOf(dialect tx.Dialect, declared string, zone *time.Location) clock {
	switch {
	case declared == "TIMESTAMPTZ", dialect == tx.SQLite && (declared == "TIMESTAMP" || declared == "DATETIME"):
		return clock{isTime: true, zone: zone}
	case declared == "TIMESTAMP":
		return clock{isTime: true}
	}
	return clock{}
}

func (c clock) read(text string) (t time.Time, ok bool, err error) {
	if !c.isTime {
		return t, false, nil
	}
	t, isDay, ok := sqlvalue.WrittenTime(text, c.zone)
	if isDay {
		t = row.DateOf(t).Begins(c.zone)
	}
	if _, _, inUTC := sqlvalue.WrittenTime(text, nil); inUTC && !ok {
		return t, false, fmt.Errorf("%s does not exist in %s: the clock skips it", text, c.zone)
	}
	return t, ok, nil
}

func (c clock) text(text string) string {
	if t, ok, err := c.read(text); ok && err == nil {
		return t.Format(row.TimestampLayout)
	}
	return text
}

func (c clock) instant(text string) (string, error) {
	t, ok, err := c.read(text)
	if !ok || err != nil || c.zone == nil {
		return text, err
	}
	return t.Format(row.TimestampLayout), nil
}

func clocksOf(ctx context.Context, db tx.Database, table string, zone *time.Location) (clocks map[string]clock, err error) {
	if zone == nil || db.Dialect() != tx.Postgres {
		return nil, nil
	}
	rows, err := db.Conn().QueryContext(ctx, "select * from "+table+" limit 0")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	types, err := rows.ColumnTypes()
	clocks = map[string]clock{}
	for _, t := range types {
		clocks[t.Name()] = clockOf(tx.Postgres, t.DatabaseTypeName(), zone)
	}
	return clocks, errors.Join(err, rows.Err())
}
