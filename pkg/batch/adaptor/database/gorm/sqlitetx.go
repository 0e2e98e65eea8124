package gormdb

import (
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// sqliteTx watches a writing transaction of SQLite (rule T8a). The hook turns every commit but ours into a
// rollback, whether from a script, or from a statement after SQLite itself had rolled back (an interrupted
// write takes its transaction with it), which would otherwise commit alone.
type sqliteTx struct {
	committing atomic.Bool
	dead       atomic.Bool
}

func newSQLiteHandle(conn *sql.Conn, t *sql.Tx) (*handle, error) {
	physical, err := physicalOf[*liteConn](conn)
	if err != nil {
		return nil, errors.Join(err, t.Rollback(), conn.Close())
	}
	w := &sqliteTx{}
	physical.watched(w)
	return &handle{
		c:        &txConn{conn: conn, tx: t, explain: explainSQLite},
		fence:    w.fence,
		commit:   w.commit,
		rollback: rollbackSQLite,
		release: func(conn *sql.Conn) error {
			return conn.Raw(func(any) error {
				physical.watched(nil)
				return nil
			})
		},
	}, nil
}

func (w *sqliteTx) fence() (string, error) {
	if w.dead.Load() {
		return "", errRolledBack
	}
	return "", nil
}

func (w *sqliteTx) commit(c *txConn) error {
	if w.dead.Load() {
		return errors.Join(errRolledBack, rollbackSQLite(c))
	}
	w.committing.Store(true)
	return commitSQLite(c)
}

// SQLITE_ERROR at COMMIT means that SQLite had already rolled back.
func commitSQLite(c *txConn) error {
	err := c.tx.Commit()
	if dberr.SQLiteCode(err) == sqlite3.SQLITE_ERROR {
		return lost(err)
	}
	return err
}

func rollbackSQLite(c *txConn) error {
	err := c.tx.Rollback()
	if dberr.SQLiteCode(err) == sqlite3.SQLITE_ERROR {
		return nil
	}
	return err
}

var errRolledBack = fmt.Errorf("the transaction was rolled back by an earlier statement: %w: %w", sql.ErrTxDone, tx.ErrForeignEnd)

func lost(err error) error { return fmt.Errorf("%w: %w", errRolledBack, err) }
