package repository

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/surfin-batch/surfin/internal/migrator"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// schemaVersion is what this binary needs: major*1000 + minor, the number of the
// newest file in migrations/. A minor only adds, so an older binary works with
// it. A major may remove, so an older binary refuses it (rule R4: expand, then
// contract).
const schemaVersion = 1000

const versionsPerMajor = 1000

// ErrSchemaNewer says that the tables are of a newer major version than this
// binary knows: a newer binary must be used.
var ErrSchemaNewer = errors.New("the repository's schema is newer than this binary")

//go:embed migrations
var migrations embed.FS

// CheckSchema reports whether the tables are what this binary needs (rule R4):
// core.ErrSchemaMissing if they are absent, outdated or half-way through a
// migration, ErrSchemaNewer if their major version is newer. A newer minor is
// accepted.
func (r *Repository) CheckSchema(ctx context.Context) error { return r.tables().check(ctx) }

// Migrate creates the tables or brings them up to this binary's version. A schema
// that is at it, or a newer minor, is left alone. Processes that migrate at once
// wait for each other.
func (r *Repository) Migrate(ctx context.Context) error { return r.tables().migrate(ctx) }

func (r *Repository) tables() tableSet {
	return tableSet{
		store: r.store, what: "the repository", command: "surfin migrate", version: schemaVersion,
		files: migrations, dir: "migrations", record: "schema_migrations", again: true,
	}
}

// tableSet is a group of tables with a version of its own.
type tableSet struct {
	store   *store
	what    string // whose tables, for messages
	command string // that makes them
	version uint   // that this binary needs
	files   fs.FS
	dir     string // of files, with a folder for each dialect
	record  string // the table with the version, without prefix
	// again says that every file can be executed again, so that a migration whose
	// process was killed is repeated instead of reported.
	again bool
}

func (t tableSet) check(ctx context.Context) error {
	state, err := t.state(ctx)
	if err != nil {
		return err
	}
	return t.checkState(state)
}

func (t tableSet) migrate(ctx context.Context) error {
	state, err := t.state(ctx)
	if err != nil {
		return err
	}
	if !state.Dirty && state.To >= t.version {
		return t.checkState(state)
	}
	// A dirty one may just be in another process's hands: Run waits for its lock.
	_, err = migrator.Run(ctx, t.store.db, t.migration(migrator.Up))
	var dirty *migrator.DirtyError
	if t.again && errors.As(err, &dirty) {
		force := t.migration(migrator.Force)
		force.Version = -1
		if _, err = migrator.Run(ctx, t.store.db, force); err == nil {
			_, err = migrator.Run(ctx, t.store.db, t.migration(migrator.Up))
		}
	}
	if err != nil {
		return fmt.Errorf("the tables of %s: %w", t.what, err)
	}
	return t.check(ctx)
}

func (t tableSet) checkState(state migrator.Result) error {
	where := fmt.Sprintf("in database %s (tables %s*)", t.store.db.Name(), t.store.prefix)
	switch {
	case state.To == 0 && !state.Dirty:
		return fmt.Errorf("%w: there is none %s; run `%s`", core.ErrSchemaMissing, where, t.command)
	case state.Dirty:
		return fmt.Errorf("%w: a migration to version %s %s is in progress or did not end; run `%s`, which tells",
			core.ErrSchemaMissing, version(state.To), where, t.command)
	case state.To/versionsPerMajor > t.version/versionsPerMajor:
		return fmt.Errorf("%w: version %s %s, this binary knows %s; use a newer surfin", ErrSchemaNewer, version(state.To), where, version(t.version))
	case state.To < t.version:
		return fmt.Errorf("%w: version %s %s, this binary needs %s; run `%s`", core.ErrSchemaMissing, version(state.To), where, version(t.version), t.command)
	}
	return nil
}

func version(v uint) string { return fmt.Sprintf("%d.%d", v/versionsPerMajor, v%versionsPerMajor) }

// state reads the version that is recorded, 0 where there is none.
func (t tableSet) state(ctx context.Context) (migrator.Result, error) {
	if err := t.store.checkPrefix(); err != nil {
		return migrator.Result{}, err
	}
	state, err := migrator.Run(ctx, t.store.db, t.migration(migrator.Version))
	if err != nil {
		return state, fmt.Errorf("read the version of %s: %w", t.what, err)
	}
	return state, nil
}

func (t tableSet) migration(command migrator.Command) migrator.Options {
	return migrator.Options{
		FS: prefixed{t.files, t.store.prefix}, Dir: t.dir + "/" + string(t.store.db.Dialect()),
		Table: t.store.prefix + t.record, Command: command,
	}
}
