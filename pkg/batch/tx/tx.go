// Package tx owns transactions: propagation ([Manager.Do]), the current one in the context ([From], one per
// database), and the ports to databases ([Conn], [Database], [Provider]), implemented by
// adaptor/database/gorm.
//
// It imports the standard library only.
package tx

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Conn runs statements, on a pool or in a transaction: database/sql's four methods, and Raw for driver
// features (COPY).
type Conn interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	// Raw calls f with the driver's connection; f must not keep it or return driver.ErrBadConn: Raw wraps it.
	Raw(ctx context.Context, f func(driverConn any) error) error
}

// Handle is a physical transaction, held by the [Manager] alone.
type Handle interface {
	// Conn runs statements in the transaction. Its Commit and Rollback refuse; after the end every method
	// fails (rule T8).
	Conn() Conn
	Commit() error
	// Rollback after the end is sql.ErrTxDone.
	Rollback() error
	// Fence prepares the next statement to be part of this same transaction (rule T8a). ErrForeignEnd: it is
	// already over. On PostgreSQL only this transaction has current_setting('surfin.tx', true) = nonce; let
	// the statement compare. Elsewhere nonce is empty: nothing after a foreign end can commit.
	Fence() (nonce string, err error)
}

// Dialect names a kind of database.
type Dialect string

// The dialects.
const (
	SQLite   Dialect = "sqlite"
	Postgres Dialect = "postgres"
)

// Placeholder returns the nth bind variable (1-based). SQLite's numbered ones cost quadratic time in multi-row
// INSERTs: write a plain ? there.
func (d Dialect) Placeholder(n int) string {
	if d == Postgres {
		return fmt.Sprintf("$%d", n)
	}
	return fmt.Sprintf("?%d", n)
}

// Bind translates a statement with a ? for each argument and none elsewhere.
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
	// Begin starts a physical transaction with attr's Isolation, ReadOnly, Timeout and Late. It does not end
	// with ctx (rule T8), but is rolled back after the timeout, so that hanging work frees its locks. A caller
	// other than a Manager that requests another connection meanwhile notes it by Hold.
	Begin(ctx context.Context, attr Attr) (Handle, error)
	// Open opens a separate pool for migrations; the caller closes it.
	Open() (*sql.DB, error)
	// Check reports at load unsupported parts of attr (rule T4).
	Check(attr Attr) error
	// SingleWriter: a second writing transaction waits for the first (SQLite, rule T3).
	SingleWriter() bool
	// WriterHeld is how long this process has held the one writer in total; 0 without a single writer.
	WriterHeld() time.Duration
	// Reconnects counts [Provider.ForceReconnect]: refresh caches of the catalog when it changes.
	Reconnects() int64
}

// Provider finds databases by name.
type Provider interface {
	// Database returns the named database; "" is "default". An unknown name's error lists the known ones.
	Database(name string) (Database, error)
	// Names returns all names, sorted.
	Names() []string
	// ForceReconnect replaces the pool, so that new work sees a changed schema; transactions in flight end on
	// the old one (rule T7).
	ForceReconnect(ctx context.Context, name string) error
}

// Default is the name of the default database.
const Default = "default"

// Propagation relates work to an existing transaction.
type Propagation string

// The modes (rule T2); zero means Required.
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

// Attr describes the requested transaction.
type Attr struct {
	Propagation Propagation
	// A database that lacks the level refuses it.
	Isolation sql.IsolationLevel
	ReadOnly  bool
	// Timeout ends the work's context, also in a joined scope; 0 means none.
	Timeout time.Duration
	// Late delays BEGIN to the first statement, to save a round trip; that statement then meets a just-lost
	// connection. SQLite begins at once.
	Late bool
}

// Tx is the current transaction of one database in the context.
type Tx interface {
	Database() string
	Conn() Conn
	// ReadOnly: it was begun read-only.
	ReadOnly() bool
	// SetRollbackOnly makes the owner's commit fail with a *RollbackOnlyError.
	SetRollbackOnly(cause error)
	// Fence is Handle.Fence.
	Fence() (nonce string, err error)
}

// Errors of the propagation rules.
var (
	// ErrNoTransaction: MANDATORY without a transaction.
	ErrNoTransaction = errors.New("propagation MANDATORY: there is no transaction")
	// ErrTransaction: NEVER, or Apart, within a transaction.
	ErrTransaction = errors.New("there is a transaction")
	// ErrSingleWriter: on a database with one writer this write would wait for itself.
	ErrSingleWriter = errors.New("the database allows one writer, and a transaction in progress holds the lock")
	// ErrRolledBack is in the chain of a *CommitError if the database reported that nothing took effect.
	ErrRolledBack = errors.New("the transaction was rolled back")
	// ErrNotBegun: the transaction did not begin, as far as is known: BEGIN was refused, or lost with its
	// statement (Attr.Late), which is not at fault.
	ErrNotBegun = errors.New("the transaction did not begin")
	// ErrNotOwner: only the owner may commit or roll back.
	ErrNotOwner = errors.New("only the owner of a transaction may commit it or roll it back")
	// ErrForeignEnd: a statement, such as a script's, ended the transaction (rule T8a). Its writes may be
	// committed, so the work must not be retried. ErrNotOwner is in its chain.
	ErrForeignEnd = fmt.Errorf("a statement ended the transaction: %w", ErrNotOwner)
)

// RollbackOnlyError means that joined work had marked the transaction rollback-only, so the commit rolled it
// back.
type RollbackOnlyError struct{ Cause error }

// Error names the cause.
func (e *RollbackOnlyError) Error() string {
	return fmt.Sprintf("the transaction was rolled back: joined work failed: %v", e.Cause)
}

// Unwrap returns the joined work's failure.
func (e *RollbackOnlyError) Unwrap() error { return e.Cause }

// CommitError is a failed COMMIT: unknown (rule C10), unless ErrRolledBack is in its chain (rule C10a).
type CommitError struct{ Err error }

// Error names the cause.
func (e *CommitError) Error() string { return "commit: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *CommitError) Unwrap() error { return e.Err }

type key struct{ database string }

// From returns the database's current transaction, unless suspended.
func From(ctx context.Context, database string) (Tx, bool) {
	s, ok := ctx.Value(key{nameOr(database)}).(*scope)
	if !ok || s.suspended {
		return nil, false
	}
	return s, true
}

// ConnOf returns the current transaction's connection, else the database's own.
func ConnOf(ctx context.Context, db Database) Conn {
	if t, ok := From(ctx, db.Name()); ok {
		return t.Conn()
	}
	return db.Conn()
}

type runningKey struct{}

// Running returns a context for [Conn.Raw] that names f's statement. Without it Raw assumes that f may have
// ended the transaction (rule T8a) or changed the session (rule T8b), and checks at a cost.
func Running(ctx context.Context, statement string) context.Context {
	return context.WithValue(ctx, runningKey{}, statement)
}

// RunningIn returns the statement that ctx names, or "".
func RunningIn(ctx context.Context) string {
	statement, _ := ctx.Value(runningKey{}).(string) //nolint:errcheck // absent is ""
	return statement
}

// WriterHeld reports whether ctx carries a writing transaction, suspended or not; with one writer any other
// write would wait for itself.
func WriterHeld(ctx context.Context, database string) bool {
	s, ok := ctx.Value(key{nameOr(database)}).(*scope)
	return ok && s.writing()
}

// Outside returns a context for work outside ctx's transaction that may still write. ok is false, and the
// context ctx, if it would wait for itself: one writer, held by ctx.
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

// Apart returns a context for work with its own transactions, which may outlive ctx's owner and no [Aborter]
// ends. Refused in a transaction of one of the databases (ErrTransaction), or if it would wait for a suspended
// one (ErrSingleWriter).
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

// Held counts the caller's connections: ctx's physical transactions, also suspended ones, and those of Hold.
func Held(ctx context.Context, database string) int {
	s, _ := ctx.Value(key{nameOr(database)}).(*scope) //nolint:errcheck // absent is nil
	n := holdingsOf(ctx).of(nameOr(database))
	for ; s != nil; s = s.outer {
		// A savepoint shares its transaction's counter.
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
