package gormdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

const (
	mysqlPort = "3306"
	// of a cursor with a slow reader
	netWriteTimeout = 600
)

// parseMySQL never shows the URL: it has the password.
func parseMySQL(raw string) (*mysql.Config, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("the URL is malformed")
	}
	c := mysql.NewConfig()
	c.DBName = strings.TrimPrefix(u.Path, "/")
	if u.Hostname() == "" || c.DBName == "" {
		return nil, errors.New("the URL names no host or no database: write mysql://USER@HOST:3306/NAME")
	}
	port := u.Port()
	if port == "" {
		port = mysqlPort
	}
	c.Net, c.Addr = "tcp", net.JoinHostPort(u.Hostname(), port)
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	for name, values := range u.Query() {
		if name != "tls" || len(values) != 1 || !slices.Contains([]string{"true", "false", "preferred", "skip-verify"}, values[0]) {
			return nil, fmt.Errorf("the URL's parameter %s is not supported (known: tls=true, false, preferred or skip-verify)", name)
		}
		c.TLSConfig = values[0]
	}
	keepAlive := net.KeepAliveConfig{Enable: true, Idle: keepAliveIdle, Interval: keepAliveInterval, Count: keepAliveCount}
	c.DialFunc = (&net.Dialer{Timeout: connectTimeout, KeepAliveConfig: keepAlive}).DialContext
	c.ParseTime, c.Loc = true, time.UTC
	c.ClientFoundRows = true // or an UPDATE that changes nothing finds no row (rule MY2)
	c.InterpolateParams = true
	c.MaxAllowedPacket = 0 // the server's
	c.Logger = &mysql.NopLogger{}
	return c, nil
}

// mysqlServer connects, with the session that the rules need (MY2).
type mysqlServer struct {
	driver.Connector
	session string
}

func newMySQLServer(raw string, idleLimit time.Duration) (*mysqlServer, error) {
	c, err := parseMySQL(raw)
	if err != nil {
		return nil, err
	}
	base, err := mysql.NewConnector(c)
	if err != nil {
		return nil, errors.New("the URL is invalid")
	}
	modes := "ANSI_QUOTES,PIPES_AS_CONCAT,STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO,ONLY_FULL_GROUP_BY"
	return &mysqlServer{base, fmt.Sprintf("SET time_zone = '+00:00', sql_mode = '%s', wait_timeout = %d, lock_wait_timeout = 50, net_write_timeout = %d, autocommit = 1, group_concat_max_len = 1073741824"+
		" /*!80003 , cte_max_recursion_depth = 4294967295 */ /*M! , max_recursive_iterations = 4294967295 */",
		modes, int(math.Ceil(idleLimit.Seconds())), netWriteTimeout)}, nil
}

// Connect implements driver.Connector.
func (s *mysqlServer) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := s.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	own, ok := c.(mysqlDriver)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the connection is a %T, not one of go-sql-driver/mysql", c), c.Close())
	}
	for _, statement := range []string{"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", s.session} {
		if _, err := own.ExecContext(ctx, statement, nil); err != nil {
			return nil, errors.Join(fmt.Errorf("set up the session: %w", err), c.Close())
		}
	}
	return c, nil
}

type mysqlDatabase struct {
	server    *mysqlServer
	maxOpen   int
	idleLimit time.Duration
	pool      *pool
}

func newMySQL(name string, c Config) (*mysqlDatabase, error) {
	server, err := newMySQLServer(c.URL, c.IdleInTransaction)
	if err != nil {
		return nil, err
	}
	m := &mysqlDatabase{server: server, maxOpen: c.MaxOpen, idleLimit: c.IdleInTransaction}
	if m.pool, err = newPool(m.openPool); err != nil {
		return nil, err
	}
	m.pool.gate = newGate(name, c.MaxOpen, true)
	return m, nil
}

func (m *mysqlDatabase) openPool() (*sql.DB, error) {
	db := sql.OpenDB(connector{m.server, wrapMySQL})
	db.SetMaxOpenConns(m.maxOpen)
	db.SetMaxIdleConns(m.maxOpen)
	db.SetConnMaxIdleTime(m.idleLimit / 2) // before the server's wait_timeout
	return db, nil
}

func (m *mysqlDatabase) open() (*sql.DB, error) {
	return sql.OpenDB(connector{m.server, wrapMySQL}), nil
}

func (m *mysqlDatabase) ping(ctx context.Context) error {
	if _, err := m.conn().ExecContext(ctx, "SELECT 1"); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	return nil
}

func (m *mysqlDatabase) conn() tx.Conn { return poolConn{m.pool, explainMySQL} }

func (m *mysqlDatabase) singleWriter() bool { return false }

func (m *mysqlDatabase) writerHeld() time.Duration { return 0 }

func (m *mysqlDatabase) reconnect() error { return m.pool.swap() }

func (m *mysqlDatabase) close() error { return m.pool.close() }

func (m *mysqlDatabase) hasIsolation(level sql.IsolationLevel) bool {
	switch level {
	case sql.LevelDefault, sql.LevelReadUncommitted, sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable:
		return true
	case sql.LevelWriteCommitted, sql.LevelSnapshot, sql.LevelLinearizable:
	}
	return false
}

func (m *mysqlDatabase) begin(ctx context.Context, attr tx.Attr) (*handle, error) {
	var err error
	for range beginAttempts {
		var conn *sql.Conn
		if conn, err = m.pool.acquire(ctx); err != nil {
			return nil, err
		}
		var t *sql.Tx
		t, err = conn.BeginTx(context.WithoutCancel(ctx), &sql.TxOptions{Isolation: attr.Isolation, ReadOnly: attr.ReadOnly})
		if err == nil {
			h := &handle{
				c:        &txConn{conn: conn, tx: t, explain: explainMySQL},
				fence:    func() (string, error) { return "", proveMySQL(conn) },
				commit:   func(c *txConn) error { return withoutBadConn(c.tx.Commit()) },
				rollback: rollbackMySQL,
			}
			h.keepAlive(m.idleLimit)
			return h, nil
		}
		if cerr := conn.Close(); cerr != nil && !errors.Is(cerr, sql.ErrConnDone) {
			err = errors.Join(err, cerr)
		}
		if !errors.Is(err, driver.ErrBadConn) && !dberr.IsConnectionLost(err) {
			return nil, err
		}
	}
	return nil, err
}

// If the connection is lost, the server rolls back.
func rollbackMySQL(c *txConn) error {
	err := c.tx.Rollback()
	if errors.Is(err, tx.ErrForeignEnd) || !errors.Is(err, driver.ErrBadConn) && !dberr.IsConnectionLost(err) {
		return err
	}
	return nil
}

func explainMySQL(ctx context.Context, err error) error {
	cause := ctx.Err()
	if err == nil || cause == nil || errors.Is(err, cause) || dberr.MySQLCode(err) != 0 {
		return err
	}
	return fmt.Errorf("%w: %w", cause, err)
}
