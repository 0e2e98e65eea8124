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
	// An unused borrowed connection is kept, so that the chunks of a step find it again. database/sql
	// checks once a second.
	borrowedIdle = time.Second
	// connections of a pool that are skipped
	maxUnusable = 100
)

// A closed connection goes back to the application's pool.
type borrower struct {
	name     string
	lent     Lent
	settings []setting
	answer   time.Duration
	// A connection borrowed before the last reconnect is closed when it is borrowed again, as its prepared
	// statements may be outdated (rule T7).
	reconnects atomic.Int64
}

type setting struct{ name, value string }

func newBorrower(name string, lent Lent, idleInTransaction time.Duration) *borrower {
	return &borrower{name: name, lent: lent, settings: ourSettings(idleInTransaction), answer: answerTime(idleInTransaction)}
}

// ourSettings are those that the rules need (D5, L7), in order.
func ourSettings(idleInTransaction time.Duration) []setting {
	return append(textSettings(), []setting{
		{"idle_in_transaction_session_timeout", strconv.FormatInt(idleInTransaction.Milliseconds(), 10)},
		{"tcp_keepalives_idle", strconv.Itoa(int(keepAliveIdle.Seconds()))},
		{"tcp_keepalives_interval", strconv.Itoa(int(keepAliveInterval.Seconds()))},
		{"tcp_keepalives_count", strconv.Itoa(keepAliveCount)},
	}...)
}

var _ driver.Connector = (*borrower)(nil)

func (b *borrower) Driver() driver.Driver { return stdlib.GetDefaultDriver() }

// Connect borrows a connection, which goes back when it is closed.
func (b *borrower) Connect(ctx context.Context) (driver.Conn, error) {
	lent, err := b.borrow(ctx)
	if err != nil {
		return nil, err
	}
	p := &pgConn{Conn: lent.own, loan: lent, answer: b.answer}
	p.ownName = p.reportedName()
	p.trace = trace{
		keeps: keepsPostgres, distrusts: true, known: map[string]bool{},
		renew: func() error { return errors.Join(driver.ErrBadConn, p.loan.giveBack(true)) },
		reopen: func(ctx context.Context) error {
			before := p.loan.giveBack(true) // first: later calls may wait for it
			next, err := b.borrow(ctx)
			if err != nil {
				return errors.Join(err, before)
			}
			p.Conn, p.loan = next.own, next
			return nil
		},
	}
	return p, nil
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

// Dead connections, and those from before a reconnect, are closed and skipped.
func (b *borrower) borrow(ctx context.Context) (*loan, error) {
	var last error
	for range maxUnusable {
		own, giveBack, err := b.lent.acquire(ctx)
		if errors.Is(err, driver.ErrBadConn) {
			last = err
			continue
		}
		if err != nil {
			return nil, err
		}
		conn := own.Conn().PgConn()
		if b.isOutdated(conn) {
			last = errors.New("the pool of the application has only connections from before a reconnect")
		} else {
			restore, err := b.prepare(ctx, conn)
			if err == nil {
				return &loan{own: own, restore: restore, back: giveBack}, nil
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

func (b *borrower) isOutdated(conn *pgconn.PgConn) bool {
	mark, now := "surfin."+b.name, b.reconnects.Load()
	if before, known := conn.CustomData()[mark].(int64); known {
		return before != now
	}
	conn.CustomData()[mark] = now
	return false
}

// prepare changes the session's settings as the rules need (D5, L7), and returns the statement that
// restores them.
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
		return "", errors.New("the server returns no settings")
	}
	back := []string{setConfig("surfin.begun", ""), setConfig("application_name", conn.ParameterStatus("application_name"))}
	for i, s := range b.settings {
		back = append(back, setConfig(s.name, string(results[0].Rows[0][i])))
	}
	return "SELECT " + strings.Join(back, ", "), nil
}

// copySettings returns the statement that gives another session the settings that this one has received
// (search_path and role, say), and then ours. The role comes last, as it may not be allowed to set the
// others.
func copySettings(ctx context.Context, conn *pgconn.PgConn, ours []setting) (string, error) {
	results, err := conn.Exec(ctx, `SELECT name, pg_catalog.current_setting(name) FROM pg_catalog.pg_settings
		WHERE source = 'session' AND context IN ('user', 'superuser') AND name NOT IN ('application_name', 'transaction_isolation', 'transaction_read_only', 'transaction_deferrable')
		UNION ALL SELECT 'role', pg_catalog.current_setting('role') ORDER BY 1`).ReadAll()
	if err != nil {
		return "", err
	}
	var set []string
	role := "SELECT 1"
	for _, result := range results {
		for _, row := range result.Rows {
			if name, value := string(row[0]), string(row[1]); name == "role" {
				role = "SELECT " + setConfig(name, value)
			} else {
				set = append(set, setConfig(name, value))
			}
		}
	}
	for _, s := range ours {
		set = append(set, setConfig(s.name, s.value))
	}
	return "SELECT " + strings.Join(set, ", ") + "; " + role, nil
}

func setConfig(name, value string) string {
	return "pg_catalog.set_config(" + literal(name) + ", " + literal(value) + ", false)"
}

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
