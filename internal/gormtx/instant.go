package gormtx

import (
	"context"
	"database/sql/driver"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Now is the database's clock (rule L6): the present moment, not the beginning
// of the transaction.
func Now(d tx.Dialect) string {
	switch d {
	case tx.Postgres:
		return "clock_timestamp()"
	case tx.MySQL:
		return "SYSDATE(6)"
	case tx.SQLite:
	}
	return "CAST(round(unixepoch('subsec') * 1000000) AS INTEGER)"
}

// Later is the database's clock plus a bind variable in microseconds.
func Later(d tx.Dialect) string {
	switch d {
	case tx.Postgres:
		return "clock_timestamp() + CAST(? AS bigint) * interval '1 microsecond'"
	case tx.MySQL:
		return Now(d) + " + INTERVAL ? MICROSECOND"
	case tx.SQLite:
	}
	return Now(d) + " + ?"
}

// Words are the words of the history's statements that have another form in the dialect, in pairs.
func Words(d tx.Dialect) []string {
	words := []string{"{now}", Now(d), "{later}", Later(d)}
	if d != tx.MySQL {
		return words
	}
	return append(words, "AS bigint)", "AS signed)", "AS text)", "AS char)", "AS TEXT)", "AS char)",
		"string_agg(", "group_concat(", ", ',') FROM", " SEPARATOR ',') FROM", ", '')\n", " SEPARATOR '')\n",
		"substr(p.value, 1, 200)", "p.value_start", "substr(x.value, 1, 200)", "x.value_start") // the columns have the indexes
}

// Like is the LIKE that ignores case.
func Like(d tx.Dialect) string {
	switch d {
	case tx.Postgres:
		return "ILIKE"
	case tx.MySQL:
		return "COLLATE utf8mb4_general_ci LIKE"
	case tx.SQLite:
	}
	return "LIKE"
}

// Instant is a column: timestamptz on PostgreSQL, datetime(6) on MySQL, INTEGER microseconds since 1970 on SQLite. Zero
// is NULL. A written value is of the database's clock ([Clock]), never of the host's.
type Instant struct {
	time.Time
	fromClock bool
	plus      time.Duration
}

// Clock is the moment at which the database writes it, plus d.
func Clock(d time.Duration) Instant { return Instant{fromClock: true, plus: d} }

// GormDataType marks the type as a column, not a relation, for gorm.
func (Instant) GormDataType() string { return "instant" }

// GormValue writes it in the form of the dialect.
func (i Instant) GormValue(_ context.Context, db *gorm.DB) clause.Expr {
	d := tx.Dialect(db.Name())
	switch {
	case i.fromClock && i.plus == 0:
		return clause.Expr{SQL: Now(d)}
	case i.fromClock:
		return clause.Expr{SQL: Later(d), Vars: []any{i.plus.Microseconds()}}
	case i.IsZero():
		return clause.Expr{SQL: "NULL"}
	case d != tx.SQLite:
		return clause.Expr{SQL: "?", Vars: []any{i.Time}}
	}
	return clause.Expr{SQL: "?", Vars: []any{i.UnixMicro()}}
}

// Value is only for NULL: other forms depend on the dialect.
func (i Instant) Value() (driver.Value, error) {
	if i.IsZero() && !i.fromClock {
		return nil, nil
	}
	return nil, fmt.Errorf("an instant can only be written through gorm, which knows the dialect")
}

// Scan reads either form.
func (i *Instant) Scan(value any) error {
	switch v := value.(type) {
	case nil:
		*i = Instant{}
	case time.Time:
		*i = Instant{Time: v.UTC()}
	case int64:
		*i = Instant{Time: time.UnixMicro(v).UTC()}
	default:
		return fmt.Errorf("a %T is not a point in time", value)
	}
	return nil
}
