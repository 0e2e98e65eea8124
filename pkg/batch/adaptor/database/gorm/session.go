package gormdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	gormpostgres "gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/surfin-batch/surfin/internal/gormsqlite"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Session returns gorm on the current transaction of db, or on db itself where
// there is none. It is good for as long as the transaction: take a new one for
// each piece of work. Its Begin, Commit and Rollback refuse, as only the owner
// ends a transaction (rule T8); Transaction within a transaction is a savepoint.
// PrepareStmt is refused (rule T7), gorm's own transaction around each write is
// off, and errors are translated to gorm.ErrDuplicatedKey and its like. On SQLite
// gorm's Migrator (AutoMigrate) is refused.
func Session(ctx context.Context, db tx.Database) (*gorm.DB, error) {
	own, ok := ownOf(db)
	if !ok {
		return nil, fmt.Errorf("database %s is a %T, and has no gorm session", db.Name(), db)
	}
	base, err := own.gorm.base(own)
	if err != nil {
		return nil, err
	}
	s := base.Session(&gorm.Session{NewDB: true, Context: ctx})
	conn := connPool{tx.ConnOf(ctx, db)}
	s.Config.ConnPool, s.Statement.ConnPool = conn, conn
	if inTransaction, ok := conn.Conn.(*txConn); ok {
		pool := &txPool{conn, inTransaction} // gorm asks a pool whether it is nil
		s.Config.ConnPool, s.Statement.ConnPool = pool, pool
	}
	return s, nil
}

// ownOf finds our database behind those that decorate it and say so with Unwrap,
// as errors do.
func ownOf(db tx.Database) (*database, bool) {
	for {
		if own, ok := db.(*database); ok {
			return own, true
		}
		decorated, ok := db.(interface{ Unwrap() tx.Database })
		if !ok {
			return nil, false
		}
		db = decorated.Unwrap()
	}
}

// sessions holds the gorm.DB that the sessions of a database are copies of:
// making one registers its callbacks anew.
type sessions struct {
	once sync.Once
	db   *gorm.DB
	err  error
}

func (s *sessions) base(db *database) (*gorm.DB, error) {
	s.once.Do(func() {
		s.db, s.err = gorm.Open(dialectorOf(db), &gorm.Config{
			SkipDefaultTransaction: true,
			DisableAutomaticPing:   true,
			TranslateError:         true,
			Logger:                 logger.Discard, // errors are returned; who returns them logs them
		})
		if s.err != nil {
			s.err = fmt.Errorf("gorm on database %s: %w", db.name, s.err)
		}
	})
	return s.db, s.err
}

func dialectorOf(db *database) gorm.Dialector {
	conn := connPool{db.Conn()}
	switch db.dialect {
	case tx.Postgres:
		d, ok := gormpostgres.New(gormpostgres.Config{Conn: conn}).(*gormpostgres.Dialector)
		if !ok {
			panic("gormdb: gorm's postgres dialector has changed its type")
		}
		return postgresDialector{d}
	case tx.SQLite:
	}
	return gormsqlite.New(conn)
}

// connPool is what gorm gets outside a transaction.
type connPool struct{ tx.Conn }

// errPrepared answers gorm's PrepareStmt, the only caller of PrepareContext there.
var errPrepared = errors.New("gorm's PrepareStmt is refused: its statements would outlive ForceReconnect and migrations")

// PrepareContext refuses.
func (connPool) PrepareContext(context.Context, string) (*sql.Stmt, error) { return nil, errPrepared }

// txPool is what gorm gets in a transaction: it finds Commit and Rollback there,
// and thereby knows that its own Transaction must be a savepoint.
type txPool struct {
	connPool
	owner *txConn
}

// Commit refuses.
func (p *txPool) Commit() error { return p.owner.Commit() }

// Rollback refuses.
func (p *txPool) Rollback() error { return p.owner.Rollback() }

// postgresDialector reports savepoints that fail, which gorm's own does not.
type postgresDialector struct{ *gormpostgres.Dialector }

// SavePoint sets a savepoint.
func (postgresDialector) SavePoint(db *gorm.DB, name string) error {
	return db.Exec("SAVEPOINT " + name).Error
}

// RollbackTo rolls back to a savepoint.
func (postgresDialector) RollbackTo(db *gorm.DB, name string) error {
	return db.Exec("ROLLBACK TO SAVEPOINT " + name).Error
}
