package gormdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// txConn runs statements in a transaction; gorm and user code cannot end it (rule T8).
type txConn struct {
	conn    *sql.Conn
	tx      *sql.Tx
	explain func(ctx context.Context, err error) error
	ended   atomic.Bool
	expired atomic.Bool
}

var _ tx.Conn = (*txConn)(nil)

func (c *txConn) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if err := c.refuse(query); err != nil {
		return nil, err
	}
	result, err := c.tx.ExecContext(ctx, query, args...)
	return result, c.say(ctx, err)
}

func (c *txConn) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	if err := c.refuse(query); err != nil {
		return nil, err
	}
	stmt, err := c.tx.PrepareContext(ctx, query)
	return stmt, c.say(ctx, err)
}

func (c *txConn) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := c.refuse(query); err != nil {
		return nil, err
	}
	rows, err := c.tx.QueryContext(ctx, query, args...)
	return rows, c.say(ctx, err)
}

func (c *txConn) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if err := c.refuse(query); err != nil {
		ctx = failed{ctx, err}
	}
	return c.tx.QueryRowContext(ctx, query, args...)
}

func (c *txConn) Raw(ctx context.Context, f func(driverConn any) error) error {
	if c.ended.Load() {
		return c.say(ctx, sql.ErrTxDone)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return c.say(ctx, raw(ctx, c.conn, f))
}

// Commit refuses; gorm finds it by type assertion.
func (c *txConn) Commit() error { return tx.ErrNotOwner }

// Rollback refuses; gorm finds it by type assertion.
func (c *txConn) Rollback() error { return tx.ErrNotOwner }

// refuse rejects statements that would begin or end a transaction; in scripts the dialects catch them (the
// commit hook of SQLite, the transaction status of PostgreSQL).
func (c *txConn) refuse(query string) error {
	if word := transactionControl(query); word != "" {
		return fmt.Errorf("%s: %w", word, tx.ErrNotOwner)
	}
	if resetsAll(query) {
		return fmt.Errorf("RESET ALL would reset the mark of the transaction; reset settings by name: %w", tx.ErrNotOwner)
	}
	return nil
}

func (c *txConn) say(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrTxDone) && c.expired.Load():
		return fmt.Errorf("the transaction was rolled back when its timeout expired: %w: %w", context.DeadlineExceeded, err)
	default:
		return c.explain(ctx, err)
	}
}

type handle struct {
	c                *txConn
	commit, rollback func(c *txConn) error
	// Fence while the transaction is not over
	fence func() (nonce string, err error)
	// restores the connection as before begin
	release func(conn *sql.Conn) error

	mu    sync.Mutex // of the end: commit, rollback or timeout
	done  bool
	timer *time.Timer
	beat  *time.Timer
}

var _ tx.Handle = (*handle)(nil)

func (h *handle) Conn() tx.Conn { return h.c }

// Commit commits. Whatever it returns, the transaction is over; the error is tx.ErrRolledBack if the
// database rolled back (rule C10).
func (h *handle) Commit() error {
	err := h.end(h.commit)
	if dberr.IsRolledBack(err) {
		return fmt.Errorf("%w: %w", tx.ErrRolledBack, err)
	}
	return err
}

func (h *handle) Fence() (nonce string, err error) {
	if h.c.ended.Load() {
		return "", h.c.say(context.Background(), sql.ErrTxDone)
	}
	return h.fence()
}

// Rollback rolls back. tx.ErrForeignEnd means that a statement had ended the transaction before, and may
// have committed it.
func (h *handle) Rollback() error { return h.end(h.rollback) }

// expireAfter rolls back after the timeout even if the work does not notice, to release locks. A commit in
// progress is not interrupted.
func (h *handle) expireAfter(timeout time.Duration) {
	if timeout <= 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.timer = time.AfterFunc(timeout, func() {
		_ = h.end(func(c *txConn) error { //nolint:errcheck // the owner's end reports the timeout
			c.expired.Store(true)
			return h.rollback(c)
		})
	})
}

func (h *handle) end(how func(*txConn) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.done {
		return h.c.say(context.Background(), sql.ErrTxDone)
	}
	h.done = true
	h.c.ended.Store(true)
	if h.timer != nil {
		h.timer.Stop()
	}
	if h.beat != nil {
		h.beat.Stop()
	}
	err := how(h.c)
	if h.release != nil {
		err = errors.Join(err, h.release(h.c.conn))
	}
	if cerr := h.c.conn.Close(); cerr != nil {
		err = errors.Join(err, fmt.Errorf("release the connection: %w", cerr))
	}
	return err
}
