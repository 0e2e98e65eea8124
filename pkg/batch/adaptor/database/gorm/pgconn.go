package gormdb

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/internal/pgxconn"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

var _ physical = (*pgConn)(nil)

type pgConn struct {
	*stdlib.Conn
	// "" means no transaction
	nonce   string
	begin   beginning
	ownName string
	// A statement since the last proof may have ended the transaction.
	scripted atomic.Bool
	trace    trace
	// nil means our own connection
	loan *loan
	// the server's time limit to end something
	answer time.Duration
}

// mustAnswer gives the connection up if the server does not answer messages in time, until answered is
// called.
func (c *pgConn) mustAnswer() (answered func()) {
	conn := c.Conn.Conn().PgConn().Conn()
	_ = conn.SetDeadline(time.Now().Add(c.answer))      //nolint:errcheck // a connection that is closed waits for nothing
	return func() { _ = conn.SetDeadline(time.Time{}) } //nolint:errcheck // likewise
}

// wrapPostgres wraps connections of our own.
func wrapPostgres(answer time.Duration) func(c driver.Conn) (physical, error) {
	return func(c driver.Conn) (physical, error) {
		p, err := newPgConn(c, answer)
		if err != nil {
			return nil, err
		}
		p.trace.renew = p.renew
		return p, nil
	}
}

// wrapSetByStatement gives a session up after a change.
func wrapSetByStatement(answer time.Duration) func(c driver.Conn) (physical, error) {
	return func(c driver.Conn) (physical, error) {
		p, err := newPgConn(c, answer)
		if err != nil {
			return nil, err
		}
		p.trace.renew = func() error {
			return errors.Join(driver.ErrBadConn, closeNow(p.Conn.Conn().PgConn()))
		}
		return p, nil
	}
}

func newPgConn(c driver.Conn, answer time.Duration) (*pgConn, error) {
	own, ok := c.(*stdlib.Conn)
	if !ok {
		return nil, fmt.Errorf("the connection is a %T, not one of pgx", c)
	}
	p := &pgConn{Conn: own, answer: answer, trace: trace{keeps: keepsPostgres, distrusts: true, known: map[string]bool{}}}
	p.ownName = p.reportedName()
	return p, nil
}

func (c *pgConn) opensBy(open func(ctx context.Context) (driver.Conn, error)) {
	c.trace.reopen = func(ctx context.Context) error {
		conn, err := open(ctx)
		if err != nil {
			return err
		}
		own, ok := conn.(*stdlib.Conn)
		if !ok {
			return errors.Join(fmt.Errorf("the connection is a %T, not one of pgx", conn), conn.Close())
		}
		before := c.Conn
		c.Conn = own
		return before.Close()
	}
}

// note refuses a statement that would commit by itself because a script has ended the transaction.
func (c *pgConn) note(ctx context.Context, query string) error {
	if c.nonce != "" && c.status() == idle && !c.Conn.Conn().IsClosed() {
		return errEnded
	}
	if query == "" || mayBeScript(query) {
		c.scripted.Store(true)
	}
	c.trace.notice(ctx, query)
	return nil
}

func (c *pgConn) ResetSession(ctx context.Context) error {
	if err := c.trace.acquired(ctx); err != nil {
		return err
	}
	return c.Conn.ResetSession(ctx)
}

func (c *pgConn) IsValid() bool {
	return c.trace.released(func() bool { return !c.Conn.Conn().IsClosed() })
}

func (c *pgConn) Close() error {
	c.trace.mu.Lock()
	defer c.trace.mu.Unlock()
	changed := c.trace.changed || c.trace.broken
	c.trace.broken = true
	if c.loan != nil {
		return c.loan.giveBack(changed)
	}
	return c.Conn.Close()
}

// renew is DISCARD ALL except for the statements that pgx has prepared and knows.
func (c *pgConn) renew() error {
	ctx, cancel := context.WithTimeout(context.Background(), renewTime)
	defer cancel()
	conn := c.Conn.Conn()
	if conn.IsClosed() || c.status() != idle {
		return driver.ErrBadConn
	}
	return conn.PgConn().Exec(ctx, `SET SESSION AUTHORIZATION DEFAULT; RESET ALL; CLOSE ALL; UNLISTEN *;
		SELECT pg_catalog.pg_advisory_unlock_all(); DISCARD TEMP; DISCARD SEQUENCES;
		DO $$ DECLARE n text; BEGIN
			FOR n IN SELECT name FROM pg_catalog.pg_prepared_statements WHERE from_sql LOOP EXECUTE format('DEALLOCATE %I', n); END LOOP;
		END $$`).Close()
}

func (c *pgConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.ready(ctx, query); err != nil {
		return nil, err
	}
	if c.loan != nil {
		return c.execBorrowed(ctx, query, args)
	}
	return c.Conn.ExecContext(ctx, query, args)
}

func (c *pgConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.ready(ctx, query); err != nil {
		return nil, err
	}
	if c.loan != nil {
		return c.queryBorrowed(ctx, query, args)
	}
	return c.Conn.QueryContext(ctx, query, args)
}

func (c *pgConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if err := c.ready(ctx, query); err != nil {
		return nil, err
	}
	stmt, err := c.Conn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return c.trace.statement(stmt), nil
}

type loan struct {
	own     *stdlib.Conn
	restore string
	back    func() error
	isOver  bool
}

// giveBack gives the connection back, once: restored, or, if a step may have changed the session, closed.
func (l *loan) giveBack(changed bool) error {
	if l.isOver {
		return nil
	}
	l.isOver = true
	conn := l.own.Conn().PgConn()
	if changed || conn.IsClosed() || conn.TxStatus() != idle || execute(conn, l.restore) != nil {
		return errors.Join(closeNow(conn), l.back())
	}
	return l.back()
}

type beginning struct {
	// The next BEGIN may wait for its first statement.
	late bool
	// the BEGIN that waits to be sent, or nil
	held pgxconn.Begin
}

var errEnded = fmt.Errorf("rows written before it may be committed: %w", tx.ErrForeignEnd)

// explainPostgres adds the end of the context to errors that it caused: the server's answer to a cancel
// request, or the loss of the connection.
func explainPostgres(ctx context.Context, err error) error {
	cause := ctx.Err()
	if err == nil || cause == nil || errors.Is(err, cause) {
		return err
	}
	if said := dberr.SQLState(err) != ""; said && !dberr.IsCanceled(err) && !dberr.IsConnectionLost(err) {
		return err
	}
	return fmt.Errorf("%w: %w", cause, err)
}
