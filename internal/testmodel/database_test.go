package testmodel

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

var (
	errLost   = errors.New("the connection to the database is lost")
	errDenied = errors.New("the database did not answer to COMMIT")
)

// line is the connection to the database, which may break. A kill is modelled by a line that stays broken:
// from there on the engine's work has no effect, as in a dead process. (Other tests kill processes with a
// real SIGKILL; this one checks which facts are committed.)
type line struct {
	mu      sync.Mutex
	w       *world
	broken  bool
	commits int
	at      int // the commit of the step at which end happens
	end     ending
}

func (l *line) reset(w *world, at launch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.w, l.broken, l.commits, l.at, l.end = w, false, 0, at.Commit, at.End
}

func (l *line) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken {
		return errLost
	}
	return nil
}

// due counts a commit and returns its ending.
func (l *line) due() ending {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.commits++
	if l.commits != l.at {
		return ""
	}
	if l.end == killBefore || l.end == killAfter {
		l.broken = true
		l.w.kill()
	}
	return l.end
}

// database is a database at the end of a line. The step's own transactions are
// traced and counted.
type database struct {
	tx.Database
	line *line
	step bool
}

func (d database) Conn() tx.Conn { return conn{d.Database.Conn(), d.line} }

func (d database) Begin(ctx context.Context, attr tx.Attr) (tx.Handle, error) {
	if err := d.line.err(); err != nil {
		return nil, err
	}
	h, err := d.Database.Begin(ctx, attr)
	if err != nil || !d.step {
		return h, err
	}
	d.line.w.note("begin")
	return handle{h, d.line}, nil
}

type handle struct {
	tx.Handle
	line *line
}

func (h handle) Commit() error {
	h.line.w.note("commit")
	switch h.line.due() {
	case killBefore:
		return errors.Join(errLost, h.Handle.Rollback())
	case killAfter:
		return errors.Join(errLost, h.Handle.Commit())
	case deniedBefore:
		return errors.Join(errDenied, h.Handle.Rollback())
	case deniedAfter:
		return errors.Join(errDenied, h.Handle.Commit())
	}
	return h.Handle.Commit()
}

func (h handle) Rollback() error {
	err := h.Handle.Rollback()
	if err == nil {
		h.line.w.note("rollback")
	}
	return err
}

type conn struct {
	tx.Conn
	line *line
}

func (c conn) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if err := c.line.err(); err != nil {
		return nil, err
	}
	return c.Conn.ExecContext(ctx, query, args...)
}

func (c conn) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	if err := c.line.err(); err != nil {
		return nil, err
	}
	return c.Conn.PrepareContext(ctx, query)
}

func (c conn) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := c.line.err(); err != nil {
		return nil, err
	}
	return c.Conn.QueryContext(ctx, query, args...)
}

// QueryRowContext of a broken line fails through its context: a Row cannot be made.
func (c conn) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if c.line.err() != nil {
		gone, cancel := context.WithCancel(ctx)
		cancel()
		ctx = gone
	}
	return c.Conn.QueryRowContext(ctx, query, args...)
}

func (c conn) Raw(ctx context.Context, f func(driverConn any) error) error {
	if err := c.line.err(); err != nil {
		return err
	}
	return c.Conn.Raw(ctx, f)
}
