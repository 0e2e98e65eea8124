package repository

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type instant = gormtx.Instant

// clock is the database's time at the write, plus d.
func clock(d time.Duration) instant { return gormtx.Clock(d) }

// idList passes any number of IDs as one bind variable, for [among]. A connection then prepares one
// text; IN would need one for each number of IDs.
type idList struct {
	numbers string // separated by commas
}

func listed[T ~int64](ids []T) idList {
	var text []byte
	for i, id := range ids {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, int64(id), 10)
	}
	return idList{numbers: string(text)}
}

// among is the condition that the preceding column is in an idList. The subquery hides the number
// of IDs from PostgreSQL: with few IDs it would plan the statement again for each, which takes
// longer than to run it.
func among(d tx.Dialect) string {
	switch d {
	case tx.Postgres:
		return "= ANY(ARRAY(SELECT unnest(CAST(? AS bigint[]))))"
	case tx.MySQL:
		return "IN (?)"
	case tx.SQLite:
	}
	return "IN (SELECT value FROM json_each(?))"
}

// find is the function that finds a text in another.
func (s *store) find() string {
	if s.db.Dialect() == tx.Postgres {
		return "strpos"
	}
	return "instr"
}

// texts is a relation of the texts in a JSON array, a bind variable.
func (s *store) texts(column string) string {
	switch s.db.Dialect() {
	case tx.Postgres:
		return "(SELECT json_array_elements_text(CAST(? AS json)) AS " + column + ")"
	case tx.MySQL:
		return "(SELECT " + column + " FROM json_table(?, '$[*]' COLUMNS (" + column + " longtext PATH '$')) AS list)"
	case tx.SQLite:
	}
	return "(SELECT value AS " + column + " FROM json_each(?))"
}

// GormValue writes the IDs in the dialect's form: {1,2}, or [1,2], or in the text, where MySQL finds them by an index.
func (l idList) GormValue(_ context.Context, db *gorm.DB) clause.Expr {
	if tx.Dialect(db.Name()) == tx.MySQL {
		return clause.Expr{SQL: cmp.Or(l.numbers, "NULL")}
	}
	text := "[" + l.numbers + "]"
	if tx.Dialect(db.Name()) == tx.Postgres {
		text = "{" + l.numbers + "}"
	}
	return clause.Expr{SQL: "?", Vars: []any{text}}
}
