package gormdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type postgresTx struct {
	physical *pgConn
	nonce    string
}

func newPostgresHandle(conn *sql.Conn, t *sql.Tx, idleLimit time.Duration) (*handle, error) {
	physical, err := physicalOf[*pgConn](conn)
	if err != nil {
		return nil, errors.Join(err, t.Rollback(), conn.Close())
	}
	p := postgresTx{physical, physical.nonce}
	h := &handle{
		c:        &txConn{conn: conn, tx: t, explain: explainPostgres},
		fence:    func() (string, error) { return p.fence(conn) },
		commit:   p.commit,
		rollback: p.rollback,
	}
	h.keepAlive(idleLimit)
	return h, nil
}

func (p postgresTx) fence(conn *sql.Conn) (string, error) {
	if status, closed := state(conn); status == idle && !closed {
		return "", errEnded
	}
	p.physical.scripted.Store(false)
	return p.nonce, nil
}

// for statements that prove a transaction at its end, run only after statements that may have ended it
const proofTime = 10 * time.Second

func (p postgresTx) commit(c *txConn) error {
	if err := p.prove(c); err != nil {
		if rerr := c.tx.Rollback(); rerr != nil && !gone(c.conn) {
			err = errors.Join(err, rerr)
		}
		return err
	}
	return withoutBadConn(c.tx.Commit())
}

// If the connection is gone, the server has rolled back, or will when it notices. rollback fails if the
// transaction had been committed before.
func (p postgresTx) rollback(c *txConn) error {
	defer p.physical.mustAnswer()()
	proof := p.prove(c)
	scripted := p.physical.scripted.Load()
	err := c.tx.Rollback()
	closed := errors.Is(err, driver.ErrBadConn) || gone(c.conn)
	if closed {
		err = nil
	}
	switch {
	case errors.Is(proof, tx.ErrForeignEnd):
		return errors.Join(proof, err)
	case err != nil || !scripted || closed:
		return err
	}
	begun, err := p.setting(c.conn, "surfin.begun")
	switch {
	case err != nil && !gone(c.conn):
		return fmt.Errorf("check whether a statement has committed: %w", err)
	case err == nil && begun == p.nonce:
		return errEnded
	}
	return nil
}

// prove fails with ErrForeignEnd if the session is not in the transaction that was begun (rule T8a). In a
// failed transaction nothing can be queried, and nothing can be committed.
func (p postgresTx) prove(c *txConn) error {
	status, closed := state(c.conn)
	switch {
	case closed:
		return nil
	case status == idle:
		return errEnded
	case status != within || !p.physical.scripted.Load():
		return nil
	}
	now, err := p.setting(c.tx, "surfin.tx")
	if err != nil {
		return withoutBadConn(fmt.Errorf("check the transaction: %w", err))
	}
	if now != p.nonce {
		return fmt.Errorf("(or was it a RESET ALL, which removes its mark?) %w", errEnded)
	}
	return nil
}

func (p postgresTx) setting(on interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}, name string,
) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), proofTime)
	defer cancel()
	var value sql.NullString
	err := on.QueryRowContext(ctx, "SELECT current_setting($1, true)", name).Scan(&value)
	return value.String, err
}

// A connection that database/sql has given up counts as closed.
func state(conn *sql.Conn) (status byte, closed bool) {
	err := conn.Raw(func(driverConn any) error {
		c, ok := driverConn.(*pgConn)
		if !ok {
			return fmt.Errorf("the connection is a %T", driverConn)
		}
		status, closed = c.status(), c.Conn.Conn().IsClosed()
		return nil
	})
	return status, closed || err != nil
}

func gone(conn *sql.Conn) bool {
	_, closed := state(conn)
	return closed
}
