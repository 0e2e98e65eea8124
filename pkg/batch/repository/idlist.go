package repository

import (
	"context"
	"strconv"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// idList is any number of ids as one bind variable, for [among]. A connection prepares one text
// then, where IN would have a text for each number of them.
type idList struct {
	numbers string // with commas between
}

// listed returns the ids as one bind variable.
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

// among is the condition that what stands before it is in an idList. PostgreSQL is not shown how many
// ids there are: it would plan a statement anew for each of few ids, which takes longer than to run it.
func among(d tx.Dialect) string {
	if d == tx.Postgres {
		return "= ANY(ARRAY(SELECT unnest(CAST(? AS bigint[]))))"
	}
	return "IN (SELECT value FROM json_each(?))"
}

// GormValue writes the ids as a text that the dialect reads: {1,2}, or [1,2].
func (l idList) GormValue(_ context.Context, db *gorm.DB) clause.Expr {
	text := "[" + l.numbers + "]"
	if tx.Dialect(db.Name()) == tx.Postgres {
		text = "{" + l.numbers + "}"
	}
	return clause.Expr{SQL: "?", Vars: []any{text}}
}
