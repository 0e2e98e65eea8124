package gormdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

var _ physical = (*liteConn)(nil)

type liteConn struct {
	modernc
	watch   *commitWatch
	trace   trace
	kept    preparedStmts
	closed  bool
	writing writing
}

// A nil w means that the connections only read.
func wrapSQLite(w *writerTime, wait time.Duration) func(c driver.Conn) (physical, error) {
	return func(c driver.Conn) (physical, error) {
		own, ok := c.(modernc)
		if !ok {
			return nil, fmt.Errorf("the connection is a %T, not one of modernc.org/sqlite", c)
		}
		l := &liteConn{modernc: own, kept: preparedStmts{}, writing: writing{time: w, wait: wait}}
		l.trace = trace{renew: l.renew, keeps: keepsSQLite, known: map[string]bool{}}
		return l, nil
	}
}

func (c *liteConn) lend(_ context.Context, f func(driverConn any) error) error { return f(c) }

func (c *liteConn) opensBy(open func(ctx context.Context) (driver.Conn, error)) {
	c.trace.reopen = func(ctx context.Context) error {
		conn, err := open(ctx)
		if err != nil {
			return err
		}
		own, ok := conn.(modernc)
		if !ok {
			return errors.Join(fmt.Errorf("the connection is a %T, not one of modernc.org/sqlite", conn), conn.Close())
		}
		err = c.close()
		c.modernc, c.closed = own, false
		return err
	}
}

// note refuses a statement that would commit by itself because the transaction was rolled back.
func (c *liteConn) note(ctx context.Context, query string) error {
	if c.watch != nil && c.watch.dead.Load() {
		return errRolledBack
	}
	c.trace.notice(ctx, query)
	return nil
}

func (c *liteConn) ResetSession(ctx context.Context) error {
	if err := c.trace.acquired(ctx); err != nil {
		return err
	}
	return c.modernc.ResetSession(ctx)
}

func (c *liteConn) IsValid() bool { return c.trace.released(c.modernc.IsValid) }

func (c *liteConn) Close() error {
	c.trace.mu.Lock()
	defer c.trace.mu.Unlock()
	c.trace.broken = true
	return c.close()
}

func (c *liteConn) close() error {
	if c.closed {
		return nil
	}
	c.closed = true
	return errors.Join(c.kept.close(), c.modernc.Close())
}

// Opening another connection takes no time, and a complete reset is not possible.
func (c *liteConn) renew() error { return errors.Join(driver.ErrBadConn, c.close()) }

func (c *liteConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.note(ctx, query); err != nil {
		return nil, err
	}
	defer c.writing.statement()()
	if keepsPrepared(query) {
		return c.kept.exec(ctx, c.modernc, query, args)
	}
	return c.modernc.ExecContext(ctx, query, args)
}

func (c *liteConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.note(ctx, query); err != nil {
		return nil, err
	}
	defer c.writing.statement()()
	if keepsPrepared(query) {
		return c.kept.query(ctx, c.modernc, query, args)
	}
	return c.modernc.QueryContext(ctx, query, args)
}

func (c *liteConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if err := c.note(ctx, query); err != nil {
		return nil, err
	}
	stmt, err := c.modernc.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return c.trace.statement(stmt), nil
}

func (c *liteConn) watched(by *commitWatch) {
	c.watch = by
	if by == nil {
		c.RegisterCommitHook(nil)
		c.RegisterRollbackHook(nil)
		return
	}
	c.RegisterCommitHook(func() int32 {
		if by.committing.Load() {
			return 0
		}
		return 1
	})
	c.RegisterRollbackHook(func() { by.dead.Store(true) })
}

// commitWatch watches a writing transaction of SQLite (rule T8a). The hook turns every commit but ours into a
// rollback, whether from a script, or from a statement after SQLite itself had rolled back (an interrupted
// write takes its transaction with it), which would otherwise commit alone.
type commitWatch struct {
	committing atomic.Bool
	dead       atomic.Bool
}

var errRolledBack = fmt.Errorf("the transaction was rolled back by an earlier statement: %w: %w", sql.ErrTxDone, tx.ErrForeignEnd)

func lost(err error) error { return fmt.Errorf("%w: %w", errRolledBack, err) }

// BeginTx takes the writer at once.
func (c *liteConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	t, err := c.modernc.BeginTx(ctx, opts)
	if err != nil {
		return nil, err
	}
	c.writing.begun()
	return liteTx{t, c}, nil
}

type liteTx struct {
	driver.Tx
	conn *liteConn
}

// If COMMIT is refused, SQLite's driver has rolled back.
func (t liteTx) Commit() error {
	defer t.conn.writing.ended()
	return t.Tx.Commit()
}

func (t liteTx) Rollback() error {
	defer t.conn.writing.ended()
	return t.Tx.Rollback()
}

func explainSQLite(_ context.Context, err error) error {
	if dberr.SQLiteCode(err) == sqlite3.SQLITE_CONSTRAINT_COMMITHOOK {
		return lost(err)
	}
	return err
}
