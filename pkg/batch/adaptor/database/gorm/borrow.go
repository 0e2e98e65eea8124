package gormdb

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
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

func newBorrower(name string, lent Lent, idleInTransaction time.Duration) *borrower {
	return &borrower{name: name, lent: lent, settings: ourSettings(idleInTransaction), answer: answerTime(idleInTransaction)}
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
