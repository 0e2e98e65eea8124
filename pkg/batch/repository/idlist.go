package repository

import (
	"context"
	"strconv"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// idList is one bind variable for [among]; IN would need a prepared text per number.
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

// The subquery hides the number from PostgreSQL, which would plan again for few IDs.
func among(d tx.Dialect) string {
	if d == tx.Postgres {
		return "= ANY(ARRAY(SELECT unnest(CAST(? AS bigint[]))))"
	}
	return "IN (SELECT value FROM json_each(?))"
}

// GormValue writes {1,2} or [1,2].
func (l idList) GormValue(_ context.Context, db *gorm.DB) clause.Expr {
	text := "[" + l.numbers + "]"
	if tx.Dialect(db.Name()) == tx.Postgres {
		text = "{" + l.numbers + "}"
	}
	return clause.Expr{SQL: "?", Vars: []any{text}}
}
