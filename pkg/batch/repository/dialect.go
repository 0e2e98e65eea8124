package repository

import (
	"context"
	"database/sql/driver"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// now is the database's clock (rule L6): the present moment, not the beginning
// of the transaction.
func now(d tx.Dialect) string {
	if d == tx.Postgres {
		return "clock_timestamp()"
	}
	return "CAST(round(unixepoch('subsec') * 1000000) AS INTEGER)"
}

// later is the database's clock plus a bind variable in microseconds.
func later(d tx.Dialect) string {
	if d == tx.Postgres {
		return "clock_timestamp() + CAST(? AS bigint) * interval '1 microsecond'"
	}
	return now(d) + " + ?"
}

// instant is a point in time as a column: timestamptz on PostgreSQL, INTEGER
// microseconds since 1970 on SQLite. Zero is NULL. To be written it is a moment
// of the database's clock (clock), never of the host's.
type instant struct {
	time.Time
	fromClock bool
	plus      time.Duration
}

// clock is the moment, plus d, at which the database writes it.
func clock(d time.Duration) instant { return instant{fromClock: true, plus: d} }

// GormDataType tells gorm that the type is a column, not a relation.
func (instant) GormDataType() string { return "instant" }

// GormValue writes it in the form of the dialect.
func (i instant) GormValue(_ context.Context, db *gorm.DB) clause.Expr {
	d := tx.Dialect(db.Name())
	switch {
	case i.fromClock && i.plus == 0:
		return clause.Expr{SQL: now(d)}
	case i.fromClock:
		return clause.Expr{SQL: later(d), Vars: []any{i.plus.Microseconds()}}
	case i.IsZero():
		return clause.Expr{SQL: "NULL"}
	case d == tx.Postgres:
		return clause.Expr{SQL: "?", Vars: []any{i.Time}}
	}
	return clause.Expr{SQL: "?", Vars: []any{i.UnixMicro()}}
}

// Value is what a driver gets where gorm is not between; both dialects' forms
// are not known here, so only NULL has one.
func (i instant) Value() (driver.Value, error) {
	if i.IsZero() && !i.fromClock {
		return nil, nil
	}
	return nil, fmt.Errorf("an instant is written through gorm, which knows the dialect")
}

// Scan reads either form.
func (i *instant) Scan(value any) error {
	switch v := value.(type) {
	case nil:
		*i = instant{}
	case time.Time:
		*i = instant{Time: v.UTC()}
	case int64:
		*i = instant{Time: time.UnixMicro(v).UTC()}
	default:
		return fmt.Errorf("a %T is no point in time", value)
	}
	return nil
}
