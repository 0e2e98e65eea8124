package tx

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Own is an application's transaction: a *sql.Tx, or the ConnPool of a *gorm.DB within Transaction.
type Own interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	Commit() error
	Rollback() error
}

// Join makes the application's own transaction the current one of db (rule SM5). own must be on the same
// database; that is not checked.
//
// Only the application ends it, then calls ended with whether it was committed: observers are notified, and
// the context is of no further use. With one writer (SQLite), work that would begin another transaction is
// ErrSingleWriter. ErrTransaction if ctx already carries one of db.
//
// Without Join, work takes another connection: it does not see the uncommitted writes, and waits for their
// locks.
func Join(ctx context.Context, db Database, own Own) (joined context.Context, ended func(committed bool), err error) {
	if own == nil {
		return nil, nil, fmt.Errorf("database %s: join: there is no transaction", db.Name())
	}
	if s, _ := ctx.Value(key{db.Name()}).(*scope); s != nil { //nolint:errcheck // absent is nil
		return nil, nil, fmt.Errorf("database %s: join: %w", db.Name(), ErrTransaction)
	}
	h := &ownHandle{ownConn{own}}
	s := &scope{database: db.Name(), handle: h, conn: h.Conn(), singleWriter: db.SingleWriter(), savepoints: new(int), atEnd: &atEnd{}}
	return context.WithValue(ctx, key{db.Name()}, s), func(committed bool) {
		if s.ended.CompareAndSwap(false, true) {
			s.atEnd.call(0, committed)
		}
	}, nil
}

// RollbackOnly returns a *RollbackOnlyError if joined work failed, else nil. Check it before the commit.
func RollbackOnly(ctx context.Context, database string) error {
	s, ok := ctx.Value(key{nameOr(database)}).(*scope)
	if !ok {
		return nil
	}
	return s.doomed()
}

// ErrOwnTransaction means that an application's transaction supports neither a chunk's checkpoint nor the
// driver's connection.
var ErrOwnTransaction = errors.New("the transaction belongs to the application, which does not support it")

type ownHandle struct{ c ownConn }

func (h *ownHandle) Conn() Conn             { return h.c }
func (h *ownHandle) Commit() error          { return ErrNotOwner }
func (h *ownHandle) Rollback() error        { return ErrNotOwner }
func (h *ownHandle) Fence() (string, error) { return "", ErrOwnTransaction }

type ownConn struct{ Own }

var _ Conn = ownConn{}

func (ownConn) Commit() error { return ErrNotOwner }

func (ownConn) Rollback() error { return ErrNotOwner }

// Raw refuses: database/sql does not lend a *sql.Tx's connection.
func (ownConn) Raw(context.Context, func(any) error) error { return ErrOwnTransaction }
