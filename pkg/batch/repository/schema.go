package repository

import (
	"context"
	"embed"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/migrator"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// schemaVersion is what this binary needs: major*1000 + minor, the number of the
// newest file in migrations/. A minor only adds, so an older binary goes on with
// it; a major may take away, so an older binary refuses it (rule R4: expand, then
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
func (r *Repository) CheckSchema(ctx context.Context) error {
	state, err := r.schemaState(ctx)
	if err != nil {
		return err
	}
	return r.judgeSchema(state)
}

// Migrate creates the tables or brings them up to this binary's version. A schema
// that is at it, or a newer minor, is left alone. Processes that migrate at once
// wait for each other.
func (r *Repository) Migrate(ctx context.Context) error {
	state, err := r.schemaState(ctx)
	if err != nil {
		return err
	}
	if !state.Dirty && state.To >= schemaVersion {
		return r.judgeSchema(state)
	}
	// A dirty one may just be in another process's hands: Run waits for its lock.
	if _, err := migrator.Run(ctx, r.db, r.migration(migrator.Up)); err != nil {
		return fmt.Errorf("the repository's tables: %w", err)
	}
	return r.CheckSchema(ctx)
}

func (r *Repository) judgeSchema(state migrator.Result) error {
	where := fmt.Sprintf("in database %s (tables %s*)", r.db.Name(), r.prefix)
	switch {
	case state.To == 0 && !state.Dirty:
		return fmt.Errorf("%w: there is none %s; run `surfin migrate`", core.ErrSchemaMissing, where)
	case state.Dirty:
		return fmt.Errorf("%w: a migration to version %s %s is in progress or did not end; run `surfin migrate`, which tells",
			core.ErrSchemaMissing, version(state.To), where)
	case state.To/versionsPerMajor > schemaVersion/versionsPerMajor:
		return fmt.Errorf("%w: version %s %s, this binary knows %s; use a newer surfin", ErrSchemaNewer, version(state.To), where, version(schemaVersion))
	case state.To < schemaVersion:
		return fmt.Errorf("%w: version %s %s, this binary needs %s; run `surfin migrate`", core.ErrSchemaMissing, version(state.To), where, version(schemaVersion))
	}
	return nil
}

func version(v uint) string { return fmt.Sprintf("%d.%d", v/versionsPerMajor, v%versionsPerMajor) }

// schemaState reads the version that is recorded, 0 where there is none.
func (r *Repository) schemaState(ctx context.Context) (migrator.Result, error) {
	if err := r.checkPrefix(); err != nil {
		return migrator.Result{}, err
	}
	state, err := migrator.Run(ctx, r.db, r.migration(migrator.Version))
	if err != nil {
		return state, fmt.Errorf("read the version of the repository: %w", err)
	}
	return state, nil
}

func (r *Repository) migration(command migrator.Command) migrator.Options {
	return migrator.Options{
		FS: prefixed{migrations, r.prefix}, Dir: "migrations/" + string(r.db.Dialect()),
		Table: r.prefix + "schema_migrations", Command: command,
	}
}
