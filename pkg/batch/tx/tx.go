// Package tx owns transactions: their propagation rules ([Manager.Do]), how the
// current one travels in the context ([From], one per database), and the ports
// through which the rest of the framework reaches databases ([Conn], [Database],
// [Provider]). Package adaptor/database/gorm implements the ports.
//
// It imports the standard library only, and nothing of ours.
package tx

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Conn runs statements, on a pool or in a transaction: the four methods of
// database/sql, and Raw for what a driver alone can do (COPY).
type Conn interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	// Raw calls f with the driver's own connection, which f must not keep. f must
	// not return driver.ErrBadConn: Raw wraps it.
	Raw(ctx context.Context, f func(driverConn any) error) error
}

// Handle is a physical transaction, held by the [Manager] alone.
type Handle interface {
	// Conn runs statements in the transaction. Its Commit and Rollback, where it
	// has them, refuse; after the end every method fails (rule T8).
	Conn() Conn
	Commit() error
	// Rollback after the end is sql.ErrTxDone.
	Rollback() error
	// Fence is what a statement needs that must be part of this very transaction
	// (rule T8a), just before it. ErrForeignEnd: the transaction is over already. On
	// PostgreSQL current_setting('surfin.tx', true) is nonce in this transaction, and
	// in no other; let the statement compare. Elsewhere nonce is empty: nothing that
	// comes after a foreign end can commit.
	Fence() (nonce string, err error)
}

// Dialect names a kind of database.
type Dialect string

// The dialects.
const (
	SQLite   Dialect = "sqlite"
	Postgres Dialect = "postgres"
)

// Placeholder returns the nth bind variable (1-based) of the dialect. On SQLite it
// is numbered, and the driver compares that number, as a text, with those of all
// values: right for the few of a query, quadratic for the thousands of a multi-row
// INSERT. Write a plain ? there.
func (d Dialect) Placeholder(n int) string {
	if d == Postgres {
		return fmt.Sprintf("$%d", n)
	}
	return fmt.Sprintf("?%d", n)
}

// Bind returns a statement, written with a ? for each argument and none elsewhere, as the
// dialect takes it.
func (d Dialect) Bind(statement string) string {
	if d != Postgres {
		return statement
	}
	parts := strings.Split(statement, "?")
	var b strings.Builder
	for i, part := range parts {
		if i > 0 {
			b.WriteString(d.Placeholder(i))
		}
		b.WriteString(part)
	}
	return b.String()
}

// Quote quotes an identifier; a dot separates schema and name.
func (d Dialect) Quote(name string) string {
	parts := strings.Split(name, ".")
	for i, p := range parts {
		parts[i] = `"` + strings.ReplaceAll(p, `"`, `""`) + `"`
	}
	return strings.Join(parts, ".")
}

// Database is one configured database.
type Database interface {
	Name() string
	Dialect() Dialect
	// Conn runs statements outside a transaction.
	Conn() Conn
	// Begin starts a physical transaction. Isolation, ReadOnly, Timeout and Late of attr
	// matter. The transaction does not end with ctx (rule T8), but is rolled back
	// after the timeout, so that work that hangs does not hold its locks.
	Begin(ctx context.Context, attr Attr) (Handle, error)
	// Open opens a pool of its own, which the caller closes: for migrations, which
	// must neither share nor close the database's pool.
	Open() (*sql.DB, error)
	// Check reports what of attr the database cannot do, at load (rule T4).
	Check(attr Attr) error
	// SingleWriter says that a second writing transaction would wait for the first
	// (SQLite, rule T3).
	SingleWriter() bool
	// WriterHeld is how long this process has held the one writer, in all its
	// transactions together; 0 where there is no such thing.
	WriterHeld() time.Duration
	// Reconnects counts the calls of [Provider.ForceReconnect]. Who keeps what the
	// catalog said asks it again when the number has changed.
	Reconnects() int64
}

// Provider finds databases by name.
type Provider interface {
	// Database returns the named database; "" is "default". An unknown name is an
	// error that lists the known ones.
	Database(name string) (Database, error)
	// Names returns the names of all configured databases, sorted.
	Names() []string
	// ForceReconnect replaces the pool of the named database, so that new work sees
	// a changed schema; transactions in flight end undisturbed on the old one
	// (rule T7).
	ForceReconnect(ctx context.Context, name string) error
}

// Default is the name of the database that is meant where none is named.
const Default = "default"

// Propagation says how work relates to the transaction that is already there.
type Propagation string

// The propagation modes (rule T2). The zero value means Required.
const (
	Required     Propagation = "REQUIRED"
	RequiresNew  Propagation = "REQUIRES_NEW"
	Nested       Propagation = "NESTED"
	NotSupported Propagation = "NOT_SUPPORTED"
	Supports     Propagation = "SUPPORTS"
	Mandatory    Propagation = "MANDATORY"
	Never        Propagation = "NEVER"
)

// Propagations returns all modes.
func Propagations() []Propagation {
	return []Propagation{Required, RequiresNew, Nested, NotSupported, Supports, Mandatory, Never}
}

// Attr says what kind of transaction work asks for.
type Attr struct {
	Propagation Propagation
	// Isolation is sql.LevelDefault unless set; a database that lacks it refuses.
	Isolation sql.IsolationLevel
	ReadOnly  bool
	// Timeout ends the work's context; 0: none. It counts for the scope that it is
	// given to, joined ones too.
	Timeout time.Duration
	// Late lets BEGIN wait for the first statement, which may save a round trip. A connection
	// that died a moment ago is met by that statement then; else another one is taken. SQLite
	// begins at once.
	Late bool
}

// Tx is the current transaction of one database, as the context carries it.
type Tx interface {
	Database() string
	Conn() Conn
	// ReadOnly reports whether it was begun read-only.
	ReadOnly() bool
	// SetRollbackOnly makes the owner's commit fail with a *RollbackOnlyError.
	SetRollbackOnly(cause error)
	// Fence is that of the Handle.
	Fence() (nonce string, err error)
}

// Errors of the propagation rules.
var (
	// ErrNoTransaction is MANDATORY without a transaction.
	ErrNoTransaction = errors.New("propagation MANDATORY: there is no transaction")
	// ErrTransaction is NEVER, or Apart, within a transaction.
	ErrTransaction = errors.New("there is a transaction")
	// ErrSingleWriter is a second writing transaction, or a write outside of the
	// suspended one, on a database with one writer: it would wait for itself.
	ErrSingleWriter = errors.New("the database has one writer, and a transaction in progress holds it")
	// ErrRolledBack is in the chain of a *CommitError where the database itself said
	// that the transaction had no effect.
	ErrRolledBack = errors.New("the transaction was rolled back")
	// ErrNotBegun is in the chain of a statement's error whose transaction did not begin, as far as
	// is known: BEGIN went with it (Attr.Late), and the connection was lost, or BEGIN was refused.
	// What the statement says is not at fault.
	ErrNotBegun = errors.New("the transaction did not begin")
	// ErrNotOwner is Commit or Rollback by who does not own the transaction.
	ErrNotOwner = errors.New("only the owner of a transaction ends it")
	// ErrForeignEnd is a transaction that a statement has ended, in a script say, and
	// not its owner (rule T8a). What was written in it may be committed, so that work
	// must not be tried again. ErrNotOwner is in its chain.
	ErrForeignEnd = fmt.Errorf("a statement has ended the transaction: %w", ErrNotOwner)
)

// RollbackOnlyError is the owner's commit of a transaction that joined work had
// marked rollback-only: it was rolled back instead.
type RollbackOnlyError struct{ Cause error }

// Error names the cause.
func (e *RollbackOnlyError) Error() string {
	return fmt.Sprintf("the transaction was rolled back: joined work had failed: %v", e.Cause)
}

// Unwrap returns the failure of the joined work.
func (e *RollbackOnlyError) Unwrap() error { return e.Cause }

// CommitError is a COMMIT that failed: whether the transaction took effect is
// not known (rule C10), unless the database said that it did not (rule C10a):
// ErrRolledBack is in its chain then.
type CommitError struct{ Err error }

// Error names the cause.
func (e *CommitError) Error() string { return "commit: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *CommitError) Unwrap() error { return e.Err }

type key struct{ database string }

// From returns the current transaction of the database, if there is one that is
// not suspended.
func From(ctx context.Context, database string) (Tx, bool) {
	s, ok := ctx.Value(key{nameOr(database)}).(*scope)
	if !ok || s.suspended {
		return nil, false
	}
	return s, true
}

// ConnOf returns the connection that work on the database uses now: the current
// transaction's, else the database's own.
func ConnOf(ctx context.Context, db Database) Conn {
	if t, ok := From(ctx, db.Name()); ok {
		return t.Conn()
	}
	return db.Conn()
}

type runningKey struct{}

// Running returns a context for [Conn.Raw] that says which statement its f runs. Of
// an f that does not say it everything is expected: that it ended the transaction
// (rule T8a), that it changed settings of the session (rule T8b), which is then asked
// or undone at a cost.
func Running(ctx context.Context, statement string) context.Context {
	return context.WithValue(ctx, runningKey{}, statement)
}

// RunningIn returns the statement that ctx names, or "".
func RunningIn(ctx context.Context) string {
	statement, _ := ctx.Value(runningKey{}).(string) //nolint:errcheck // absent is ""
	return statement
}

// WriterHeld reports whether ctx carries a writing transaction of the database,
// suspended or not: on a database with one writer any other write would wait for
// the very goroutine that asks.
func WriterHeld(ctx context.Context, database string) bool {
	s, ok := ctx.Value(key{nameOr(database)}).(*scope)
	return ok && s.writing()
}

// Outside returns a context for work that is not part of the transaction of the
// database which ctx carries, as NOT_SUPPORTED would, and that writes all the same.
// ok is false where such work would wait for the very goroutine that asks: the
// database has one writer, and ctx holds it. The context is ctx itself then.
func Outside(ctx context.Context, database string) (outside context.Context, ok bool) {
	s, _ := ctx.Value(key{nameOr(database)}).(*scope) //nolint:errcheck // absent is nil
	switch {
	case s == nil:
		return ctx, true
	case s.singleWriter && s.writing():
		return ctx, false
	case s.suspended:
		return ctx, true
	}
	return context.WithValue(ctx, key{nameOr(database)}, s.suspend()), true
}

// Apart returns a context for work that has transactions of its own, may outlive whose
// context ctx is, and is not ended with it by an [Aborter]. It is refused in a transaction
// of one of the databases (ErrTransaction), and where it would wait for a suspended one,
// as the database has one writer (ErrSingleWriter).
func Apart(ctx context.Context, databases []string) (context.Context, error) {
	for _, database := range databases {
		s, _ := ctx.Value(key{nameOr(database)}).(*scope) //nolint:errcheck // absent is nil
		switch {
		case s == nil:
			continue
		case !s.suspended && !s.hasEnded():
			return nil, fmt.Errorf("database %s: %w", nameOr(database), ErrTransaction)
		case s.singleWriter && s.writing():
			return nil, fmt.Errorf("database %s: %w", nameOr(database), ErrSingleWriter)
		}
		ctx = context.WithValue(ctx, key{nameOr(database)}, &scope{suspended: true, singleWriter: s.singleWriter})
	}
	return context.WithValue(ctx, aborterKey{}, (*Aborter)(nil)), nil
}

// Held returns how many physical transactions of the database ctx carries, the
// suspended ones too, and what the step of ctx keeps beside them (Hold): so many connections the
// caller itself keeps from the pool.
func Held(ctx context.Context, database string) int {
	s, _ := ctx.Value(key{nameOr(database)}).(*scope) //nolint:errcheck // absent is nil
	n := holdingsOf(ctx).of(nameOr(database))
	for ; s != nil; s = s.outer {
		// A savepoint shares the counter of the transaction that it is in.
		if !s.suspended && !s.ended.Load() && (s.outer == nil || s.savepoints != s.outer.savepoints) {
			n++
		}
	}
	return n
}

func nameOr(database string) string {
	if database == "" {
		return Default
	}
	return database
}
