// Package tx owns transactions: their propagation rules ([Manager.Do]), how the current one travels in
// the context ([From], one per database), and the ports through which the rest of the framework reaches
// databases ([Conn], [Database], [Provider]). Package adaptor/database/gorm implements the ports.
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

// Conn runs statements, on a pool or in a transaction: the four methods of database/sql, and Raw for
// driver-specific features (COPY).
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
	// Conn runs statements in the transaction. Its Commit and Rollback, if it has them, refuse; after
	// the end every method fails (rule T8).
	Conn() Conn
	Commit() error
	// Rollback after the end is sql.ErrTxDone.
	Rollback() error
	// Fence prepares a statement that must be part of this same transaction (rule T8a), just before it.
	// ErrForeignEnd means that the transaction is already over. On PostgreSQL
	// current_setting('surfin.tx', true) is nonce in this transaction, and in no other; let the
	// statement compare. Elsewhere nonce is empty: nothing after a foreign end can commit.
	Fence() (nonce string, err error)
}

// Dialect names a kind of database.
type Dialect string

// The dialects.
const (
	SQLite   Dialect = "sqlite"
	Postgres Dialect = "postgres"
	MySQL    Dialect = "mysql" // and MariaDB
)

// Placeholder returns the nth bind variable (1-based) of the dialect. On SQLite it is numbered, and the
// driver compares that number, as a text, with the numbers of all values: fine for the few of a query,
// quadratic for the thousands of a multi-row INSERT. Write a plain ? there. Connections to MySQL, which has no
// numbers, understand ?1 too.
func (d Dialect) Placeholder(n int) string {
	if d == Postgres {
		return fmt.Sprintf("$%d", n)
	}
	return fmt.Sprintf("?%d", n)
}

// Bind translates a statement, written with a ? for each argument and none elsewhere, to the dialect.
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

// Quote quotes an identifier; a dot separates schema and name. Sessions of MySQL have ANSI_QUOTES.
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
	// Begin starts a physical transaction. It uses Isolation, ReadOnly, Timeout and Late of attr. The
	// transaction does not end with ctx (rule T8), but is rolled back after the timeout, so that
	// hanging work does not hold its locks. A caller that keeps it and requests another connection
	// meanwhile notes it by Hold, unless a Manager begins it.
	Begin(ctx context.Context, attr Attr) (Handle, error)
	// Open opens a separate pool, which the caller closes: for migrations, which must neither share nor
	// close the database's pool.
	Open() (*sql.DB, error)
	// Check reports, at load, the parts of attr that the database does not support (rule T4).
	Check(attr Attr) error
	// SingleWriter means that a second writing transaction would wait for the first (SQLite, rule T3).
	SingleWriter() bool
	// WriterHeld is how long this process has held the one writer, over all its transactions; 0 if the
	// database has no single writer.
	WriterHeld() time.Duration
	// Reconnects counts the calls of [Provider.ForceReconnect]. A cache of the catalog is refreshed
	// when the number has changed.
	Reconnects() int64
}

// Provider finds databases by name.
type Provider interface {
	// Database returns the named database; "" is "default". An unknown name is an
	// error that lists the known ones.
	Database(name string) (Database, error)
	// Names returns the names of all configured databases, sorted.
	Names() []string
	// ForceReconnect replaces the pool of the named database, so that new work sees a changed schema;
	// transactions in flight end undisturbed on the old one (rule T7).
	ForceReconnect(ctx context.Context, name string) error
}

// Default is the name of the default database.
const Default = "default"

// Propagation is the relation of work to an existing transaction.
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

// Attr describes the requested transaction.
type Attr struct {
	Propagation Propagation
	// Isolation is sql.LevelDefault unless set; a database that lacks it refuses.
	Isolation sql.IsolationLevel
	ReadOnly  bool
	// Timeout ends the work's context; 0 means none. It applies to its own scope, also a joined one.
	Timeout time.Duration
	// Late delays BEGIN until the first statement, which may save a round trip. That statement then
	// meets a connection that died a moment ago; otherwise another one is taken. SQLite begins at once.
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
	// Fence is Handle.Fence.
	Fence() (nonce string, err error)
}

// Errors of the propagation rules.
var (
	// ErrNoTransaction is MANDATORY without a transaction.
	ErrNoTransaction = errors.New("propagation MANDATORY: there is no transaction")
	// ErrTransaction is NEVER, or Apart, within a transaction.
	ErrTransaction = errors.New("there is a transaction")
	// ErrSingleWriter is a second writing transaction, or a write outside the suspended one, on a
	// database with one writer: it would wait for itself.
	ErrSingleWriter = errors.New("the database allows one writer, and a transaction in progress holds the lock")
	// ErrRolledBack is in the chain of a *CommitError if the database itself reported that the
	// transaction had no effect.
	ErrRolledBack = errors.New("the transaction was rolled back")
	// ErrNotBegun is in the chain of a statement's error if its transaction did not begin, as far as is
	// known: BEGIN was sent with it (Attr.Late), and the connection was lost, or BEGIN was refused. The
	// statement itself is not at fault.
	ErrNotBegun = errors.New("the transaction did not begin")
	// ErrNotOwner is a Commit or Rollback by a caller that does not own the transaction.
	ErrNotOwner = errors.New("only the owner of a transaction may commit it or roll it back")
	// ErrForeignEnd is a transaction that a statement has ended, for example in a script, and not its
	// owner (rule T8a). Its writes may be committed, so the work must not be retried. ErrNotOwner is in
	// its chain.
	ErrForeignEnd = fmt.Errorf("a statement ended the transaction: %w", ErrNotOwner)
)

// RollbackOnlyError is the owner's commit of a transaction that joined work had marked rollback-only:
// it was rolled back instead.
type RollbackOnlyError struct{ Cause error }

// Error names the cause.
func (e *RollbackOnlyError) Error() string {
	return fmt.Sprintf("the transaction was rolled back: joined work failed: %v", e.Cause)
}

// Unwrap returns the failure of the joined work.
func (e *RollbackOnlyError) Unwrap() error { return e.Cause }

// CommitError is a failed COMMIT: it is unknown whether the transaction took effect (rule C10), unless
// the database reported that it did not (rule C10a): ErrRolledBack is in its chain then.
type CommitError struct{ Err error }

// Error names the cause.
func (e *CommitError) Error() string { return "commit: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *CommitError) Unwrap() error { return e.Err }

func nameOr(database string) string {
	if database == "" {
		return Default
	}
	return database
}
