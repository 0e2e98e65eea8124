package repository

import (
	"context"
	"reflect"
	"strings"

	"gorm.io/gorm"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// atOnce is one statement of several writes: each finds the rows that earlier ones return by their names. It needs
// no BEGIN and COMMIT. All parts see the tables as they were before it. Only PostgreSQL has such statements.
type atOnce struct {
	store *store
	parts []string
	args  []any
}

func (s *store) hasAtOnce() bool { return s.db.Dialect() == tx.Postgres }

// alone reports whether a statement without BEGIN is a transaction.
func (s *store) alone(ctx context.Context) bool {
	_, in := tx.From(ctx, s.db.Name())
	return s.hasAtOnce() && !in
}

func (a *atOnce) add(name, text string, args ...any) {
	a.parts = append(a.parts, name+" AS ("+a.store.sql(text)+")")
	a.args = append(a.args, args...)
}

// insert adds the INSERT of a row for each row of from. given are columns by their expressions.
func (a *atOnce) insert(name string, row any, from string, given map[string]string, more string) {
	value := reflect.Indirect(reflect.ValueOf(row))
	table := a.store.schemaOf(row)
	var columns, values []string
	var args []any
	for _, field := range table.Fields {
		text, isGiven := given[field.DBName]
		v, zero := field.ValueOf(context.Background(), value)
		if field.DBName == "" || field.AutoIncrement && zero {
			continue
		}
		if !isGiven {
			text, args = "?", append(args, v)
		}
		columns, values = append(columns, a.store.db.Dialect().Quote(field.DBName)), append(values, text)
	}
	a.add(name, "INSERT INTO "+a.store.db.Dialect().Quote(table.Table)+" ("+strings.Join(columns, ", ")+") SELECT "+strings.Join(values, ", ")+" FROM "+from+more, args...)
}

func (a *atOnce) statement(ctx context.Context, text string) *gorm.DB {
	return a.store.session(ctx).Raw("WITH "+strings.Join(a.parts, ", ")+" "+text, a.args...)
}

// mustRepeat reports whether a statement that was alone did nothing, because it is not READ COMMITTED (attr) or by a
// deadlock: in a transaction it is tried again.
func mustRepeat(err error) bool { return dberr.IsSerialization(err) || dberr.IsDeadlock(err) }
