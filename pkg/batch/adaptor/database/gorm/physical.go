package gormdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"modernc.org/sqlite"
)

// physical is the driver's connection, with a record of its statements.
type physical interface {
	driver.Conn
	// lend calls f with the driver's connection, or one that can do the same.
	lend(ctx context.Context, f func(driverConn any) error) error
	// note notes a statement before it runs ("" is an unknown one), and may refuse it.
	note(ctx context.Context, query string) error
	// opensBy sets how to replace a session that was given up.
	opensBy(open func(ctx context.Context) (driver.Conn, error))
}

type connector struct {
	driver.Connector
	wrap func(c driver.Conn) (physical, error)
}

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	wrapped, err := c.wrap(conn)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	wrapped.opensBy(c.Connector.Connect)
	return wrapped, nil
}

// The caller must hold conn.
func physicalOf[T physical](conn *sql.Conn) (p T, err error) {
	err = conn.Raw(func(driverConn any) error {
		var ok bool
		if p, ok = driverConn.(T); !ok {
			return fmt.Errorf("the connection is a %T, not a %T", driverConn, p)
		}
		return nil
	})
	return p, err
}

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

const renewTime = 5 * time.Second

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

type modernc interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
	RegisterCommitHook(hook sqlite.CommitHookFn)
	RegisterRollbackHook(hook sqlite.RollbackHookFn)
}

type liteConn struct {
	modernc
	watch   *sqliteTx
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

func (c *liteConn) watched(by *sqliteTx) {
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

var (
	_ physical = (*pgConn)(nil)
	_ physical = (*liteConn)(nil)
)
