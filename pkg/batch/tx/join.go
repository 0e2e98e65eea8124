package tx

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Own is a transaction that an application has begun on a connection of its own: a *sql.Tx has these
// methods, and so has the ConnPool of a *gorm.DB within its Transaction.
type Own interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	Commit() error
	Rollback() error
}

// Join returns a context that carries the application's own transaction as the current one of db (rule
// SM5): work with the context is committed or rolled back with it. own must be on the same database;
// that is not checked.
//
// Only the application ends the transaction. It then calls ended with whether it was committed:
// observers are notified of the events in it, and the context is of no further use. If db has one
// writer (SQLite), work that would begin another transaction is refused with ErrSingleWriter. Join
// fails with ErrTransaction if ctx already carries a transaction of db.
//
// Without Join, work on db takes another connection. It does not see the application's uncommitted
// writes, and waits for the locks of its transaction.
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

// RollbackOnly returns a *RollbackOnlyError if work that had joined the transaction of ctx failed, else
// nil. The caller of Join checks it before the commit, in case such a failure was ignored.
func RollbackOnly(ctx context.Context, database string) error {
	s, ok := ctx.Value(key{nameOr(database)}).(*scope)
	if !ok {
		return nil
	}
	return s.doomed()
}

// errOwnTransaction is an operation that an application's own transaction does not support: committing
// a chunk's checkpoint, or lending the connection of its driver.
var errOwnTransaction = errors.New("the transaction belongs to the application, which does not support it")

type ownHandle struct{ c ownConn }

func (h *ownHandle) Conn() Conn             { return h.c }
func (h *ownHandle) Commit() error          { return ErrNotOwner }
func (h *ownHandle) Rollback() error        { return ErrNotOwner }
func (h *ownHandle) Fence() (string, error) { return "", errOwnTransaction }

// ownConn runs statements in the application's transaction, and cannot end it.
type ownConn struct{ Own }

var _ Conn = ownConn{}

func (ownConn) Commit() error { return ErrNotOwner }

func (ownConn) Rollback() error { return ErrNotOwner }

// Raw refuses: database/sql does not lend the connection of a *sql.Tx.
func (ownConn) Raw(context.Context, func(any) error) error { return errOwnTransaction }
