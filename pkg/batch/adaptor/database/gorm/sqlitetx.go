package gormdb

import (
	"database/sql"
	"errors"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/surfin-batch/surfin/internal/dberr"
)

type sqliteTx struct{ commitWatch }

func newSQLiteHandle(conn *sql.Conn, t *sql.Tx) (*handle, error) {
	physical, err := physicalOf[*liteConn](conn)
	if err != nil {
		return nil, errors.Join(err, t.Rollback(), conn.Close())
	}
	w := &sqliteTx{}
	physical.watched(&w.commitWatch)
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
