package compare

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/internal/sqlerr"
	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/internal/txwork"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type side struct {
	explain func(error) error
	dialect tx.Dialect
	cancel  context.CancelFunc
	rows    *sql.Rows
	types   []*sql.ColumnType
	names   []string
	keys    []int
	cells   []any
	targets []any
	// for local times, nil means UTC
	zone  *time.Location
	times []string
	// the current and the previous row, or nil
	row, before []value
}

func openSide(ctx context.Context, db tx.Database, from sideConfig, key []string, zone *time.Location) (*side, error) {
	txwork.Authored(ctx)
	statement := from.SQL
	if from.Table != "" {
		statement = registry.SQL{Parts: []string{"select * from " + db.Dialect().Quote(from.Table)}}
	}
	text, args := statement.Render(db.Dialect().Placeholder)
	args, err := sqlvalue.Args(args, sqlvalue.Bind(db.Dialect()))
	if err != nil {
		return nil, err
	}
	if db.Dialect() == tx.Postgres { // a statement prepared before a migration would be wrong
		args = append([]any{pgx.QueryExecModeDescribeExec}, args...)
	}
	source := "select * from (\n" + strings.TrimRight(text, "; \t\r\n") + "\n) q"
	s := &side{zone: zone, dialect: db.Dialect(), cancel: func() {}, explain: func(err error) error { return sqlerr.In(from.SQL, db.Dialect(), source, err) }}
	if len(key) > 0 {
		// The order of a key depends on its column's type.
		if err := s.open(ctx, db, source+" limit 0", args); err != nil {
			return nil, err
		}
		order, err := s.findKey(db.Dialect(), key)
		if err := errors.Join(err, s.rows.Close()); err != nil {
			return nil, err
		}
		source += " order by " + order
	}
	if zone != nil && db.Dialect() == tx.SQLite {
		source, s.times = sqlvalue.AsWritten(ctx, db.Conn(), source, args)
	}
	if db.Dialect() == tx.MySQL { // its driver would read the rows that are left
		ctx, s.cancel = context.WithCancel(ctx)
	}
	return s, s.open(ctx, db, source, args)
}

func (s *side) open(ctx context.Context, db tx.Database, text string, args []any) (err error) {
	if s.rows, err = db.Conn().QueryContext(ctx, text, args...); err != nil { //nolint:sqlclosecheck,rowserrcheck // close and next do
		return s.explain(err)
	}
	if s.types, err = s.rows.ColumnTypes(); err != nil {
		return errors.Join(err, s.rows.Close())
	}
	s.names = make([]string, len(s.types))
	s.cells, s.targets = make([]any, len(s.types)), make([]any, len(s.types))
	for i, t := range s.types {
		s.names[i], s.targets[i] = t.Name(), &s.cells[i]
	}
	return nil
}

// The database must order the columns as order does.
func (s *side) findKey(dialect tx.Dialect, key []string) (string, error) {
	var errs []error
	columns := make([]string, len(key))
	for i, name := range key {
		at := s.find(name)
		if at < 0 {
			errs = append(errs, fmt.Errorf("there is no column %s of the key%s", name, nearest.Hint(name, s.names)))
			continue
		}
		s.keys = append(s.keys, at)
		columns[i] = `q."` + strings.ReplaceAll(s.names[at], `"`, `""`) + `"`
		switch {
		case dialect == tx.SQLite:
			columns[i] += " collate binary"
		case dialect == tx.MySQL && !isOrderedByMySQL(s.types[at].DatabaseTypeName()):
			columns[i] = "cast(cast(" + columns[i] + " as char) as binary)"
		case dialect == tx.MySQL:
		case !isOrdered(s.types[at].DatabaseTypeName()):
			columns[i] = "cast(" + columns[i] + ` as text) collate "C"`
		}
	}
	return strings.Join(columns, ", "), errors.Join(errs...)
}

// isOrdered reports whether PostgreSQL orders the type as order does.
func isOrdered(typ string) bool {
	return slices.Contains([]string{"INT2", "INT4", "INT8", "FLOAT4", "FLOAT8", "NUMERIC", "BOOL", "DATE", "TIMESTAMP", "TIMESTAMPTZ"}, typ)
}

func isOrderedByMySQL(typ string) bool {
	return slices.Contains([]string{"TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT", "YEAR", "DOUBLE", "DECIMAL", "DATE", "DATETIME", "TIMESTAMP",
		"BINARY", "VARBINARY", "BLOB"}, strings.TrimPrefix(typ, "UNSIGNED "))
}

func (s *side) find(name string) int {
	return slices.IndexFunc(s.names, func(n string) bool { return strings.EqualFold(n, name) })
}

// At the end row is nil.
func (s *side) next() error {
	s.before, s.row = s.row, nil
	if !s.rows.Next() {
		return s.explain(s.rows.Err())
	}
	if err := s.rows.Scan(s.targets...); err != nil {
		return err
	}
	if err := sqlvalue.Scanned(s.dialect, s.types, s.cells); err != nil {
		return err
	}
	s.row = make([]value, len(s.cells))
	for i, x := range s.cells {
		typ := s.types[i].DatabaseTypeName()
		if padded, is := x.(string); is && typ == "BPCHAR" {
			x = strings.TrimRight(padded, " ")
		}
		v := valueOf(x, s.isNumber(typ))
		if s.times != nil && s.times[i] != "" {
			v = v.asTime(s.zone)
		}
		v.day, v.bare = v.day || v.kind == instant && typ == "DATE" && s.dialect != tx.SQLite, v.kind == instant && typ == "TIMESTAMP" && s.dialect == tx.Postgres
		s.row[i] = v
	}
	return s.checkKey()
}

func (s *side) isNumber(typ string) bool {
	return typ == "NUMERIC" || s.dialect == tx.MySQL && (typ == "DECIMAL" || typ == "UNSIGNED BIGINT")
}

// checkKey refuses a key that a merge would misread.
func (s *side) checkKey() error {
	for i, at := range s.keys {
		if s.row[at].kind == null {
			return fmt.Errorf("the key %s is null in a row", s.names[s.keys[i]])
		}
	}
	if s.before == nil || len(s.keys) == 0 {
		return nil
	}
	c, err := orderOf(s.names, s.before, s.keys, s.row, s.keys, s.zone)
	switch {
	case err != nil:
		return err
	case c == 0:
		return fmt.Errorf("the key is not unique: %s appears twice", s.keyText())
	case c > 0:
		return fmt.Errorf("the rows do not come in the order of the key, at %s: cast the key to text in a SELECT", s.keyText())
	}
	return nil
}

func orderOf(names []string, a []value, of []int, b []value, in []int, zone *time.Location) (int, error) {
	for i := range of {
		x, y := begun(a[of[i]], b[in[i]], zone)
		if x.kind != y.kind {
			return 0, fmt.Errorf("key %s: %s is a %s, and %s a %s, which have no common order: cast one of them in a SELECT", names[of[i]], x, x.kind, y, y.kind)
		}
		if c := order(x, y); c != 0 {
			return c, nil
		}
	}
	return 0, nil
}

func (s *side) keyText() string {
	parts := make([]string, len(s.keys))
	for i, at := range s.keys {
		parts[i] = s.names[at] + " " + s.row[at].String()
	}
	return strings.Join(parts, ", ")
}
