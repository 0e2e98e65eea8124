package gormtx

import (
	gormmysql "gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"
	"gorm.io/gorm/clause"
)

// mysqlDialector writes the statements of the history.
type mysqlDialector struct{ *gormmysql.Dialector }

func (d mysqlDialector) Initialize(db *gorm.DB) error {
	db.ConnPool = d.Conn
	callbacks.RegisterDefaultCallbacks(db, &callbacks.Config{
		CreateClauses: []string{"INSERT", "VALUES", "ON CONFLICT", "RETURNING"},
		UpdateClauses: []string{"UPDATE", "SET", "WHERE", "RETURNING"},
		DeleteClauses: []string{"DELETE", "FROM", "WHERE"},
	})
	db.ClauseBuilders["FOR"] = mysqlLock
	return nil
}

func mysqlLock(c clause.Clause, b clause.Builder) {
	l, ok := c.Expression.(clause.Locking)
	switch {
	case !ok:
		c.Build(b)
	case l.Strength == clause.LockingStrengthShare:
		write(b, "LOCK IN SHARE MODE")
	default:
		write(b, "FOR UPDATE")
	}
}
