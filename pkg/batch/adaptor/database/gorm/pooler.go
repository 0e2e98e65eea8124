package gormdb

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/surfin-batch/surfin/internal/dberr"
)

var errSharedSessions = errors.New("a pooler in transaction or statement mode is between this process and the server: the session of a connection changes from one transaction to the next. " +
	"UTC, the time limit of idle transactions, the mark of the current transaction and the locks of migrations would be lost (rules D5, L7, T8a). " +
	"Connect to PostgreSQL directly, or to a pool in session mode (PgBouncer: pool_mode = session)")

// PgBouncer's answer to an unknown start-up parameter
const protocolViolation = "08P01"

// Other clients of the pooler may take the session that would reveal it.
const sharedRounds = 3

// If a pooler refuses or drops start-up parameters, a statement sets up the sessions from then on.
func (p *postgres) meet(ctx context.Context) error {
	pooled := false
	err := p.onFirst(ctx, func(conn *pgconn.PgConn) (err error) {
		pooled, err = isPooled(ctx, conn)
		return err
	})
	if dberr.SQLState(err) == protocolViolation {
		pooled, err = true, nil
	}
	if err != nil || !pooled {
		return err
	}
	p.server = p.server.setUpByStatement()
	if err := p.pool.swap(); err != nil {
		return err
	}
	return p.onFirst(ctx, func(conn *pgconn.PgConn) error { return refuseSharedSessions(ctx, conn, p.server.connector()) })
}

func (p *postgres) onFirst(ctx context.Context, f func(conn *pgconn.PgConn) error) error {
	conn, err := p.pool.acquire(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	physical, err := physicalOf[*pgConn](conn)
	if err == nil {
		err = f(physical.Conn.Conn().PgConn())
	}
	return errors.Join(err, conn.Close())
}

// Another process answers than the one that accepted the connection.
func isPooled(ctx context.Context, conn *pgconn.PgConn) (bool, error) {
	answer, err := queryRow(ctx, conn, "SELECT pg_catalog.pg_backend_pid()")
	return answer != strconv.FormatUint(uint64(conn.PID()), 10), err
}

// It queries the session twice on conn and once on another connection: a pooler gives out the most or the
// least recently used session (rule R9).
func refuseSharedSessions(ctx context.Context, conn *pgconn.PgConn, connector driver.Connector) (err error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	made, err := connector.Connect(ctx)
	if err != nil {
		return fmt.Errorf("a second connection through the pooler: %w", err)
	}
	defer func() { err = errors.Join(err, made.Close()) }()
	other, ok := made.(*stdlib.Conn)
	if !ok {
		return fmt.Errorf("the connection is a %T, not one of pgx", made)
	}
	const session = "SELECT pg_catalog.pg_backend_pid(), pg_catalog.current_setting('surfin.begun', true)"
	// A setting, because some proxies then keep the session of a connection.
	own, err := queryRow(ctx, conn, "SET surfin.begun = '"+strconv.FormatUint(rand.Uint64(), 36)+"'; "+session)
	if err != nil {
		return err
	}
	shared := false
	for range sharedRounds {
		for _, c := range []*pgconn.PgConn{conn, conn, other.Conn().PgConn()} {
			answer, err := queryRow(ctx, c, session)
			if err != nil {
				return fmt.Errorf("compare two sessions through the pooler, which needs one connection to the server for each of ours: %w", err)
			}
			shared = shared || (answer == own) != (c == conn)
		}
	}
	if _, err = queryRow(ctx, conn, "SET surfin.begun = ''; "+session); err == nil && shared {
		err = errSharedSessions
	}
	return err
}

func queryRow(ctx context.Context, conn *pgconn.PgConn, query string) (string, error) {
	results, err := conn.Exec(ctx, query).ReadAll()
	if err != nil {
		return "", err
	}
	if len(results) == 0 || len(results[len(results)-1].Rows) != 1 {
		return "", errors.New("the server does not identify the session")
	}
	var answer []string
	for _, value := range results[len(results)-1].Rows[0] {
		answer = append(answer, string(value))
	}
	return strings.Join(answer, " "), nil
}
