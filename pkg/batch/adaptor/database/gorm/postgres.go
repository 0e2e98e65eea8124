package gormdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

const (
	connectTimeout = 15 * time.Second
	// A peer that is gone is noticed after idle + interval * count, on both sides.
	keepAliveIdle     = 10 * time.Second
	keepAliveInterval = 5 * time.Second
	keepAliveCount    = 3
	// A server that does not answer to a cancel request within this time loses the
	// connection.
	cancelTime = 5 * time.Second
	idleTime   = 5 * time.Minute
	// beginAttempts bounds the dead connections that Begin steps over.
	beginAttempts = 3
)

// server says how connections of our own are opened.
type server struct {
	config  *pgx.ConnConfig
	options []stdlib.OptionOpenDB
	// besideLent says that the sessions are set up as those of a pool of the
	// application's, which no statement does again.
	besideLent bool
}

func (s server) connector() driver.Connector {
	return stdlib.GetConnector(*s.config.Copy(), s.options...)
}

// server reads the URL, or the configuration of the pool that is lent.
func (c Config) server(ctx context.Context) (s server, err error) {
	if c.Lent.given {
		s.besideLent = true
		s.config, s.options, err = c.Lent.config(ctx, ourSettings(c.IdleInTransaction))
	} else {
		s.config, err = parseConfig(c.URL)
	}
	if err != nil {
		return server{}, err
	}
	if s.config.ConnectTimeout == 0 {
		s.config.ConnectTimeout = connectTimeout
	}
	s.config.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: cancelTime}
	}
	fixSession(s.config.RuntimeParams)
	for name, value := range map[string]string{
		"application_name":                    "surfin",
		"idle_in_transaction_session_timeout": strconv.FormatInt(c.IdleInTransaction.Milliseconds(), 10),
		"tcp_keepalives_idle":                 strconv.Itoa(int(keepAliveIdle.Seconds())),
		"tcp_keepalives_interval":             strconv.Itoa(int(keepAliveInterval.Seconds())),
		"tcp_keepalives_count":                strconv.Itoa(keepAliveCount),
	} {
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
			return nil, errors.New("the URL is not usable: " + secret.Text(e.Error()))
		}
		return nil, errors.New("the URL is not usable")
	}
	keepAlive := net.KeepAliveConfig{Enable: true, Idle: keepAliveIdle, Interval: keepAliveInterval, Count: keepAliveCount}
	config.DialFunc = (&net.Dialer{KeepAliveConfig: keepAlive}).DialContext
	return config, nil
}

// What texts mean in a session.
const (
	fixedTimeZone  = "UTC"
	fixedDateStyle = "ISO, MDY"
)

// fixSession sets what texts mean in the session; names have any letter case.
func fixSession(params map[string]string) {
	fixed := map[string]string{"timezone": fixedTimeZone, "datestyle": fixedDateStyle}
	for name := range params {
		if _, ours := fixed[strings.ToLower(name)]; ours {
			delete(params, name)
		}
	}
	maps.Copy(params, fixed)
}

// postgres is a pool of pgx connections.
type postgres struct {
	name    string
	server  server
	maxOpen int
	// idleLimit is how long the server lets a transaction wait for its client.
	idleLimit time.Duration
	pool      *pool
	// borrower takes the connections out of a pool of the application's; nil: they are
	// our own.
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
	wrap := wrapPostgres
	if p.server.besideLent {
		wrap = wrapBesideLent
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

func (p *postgres) reconnect() error {
	if p.borrower != nil {
		p.borrower.reconnects.Add(1)
	}
	return p.pool.swap()
}

func (p *postgres) close() error { return p.pool.close() }

// hasIsolation: READ UNCOMMITTED is READ COMMITTED, and snapshot is REPEATABLE
// READ, as PostgreSQL documents them.
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
	if tx.Held(ctx, p.name) >= p.maxOpen {
		return nil, fmt.Errorf("all %d connections (max_open) are held by the transactions that this one is called in: it would wait for itself", p.maxOpen)
	}
	var err error
	for range beginAttempts {
		var conn *sql.Conn
		conn, err = p.pool.acquire(ctx)
		if err != nil {
			return nil, err
		}
		var t *sql.Tx
		t, err = conn.BeginTx(context.WithoutCancel(ctx), &sql.TxOptions{Isolation: attr.Isolation, ReadOnly: attr.ReadOnly})
		if err == nil {
			return newPostgresHandle(conn, t, p.idleLimit)
		}
		if cerr := conn.Close(); cerr != nil && !errors.Is(cerr, sql.ErrConnDone) {
			err = errors.Join(err, cerr)
		}
		// A connection that died while it was idle: the server had restarted, say.
		if !errors.Is(err, driver.ErrBadConn) && !pgconn.SafeToRetry(err) && !dberr.IsConnectionLost(err) {
			return nil, err
		}
	}
	return nil, err
}

// explainPostgres adds the end of the context to the answer of a server that was
// asked to cancel.
func explainPostgres(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil && dberr.IsCanceled(err) && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}
