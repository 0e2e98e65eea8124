package gormdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/internal/lease"
	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

const (
	connectTimeout = 15 * time.Second
	// A lost peer is noticed after idle + interval * count.
	keepAliveIdle     = 10 * time.Second
	keepAliveInterval = 5 * time.Second
	keepAliveCount    = 3
	// A server that does not answer a cancel request or a rollback within this time loses the connection;
	// shorter for a short lease (answerTime).
	longestAnswer  = 5 * time.Second
	shortestAnswer = 250 * time.Millisecond
	idleTime       = 5 * time.Minute
	// beginAttempts bounds the dead connections that Begin steps over.
	beginAttempts = 3
)

// An owner must not wait for the server until its lease is over (rule L9).
func answerTime(of time.Duration) time.Duration {
	return max(shortestAnswer, min(longestAnswer, lease.EndTime(of)/2))
}

// A heartbeat without an answer must leave time for the next.
func (s server) forControl(idleLimit time.Duration) server {
	s.config = s.config.Copy()
	s.config.BuildContextWatcherHandler = cancelling(min(time.Second, answerTime(idleLimit)))
	return s
}

func cancelling(answer time.Duration) func(conn *pgconn.PgConn) ctxwatch.Handler {
	return func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &canceller{conn: conn, answer: answer}
	}
}

type server struct {
	config *pgx.ConnConfig
	// before changes the configuration of each connection, after sets up its session; either may be nil.
	before func(ctx context.Context, config *pgx.ConnConfig) error
	after  func(ctx context.Context, conn *pgx.Conn) error
	// A statement after connecting made the session's settings, which RESET would undo.
	byStatement bool
}

func (s server) connector() driver.Connector {
	var options []stdlib.OptionOpenDB
	if s.before != nil {
		options = append(options, stdlib.OptionBeforeConnect(s.before))
	}
	if s.after != nil {
		options = append(options, stdlib.OptionAfterConnect(s.after))
	}
	return stdlib.GetConnector(*s.config.Copy(), options...)
}

func (c Config) server(ctx context.Context) (s server, err error) {
	if c.Lent.given {
		s, err = c.Lent.server(ctx, ourSettings(c.IdleInTransaction))
	} else {
		s.config, err = parseConfig(c.URL)
	}
	if err != nil {
		return server{}, err
	}
	if s.config.ConnectTimeout == 0 {
		s.config.ConnectTimeout = connectTimeout
	}
	s.config.BuildContextWatcherHandler = cancelling(answerTime(c.IdleInTransaction))
	params := map[string]string{"application_name": "surfin"}
	if !s.byStatement {
		forgetTexts(s.config.RuntimeParams)
		for _, ours := range ourSettings(c.IdleInTransaction) {
			params[ours.name] = ours.value
		}
	}
	for name, value := range params {
		if _, given := s.config.RuntimeParams[name]; !given {
			s.config.RuntimeParams[name] = value
		}
	}
	return s, nil
}

func parseConfig(url string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		if e, ok := errors.AsType[*pgconn.ParseConfigError](err); ok {
			return nil, errors.New("the URL is invalid: " + secret.Text(e.Error()))
		}
		return nil, errors.New("the URL is invalid")
	}
	keepAlive := net.KeepAliveConfig{Enable: true, Idle: keepAliveIdle, Interval: keepAliveInterval, Count: keepAliveCount}
	config.DialFunc = (&net.Dialer{KeepAliveConfig: keepAlive}).DialContext
	return config, nil
}

// textSettings are fixed, so that a value has one text whatever the settings of the server, the role or the
// database: with extra_float_digits of 0 or less the text of a float8[], a point or a row loses digits.
// lc_monetary is left alone: stored amounts of money depend on it.
func textSettings() []setting {
	return []setting{
		{"TimeZone", "UTC"},
		{"DateStyle", "ISO, MDY"},
		{"IntervalStyle", "postgres"},
		{"extra_float_digits", "1"},
		{"bytea_output", "hex"},
	}
}

func forgetTexts(params map[string]string) {
	maps.DeleteFunc(params, func(name, _ string) bool {
		return slices.ContainsFunc(textSettings(), func(s setting) bool { return strings.EqualFold(name, s.name) })
	})
}

type postgres struct {
	name    string
	server  server
	maxOpen int
	// how long the server lets a transaction wait for its client
	idleLimit time.Duration
	pool      *pool
	// nil means our own connections
	borrower *borrower
}

func (p *postgres) openPool() (*sql.DB, error) {
	if p.borrower != nil {
		db := sql.OpenDB(p.borrower)
		db.SetMaxOpenConns(p.maxOpen)
		db.SetMaxIdleConns(p.maxOpen)
		db.SetConnMaxIdleTime(borrowedIdle)
		return db, nil
	}
	wrap := wrapPostgres(answerTime(p.idleLimit))
	if p.server.byStatement {
		wrap = wrapSetByStatement(answerTime(p.idleLimit))
	}
	db := sql.OpenDB(connector{p.server.connector(), wrap})
	db.SetMaxOpenConns(p.maxOpen)
	db.SetMaxIdleConns(p.maxOpen)
	db.SetConnMaxIdleTime(idleTime)
	return db, nil
}

func (p *postgres) ping(ctx context.Context) error {
	if _, err := p.conn().ExecContext(ctx, "SELECT 1"); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	return nil
}

func (p *postgres) open() (*sql.DB, error) { return sql.OpenDB(p.server.connector()), nil }

func (p *postgres) conn() tx.Conn { return poolConn{p.pool, explainPostgres} }

func (p *postgres) singleWriter() bool { return false }

func (p *postgres) writerHeld() time.Duration { return 0 }

func (p *postgres) reconnect() error {
	if p.borrower != nil {
		p.borrower.reconnects.Add(1)
	}
	return p.pool.swap()
}

func (p *postgres) close() error { return p.pool.close() }

// READ UNCOMMITTED is READ COMMITTED, and snapshot is REPEATABLE READ, as PostgreSQL documents them.
func (p *postgres) hasIsolation(level sql.IsolationLevel) bool {
	switch level {
	case sql.LevelDefault, sql.LevelReadUncommitted, sql.LevelReadCommitted,
		sql.LevelRepeatableRead, sql.LevelSnapshot, sql.LevelSerializable:
		return true
	case sql.LevelWriteCommitted, sql.LevelLinearizable:
		return false
	}
	return false
}

func (p *postgres) begin(ctx context.Context, attr tx.Attr) (*handle, error) {
	var err error
	for range beginAttempts {
		var conn *sql.Conn
		conn, err = p.pool.acquire(ctx)
		if err != nil {
			return nil, err
		}
		var t *sql.Tx
		t, err = p.beginTx(ctx, conn, attr)
		if err == nil {
			return newPostgresHandle(conn, t, p.idleLimit)
		}
		if cerr := conn.Close(); cerr != nil && !errors.Is(cerr, sql.ErrConnDone) {
			err = errors.Join(err, cerr)
		}
		// The connection died while it was idle, for example at a restart of the server.
		if !errors.Is(err, driver.ErrBadConn) && !pgconn.SafeToRetry(err) && !dberr.IsConnectionLost(err) {
			return nil, err
		}
	}
	return nil, err
}

// beginTx begins a transaction that does not end with ctx (rule T8). If the server does not answer after
// the end of ctx, the connection is lost.
func (p *postgres) beginTx(ctx context.Context, conn *sql.Conn, attr tx.Attr) (*sql.Tx, error) {
	physical, err := physicalOf[*pgConn](conn)
	if err != nil {
		return nil, err
	}
	physical.begin.late = attr.Late
	late := make(chan func(), 1)
	inTime := context.AfterFunc(ctx, func() { late <- physical.mustAnswer() })
	t, err := conn.BeginTx(context.WithoutCancel(ctx), &sql.TxOptions{Isolation: attr.Isolation, ReadOnly: attr.ReadOnly})
	if !inTime() {
		(<-late)()
	}
	return t, explainPostgres(ctx, err)
}

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
