// Package gormtx is gorm on the databases and transactions of tx. gorm keeps no
// connection, transaction or prepared statement: all three belong to tx, and a pool may
// be swapped at any moment (rule T7).
//
// On SQLite gorm's Migrator fails with [ErrNoMigrator].
//
// It imports tx and internal/dberr, and no driver.
package gormtx

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	gormmysql "gorm.io/driver/mysql"
	gormpostgres "gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/gorm/schema"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Options are the deviations of a database's sessions from gorm's defaults.
type Options struct {
	// TranslateError turns the database's errors into gorm's. On PostgreSQL the cause is lost.
	TranslateError bool
	QueryFields    bool
	// Naming names tables and columns; nil means gorm's way.
	Naming schema.Namer
	// History writes RETURNING and ON CONFLICT on MySQL, too (rule MY8).
	History bool
}

// Open returns the gorm.DB of a database, for [Session]. Call it once for each database: every call
// registers gorm's callbacks.
func Open(db tx.Database, o Options) (*gorm.DB, error) {
	base, err := gorm.Open(dialectorOf(db, o.History), &gorm.Config{
		SkipDefaultTransaction: true,
		DisableAutomaticPing:   true,
		TranslateError:         o.TranslateError,
		QueryFields:            o.QueryFields,
		NamingStrategy:         o.Naming,
		Logger:                 logger.Discard, // errors are returned; their receiver logs them
	})
	if err != nil {
		return nil, fmt.Errorf("gorm on database %s: %w", db.Name(), err)
	}
	return base, nil
}

// Session returns gorm on the current transaction of db, or on db itself, no longer than the
// transaction. Begin, Commit and Rollback refuse (rule T8); Transaction in a transaction is a
// savepoint. PrepareStmt is refused (rule T7). base is the result of Open.
func Session(ctx context.Context, base *gorm.DB, db tx.Database) *gorm.DB {
	s := base.Session(&gorm.Session{NewDB: true, Context: ctx})
	conn := connPool{tx.ConnOf(ctx, db)}
	s.Config.ConnPool, s.Statement.ConnPool = conn, conn
	if owner, ok := conn.Conn.(gorm.TxCommitter); ok { // the connection of a transaction
		pool := &txPool{conn, owner} // gorm asks a pool whether it is nil
		s.Config.ConnPool, s.Statement.ConnPool = pool, pool
	}
	return s
}

func dialectorOf(db tx.Database, history bool) gorm.Dialector {
	conn := connPool{db.Conn()}
	switch db.Dialect() {
	case tx.SQLite:
		return sqliteDialector{conn}
	case tx.MySQL:
		d := gormmysql.New(gormmysql.Config{Conn: conn, SkipInitializeWithVersion: true})
		if own, ok := d.(*gormmysql.Dialector); ok && history {
			return mysqlDialector{own}
		}
		return d
	case tx.Postgres:
	}
	d, ok := gormpostgres.New(gormpostgres.Config{Conn: conn}).(*gormpostgres.Dialector)
	if !ok {
		panic("gormtx: gorm's postgres dialector has changed its type")
	}
	return postgresDialector{d}
}

type connPool struct{ tx.Conn }

// ErrPrepared is the error of gorm's PrepareStmt, the only caller of PrepareContext there.
var ErrPrepared = errors.New("gorm's PrepareStmt is not supported: its statements would outlive ForceReconnect and migrations")

func (connPool) PrepareContext(context.Context, string) (*sql.Stmt, error) { return nil, ErrPrepared }

// txPool's Commit and Rollback show gorm that its own Transaction must be a savepoint.
type txPool struct {
	connPool
	owner gorm.TxCommitter
}

func (p *txPool) Commit() error { return p.owner.Commit() }

func (p *txPool) Rollback() error { return p.owner.Rollback() }

type postgresDialector struct{ *gormpostgres.Dialector }

func (postgresDialector) SavePoint(db *gorm.DB, name string) error { return savePoint(db, name) }

func (postgresDialector) RollbackTo(db *gorm.DB, name string) error { return rollbackTo(db, name) }

func savePoint(db *gorm.DB, name string) error { return db.Exec("SAVEPOINT " + name).Error }

func rollbackTo(db *gorm.DB, name string) error {
	return db.Exec("ROLLBACK TO SAVEPOINT " + name).Error
}
