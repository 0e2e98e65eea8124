// Package migrator runs golang-migrate for the repository's schema and for the
// migration tasklet (rule T7).
//
// It imports tx, golang-migrate, internal/dberr and internal/sqlscript.
package migrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/golang-migrate/migrate/v4"
	migratedb "github.com/golang-migrate/migrate/v4/database"
	"github.com/golang-migrate/migrate/v4/source"
	"github.com/golang-migrate/migrate/v4/source/iofs"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Command is the operation.
type Command string

// The commands.
const (
	// Up applies Steps migrations; 0 means all missing ones.
	Up Command = "up"
	// Down reverts Steps migrations, at least one.
	Down    Command = "down"
	Goto    Command = "goto"
	Version Command = "version"
	// Force records Version as clean, and runs nothing; -1 means no version.
	Force Command = "force"
)

// Commands returns all commands.
func Commands() []Command { return []Command{Up, Down, Goto, Version, Force} }

const (
	// DefaultTable is the default of Options.Table.
	DefaultTable = "schema_migrations"
	// DefaultLockTimeout is the default of Options.LockTimeout.
	DefaultLockTimeout = 10 * time.Second
	// grace: the library waits longer than the database, which has the more precise error.
	grace = 5 * time.Second
)

// Options is one run.
type Options struct {
	FS    fs.FS
	Dir   string
	Shown string
	// Table may have a schema before a dot; "" means DefaultTable.
	Table   string
	Command Command
	Steps   int
	Version int
	// LockTimeout bounds each wait for a lock; 0 means DefaultLockTimeout.
	LockTimeout time.Duration
}

// Run runs one command. Two runs on one database wait for each other. With an error, the result is filled in
// as far as it is known.
//
// A migration and its version are one transaction (rule T7a): on PostgreSQL one for each, in a separate
// session with lock_timeout set; on SQLite one for all of a run, on the database's writer, with a savepoint
// before each migration. A migration that fails or dies leaves the earlier ones and none of its own changes.
// The exception is a statement that PostgreSQL refuses in a transaction: the statements before it commit
// first, and the version is dirty until the migration's end. A file may be enclosed in BEGIN and COMMIT;
// elsewhere in it they are refused.
//
// It does not reconnect the database's pools: see tx.Provider.ForceReconnect.
func Run(ctx context.Context, db tx.Database, o Options) (Result, error) {
	if err := o.validate(); err != nil {
		return Result{}, err
	}
	if o.Table == "" {
		o.Table = DefaultTable
	}
	if o.LockTimeout == 0 {
		o.LockTimeout = DefaultLockTimeout
	}
	result, err := run(ctx, db, o)
	if err != nil {
		return result, fmt.Errorf("migrate database %s, %s: %w", db.Name(), o.Command, err)
	}
	return result, nil
}

func run(ctx context.Context, db tx.Database, o Options) (Result, error) {
	before, err := current(ctx, db, o.Table)
	if err != nil {
		return Result{}, err
	}
	if o.Command == Version {
		return result(before, before), nil
	}
	src, err := open(o)
	if err != nil {
		return result(before, before), err
	}
	driver, err := driverOf(ctx, db, o)
	if err != nil {
		return result(before, before), errors.Join(ctx.Err(), readable(err), src.Close())
	}
	m, err := migrate.NewWithInstance("iofs", src, string(db.Dialect()), driver)
	if err != nil {
		return result(before, before), errors.Join(err, src.Close(), driver.Close())
	}
	m.LockTimeout = o.LockTimeout + grace
	err = execute(ctx, m, o)
	serr, derr := m.Close()
	err = errors.Join(err, serr, derr)
	after, verr := current(context.WithoutCancel(ctx), db, o.Table)
	if verr != nil {
		return result(before, before), errors.Join(err, verr)
	}
	if failed, ok := errors.AsType[*lineError](err); ok {
		failed.file = failedFile(err, o, after)
	}
	return result(before, after), err
}

// failedFile is empty if the file cannot be found.
func failedFile(failure error, o Options, left state) string {
	failed, ok := errors.AsType[*towardsError](failure)
	if !ok {
		return ""
	}
	src, err := open(o)
	if err != nil {
		return ""
	}
	defer src.Close() //nolint:errcheck // it was read
	read, version := src.ReadUp, failed.version
	if version < left.version {
		read, version = src.ReadDown, left.version
	}
	r, _, err := read(uint(max(version, 0))) //nolint:gosec // not negative
	if err != nil {
		return ""
	}
	defer r.Close() //nolint:errcheck // it was read
	file, ok := r.(fs.File)
	if !ok {
		return ""
	}
	info, err := file.Stat()
	if err != nil {
		return ""
	}
	return path.Join(filepath.ToSlash(cmp.Or(o.Shown, o.Dir)), info.Name())
}

func (o Options) validate() error {
	switch o.Command {
	case Up:
		if o.Steps < 0 {
			return errors.New("up: steps must not be negative")
		}
	case Down:
		if o.Steps < 1 {
			return errors.New("down: steps must be the number of migrations to revert (goto 0 reverts all)")
		}
	case Goto:
		if o.Version < 0 {
			return errors.New("goto: version must not be negative")
		}
	case Force:
		if o.Version < -1 {
			return errors.New("force: version must be a migration's number, or -1 for none")
		}
	case Version:
	default:
		return fmt.Errorf("command %q is unknown (known: %v)", o.Command, Commands())
	}
	if o.LockTimeout < 0 {
		return errors.New("the lock timeout must not be negative")
	}
	return nil
}

func open(o Options) (source.Driver, error) {
	src, err := iofs.New(o.FS, o.Dir)
	if err != nil {
		return nil, fmt.Errorf("read the migrations in %s: %w", o.Dir, err)
	}
	if _, err := src.First(); err != nil {
		return nil, errors.Join(fmt.Errorf("folder %s has no migrations (NUMBER_name.up.sql)", o.Dir), src.Close())
	}
	return src, nil
}

// Latest returns the highest version in the folder.
func Latest(fsys fs.FS, dir string) (uint, error) {
	src, err := open(Options{FS: fsys, Dir: dir})
	if err != nil {
		return 0, err
	}
	version, err := src.First()
	for err == nil {
		var next uint
		if next, err = src.Next(version); err == nil {
			version = next
		}
	}
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return version, errors.Join(err, src.Close())
}

// The library takes no context: it stops between two migrations on request, and the drivers cancel
// the statement in progress.
func execute(ctx context.Context, m *migrate.Migrate, o Options) error {
	stop := context.AfterFunc(ctx, func() {
		select {
		case m.GracefulStop <- true:
		default: // it has been asked
		}
	})
	defer stop()
	err := command(m, o)
	if cerr := ctx.Err(); cerr != nil {
		return errors.Join(cerr, readable(err))
	}
	if _, short := errors.AsType[migrate.ErrShortLimit](err); short || errors.Is(err, migrate.ErrNoChange) {
		return nil
	}
	if errors.Is(err, os.ErrNotExist) {
		if o.Command == Up || o.Command == Down { // the end of the migrations
			return nil
		}
		return fmt.Errorf("folder %s has no migration %d", o.Dir, o.Version)
	}
	return readable(err)
}

func command(m *migrate.Migrate, o Options) error {
	switch o.Command {
	case Up:
		if o.Steps == 0 {
			return m.Up()
		}
		return m.Steps(o.Steps)
	case Down:
		return m.Steps(-o.Steps)
	case Goto:
		if o.Version == 0 {
			return m.Down()
		}
		return m.Migrate(uint(o.Version)) //nolint:gosec // validate has refused what is negative
	case Force:
		return m.Force(o.Version)
	case Version:
	}
	return nil
}

func readable(err error) error {
	if e, ok := errors.AsType[*DirtyError](err); ok {
		return e
	}
	if e, ok := errors.AsType[migrate.ErrDirty](err); ok {
		return &DirtyError{Version: e.Version}
	}
	if errors.Is(err, migrate.ErrLockTimeout) || errors.Is(err, migratedb.ErrLocked) {
		return fmt.Errorf("another migration holds the lock: %w", err)
	}
	line, cause := uint(0), error(nil)
	if e, ok := errors.AsType[*migratedb.Error](err); ok {
		line, cause = e.Line, e.OrigErr
	} else if e, ok := errors.AsType[migratedb.Error](err); ok {
		line, cause = e.Line, e.OrigErr
	}
	switch {
	case cause == nil:
		return err
	case dberr.IsBusy(cause):
		return fmt.Errorf("gave up waiting for a lock: %w", cause)
	case line > 0:
		return fmt.Errorf("line %d: %w", line, cause)
	}
	return cause
}

func driverOf(ctx context.Context, db tx.Database, o Options) (migratedb.Driver, error) {
	switch db.Dialect() {
	case tx.SQLite:
		return &sqliteDriver{ctx: ctx, db: db, table: db.Dialect().Quote(o.Table), timeout: o.LockTimeout}, nil
	case tx.Postgres:
		return newPostgres(ctx, db, o.Table, o.LockTimeout)
	case tx.MySQL:
		return newMySQL(ctx, db, o.Table, o.LockTimeout)
	}
	return nil, fmt.Errorf("there are no migrations for dialect %s", db.Dialect())
}
