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

// postgresTx is a transaction of PostgreSQL and the proof that it is still the one
// that was begun (rule T8a).
type postgresTx struct {
	physical *pgConn
	nonce    string
}

func newPostgresHandle(conn *sql.Conn, t *sql.Tx) (*handle, error) {
	physical, err := physicalOf[*pgConn](conn)
	if err != nil {
		return nil, errors.Join(err, t.Rollback(), conn.Close())
	}
	p := postgresTx{physical, physical.nonce}
	return &handle{
		c:        &txConn{conn: conn, tx: t, explain: explainPostgres},
		fence:    p.fence,
		commit:   p.commit,
		rollback: p.rollback,
	}, nil
}

// fence leaves the proof to the statement that asks for the nonce.
func (p postgresTx) fence() (string, error) {
	if p.physical.status() == idle && !p.closed() {
		return "", errEnded
	}
	p.physical.scripted.Store(false)
	return p.nonce, nil
}

// proofTime bounds the statements that prove a transaction at its end, which only
// those pay for whose last statements may have ended it.
const proofTime = 10 * time.Second

func (p postgresTx) commit(c *txConn) error {
	if err := p.prove(c.tx); err != nil {
		if rerr := c.tx.Rollback(); rerr != nil && !p.closed() {
			err = errors.Join(err, rerr)
		}
		return err
	}
	return withoutBadConn(c.tx.Commit())
}

// rollback succeeds when the connection is gone: the server has rolled back then. It
// fails where what was to be rolled back had been committed before.
func (p postgresTx) rollback(c *txConn) error {
	proof := p.prove(c.tx)
	scripted := p.physical.scripted.Load()
	err := c.tx.Rollback()
	if p.closed() || errors.Is(err, driver.ErrBadConn) {
		err = nil
	}
	switch {
	case errors.Is(proof, tx.ErrForeignEnd):
		return errors.Join(proof, err)
	case err != nil || !scripted || p.closed():
		return err
	}
	begun, err := p.setting(c.conn, "surfin.begun")
	switch {
	case err != nil && !p.closed():
		return fmt.Errorf("ask whether a statement had committed: %w", err)
	case err == nil && begun == p.nonce:
		return errEnded
	}
	return nil
}

// errEnded is the end of a transaction by a statement of which no more is known.
var errEnded = fmt.Errorf("rows that were written before it may be committed: %w", tx.ErrForeignEnd)

// prove fails with ErrForeignEnd where the session is not in the transaction that was
// begun. In one that has failed nothing can be asked, and nothing can be committed.
func (p postgresTx) prove(t *sql.Tx) error {
	switch {
	case p.closed():
		return nil
	case p.physical.status() == idle:
		return errEnded
	case p.physical.status() != within || !p.physical.scripted.Load():
		return nil
	}
	now, err := p.setting(t, "surfin.tx")
	if err != nil {
		return withoutBadConn(fmt.Errorf("ask for the transaction: %w", err))
	}
	if now != p.nonce {
		return errEnded
	}
	return nil
}

// setting asks the session for a setting of ours.
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

func (p postgresTx) closed() bool { return p.physical.Conn.Conn().IsClosed() }
