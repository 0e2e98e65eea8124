package gormdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

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
