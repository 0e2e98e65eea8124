package gormdb

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

const (
	// borrowedIdle is how long a borrowed connection is kept although nothing uses it,
	// so that the chunks of a step find their connection again. database/sql looks once
	// a second.
	borrowedIdle = time.Second
	// maxUnusable bounds how many connections of a pool are stepped over.
	maxUnusable = 100
)

// borrower opens connections by taking them out of a pool of the application's. What is
// closed goes back there.
type borrower struct {
	name string
	lent Lent
	// settings of a borrowed session, in order.
	settings []setting
	// reconnects counts: a connection that was borrowed before the last one is closed
	// when it is borrowed again, as its prepared statements may be outdated (rule T7).
	reconnects atomic.Int64
}

type setting struct{ name, value string }

func newBorrower(name string, lent Lent, idleInTransaction time.Duration) *borrower {
	return &borrower{name: name, lent: lent, settings: []setting{
		{"TimeZone", fixedTimeZone},
		{"DateStyle", fixedDateStyle},
		{"idle_in_transaction_session_timeout", strconv.FormatInt(idleInTransaction.Milliseconds(), 10)},
		{"tcp_keepalives_idle", strconv.Itoa(int(keepAliveIdle.Seconds()))},
		{"tcp_keepalives_interval", strconv.Itoa(int(keepAliveInterval.Seconds()))},
		{"tcp_keepalives_count", strconv.Itoa(keepAliveCount)},
	}}
}

var _ driver.Connector = (*borrower)(nil)

// Driver implements driver.Connector.
func (b *borrower) Driver() driver.Driver { return stdlib.GetDefaultDriver() }

// Connect implements driver.Connector: it borrows a connection. Those that died in the
// pool, and those from before a reconnect, are closed and stepped over.
func (b *borrower) Connect(ctx context.Context) (driver.Conn, error) {
	var last error
	for range maxUnusable {
		own, giveBack, err := b.lent.acquire(ctx)
		if err != nil {
			return nil, err
		}
		conn := own.Conn().PgConn()
		if b.isOutdated(conn) {
			last = errors.New("the pool of the application has only connections from before a reconnect")
		} else {
			restore, err := b.prepare(ctx, conn)
			if err == nil {
				return b.wrap(own, restore, giveBack), nil
			}
			last = fmt.Errorf("prepare a session of the application's pool: %w", err)
			if !conn.IsClosed() || ctx.Err() != nil {
				return nil, errors.Join(last, closeNow(conn), giveBack())
			}
		}
		if err := errors.Join(closeNow(conn), giveBack()); err != nil {
			return nil, err
		}
	}
	return nil, last
}

// isOutdated reports a connection that was borrowed before the last reconnect, and
// marks any other as borrowed now.
func (b *borrower) isOutdated(conn *pgconn.PgConn) bool {
	mark, now := "surfin."+b.name, b.reconnects.Load()
	if before, known := conn.CustomData()[mark].(int64); known {
		return before != now
	}
	conn.CustomData()[mark] = now
	return false
}

// wrap makes a connection of ours, which goes back when it is closed: as it was, or
// closed. What a step has set in a session cannot be told from what the application
// has, so that a changed session is given up, and the pool opens another.
func (b *borrower) wrap(own *stdlib.Conn, restore string, giveBack func() error) *pgConn {
	conn := own.Conn().PgConn()
	p := &pgConn{Conn: own}
	p.trace = trace{
		keeps: keepsPostgres, distrusts: true, known: map[string]bool{},
		renew: func() error { return errors.Join(driver.ErrBadConn, closeNow(conn)) },
	}
	p.giveBack = func(changed bool) error {
		if changed || conn.IsClosed() || conn.TxStatus() != idle || execute(conn, restore) != nil {
			return errors.Join(closeNow(conn), giveBack())
		}
		return giveBack()
	}
	return p
}

// prepare makes the session what the rules need (D5, L7), and returns the statement
// that makes it as it was.
func (b *borrower) prepare(ctx context.Context, conn *pgconn.PgConn) (restore string, err error) {
	ask, set := make([]string, len(b.settings)), make([]string, len(b.settings))
	for i, s := range b.settings {
		ask[i] = "pg_catalog.current_setting(" + literal(s.name) + ")"
		set[i] = setConfig(s.name, s.value)
	}
	results, err := conn.Exec(ctx, "SELECT "+strings.Join(ask, ", ")+"; SELECT "+strings.Join(set, ", ")).ReadAll()
	if err != nil {
		return "", err
	}
	if len(results) == 0 || len(results[0].Rows) != 1 {
		return "", errors.New("the server does not say what the settings are")
	}
	back := []string{setConfig("surfin.begun", "")}
	for i, s := range b.settings {
		back = append(back, setConfig(s.name, string(results[0].Rows[0][i])))
	}
	return "SELECT " + strings.Join(back, ", "), nil
}

func setConfig(name, value string) string {
	return "pg_catalog.set_config(" + literal(name) + ", " + literal(value) + ", false)"
}

// literal quotes a text of SQL.
func literal(text string) string {
	quoted := strings.ReplaceAll(text, "'", "''")
	if strings.Contains(quoted, `\`) {
		return "E'" + strings.ReplaceAll(quoted, `\`, `\\`) + "'"
	}
	return "'" + quoted + "'"
}

func execute(conn *pgconn.PgConn, statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), renewTime)
	defer cancel()
	return conn.Exec(ctx, statement).Close()
}

func closeNow(conn *pgconn.PgConn) error {
	if conn.IsClosed() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), renewTime)
	defer cancel()
	if err := conn.Close(ctx); err != nil && !conn.IsClosed() {
		return fmt.Errorf("close the connection: %w", err)
	}
	return nil
}
