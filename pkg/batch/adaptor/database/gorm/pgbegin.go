package gormdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/internal/pgxconn"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// BeginTx begins, with one message, a transaction that can be distinguished from any other (rule T8a).
// surfin.tx is reverted at either end; surfin.begun only at a ROLLBACK, so it records a COMMIT.
func (c *pgConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if c.Conn.Conn().IsClosed() {
		return nil, driver.ErrBadConn
	}
	begin, err := beginText(opts)
	if err != nil {
		return nil, err
	}
	c.nonce = strconv.FormatUint(rand.Uint64(), 36)
	c.scripted.Store(false)
	c.begin.held = pgxconn.Begin{begin, "set local surfin.tx = '" + c.nonce + "'", "set surfin.begun = '" + c.nonce + "'"}
	if name := c.sessionName(tx.WorkOf(ctx)); name != c.reportedName() {
		c.begin.held = append(c.begin.held, "set application_name = "+literal(name))
	}
	if !c.begin.late {
		if err := c.sendBegin(ctx); err != nil {
			c.nonce = ""
			return nil, err
		}
	}
	return pgTx{ctx, c}, nil
}

// the bytes of application_name that PostgreSQL keeps
const maxSessionName = 63

// PostgreSQL allows only printable ASCII. The name is set with BEGIN if it differs, so the chunks of a step
// pay for it once per connection (rule OP3).
func (c *pgConn) sessionName(work string) string {
	if work == "" {
		return c.ownName
	}
	name := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, strings.TrimLeft(c.ownName+" "+work, " "))
	return name[:min(len(name), maxSessionName)]
}

// Another name costs a round trip. A statement without work leaves it unchanged.
func (c *pgConn) nameSession(ctx context.Context) error {
	work := tx.WorkOf(ctx)
	if work == "" {
		return nil
	}
	name := c.sessionName(work)
	if name == c.reportedName() {
		return nil
	}
	return c.Conn.Conn().PgConn().Exec(ctx, "set application_name = "+literal(name)).Close()
}

// The server reports each change, also by a ROLLBACK.
func (c *pgConn) reportedName() string {
	return c.Conn.Conn().PgConn().ParameterStatus("application_name")
}

func beginText(opts driver.TxOptions) (string, error) {
	begin := "begin"
	switch sql.IsolationLevel(opts.Isolation) {
	case sql.LevelDefault:
	case sql.LevelReadUncommitted, sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable:
		begin += " isolation level " + strings.ToLower(sql.IsolationLevel(opts.Isolation).String())
	case sql.LevelSnapshot:
		begin += " isolation level repeatable read"
	case sql.LevelWriteCommitted, sql.LevelLinearizable:
		return "", fmt.Errorf("PostgreSQL does not have the isolation level %s", sql.IsolationLevel(opts.Isolation))
	}
	if opts.ReadOnly {
		begin += " read only"
	}
	return begin, nil
}

// If BEGIN fails, the connection is closed: nothing may run on it outside of the transaction.
func (c *pgConn) sendBegin(ctx context.Context) error {
	if c.begin.held == nil {
		return nil
	}
	begin := c.begin.held
	c.begin.held = nil
	if err := begin.Exec(ctx, c.Conn.Conn()); err != nil {
		return errors.Join(c.notBegun(ctx, err), closeNow(c.Conn.Conn().PgConn()))
	}
	return nil
}

// A BEGIN that ran out of time may have begun.
func (c *pgConn) notBegun(ctx context.Context, err error) error {
	if ctx.Err() != nil || !c.Conn.Conn().IsClosed() && dberr.SQLState(err) == "" {
		return err
	}
	return fmt.Errorf("%w: %w", tx.ErrNotBegun, err)
}

func (c *pgConn) ready(ctx context.Context, query string) error {
	if err := c.note(ctx, query); err != nil {
		return err
	}
	if c.nonce == "" {
		return c.nameSession(ctx)
	}
	return c.sendBegin(ctx)
}

// A caller that takes BEGIN sends it with its own statement.
func (c *pgConn) lend(ctx context.Context, f func(driverConn any) error) error {
	taken := pgxconn.Taken(ctx)
	if taken == nil || c.begin.held == nil {
		if err := c.sendBegin(ctx); err != nil {
			return err
		}
		return f(c.Conn)
	}
	*taken, c.begin.held = c.begin.held, nil
	err := f(c.Conn)
	if c.status() != idle {
		return err
	}
	if err == nil {
		err = errEnded
	} else {
		err = c.notBegun(ctx, err)
	}
	return errors.Join(err, closeNow(c.Conn.Conn().PgConn()))
}

// A BEGIN that waits counts as sent.
func (c *pgConn) status() byte {
	if c.begin.held != nil {
		return within
	}
	return c.Conn.Conn().PgConn().TxStatus()
}

type pgTx struct {
	ctx  context.Context
	conn *pgConn
}

// The server answers ROLLBACK if a statement had failed.
func (t pgTx) Commit() error {
	tag, err := t.end("commit")
	if err == nil && tag.String() == "ROLLBACK" {
		err = pgx.ErrTxCommitRollback
	}
	return err
}

func (t pgTx) Rollback() error {
	_, err := t.end("rollback")
	return err
}

// A connection that may still be in the transaction is closed.
func (t pgTx) end(statement string) (tag pgconn.CommandTag, err error) {
	c := t.conn
	c.nonce = ""
	if c.begin.held != nil {
		c.begin.held = nil
		return tag, nil
	}
	tag, err = c.Conn.Conn().Exec(t.ctx, statement)
	if err != nil && c.status() != idle {
		err = errors.Join(err, closeNow(c.Conn.Conn().PgConn()))
	}
	return tag, err
}
