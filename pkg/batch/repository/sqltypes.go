package repository

import (
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
	if d == tx.Postgres {
		return "= ANY(ARRAY(SELECT unnest(CAST(? AS bigint[]))))"
	}
	return "IN (SELECT value FROM json_each(?))"
}

// GormValue writes the IDs in the dialect's form: {1,2}, or [1,2].
func (l idList) GormValue(_ context.Context, db *gorm.DB) clause.Expr {
	text := "[" + l.numbers + "]"
	if tx.Dialect(db.Name()) == tx.Postgres {
		text = "{" + l.numbers + "}"
	}
	return clause.Expr{SQL: "?", Vars: []any{text}}
}
