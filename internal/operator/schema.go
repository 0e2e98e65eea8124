package operator

import (
	"cmp"
	"context"
	"errors"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Prepare makes the repository ready: it creates or updates its tables if Config.AutoMigrate allows
// it, else it checks them. Acts call it by themselves. The Refusal for missing or old tables has
// core.ErrSchemaMissing in its chain.
func (s *Service) Prepare(ctx context.Context) error {
	if s.config.Schema == nil || s.prepared.Load() {
		return nil
	}
	err := model.Patiently(ctx, s.config.Schema.CheckSchema)
	if errors.Is(err, core.ErrSchemaMissing) && s.migrates() {
		if err = s.config.Schema.Migrate(ctx); err == nil {
			err = s.noteMigration(ctx, "")
		}
	}
	if errors.Is(err, core.ErrSchemaMissing) {
		err = &Refusal{Reason: ReasonSchema, Err: err, Actions: []Action{{Kind: ActMigrate}}}
	}
	if err == nil {
		s.prepared.Store(true)
	}
	return err
}

// CheckDatabase checks that the repository's database answers and has the tables that this binary
// needs. It returns nil also if the service has no schema, core.ErrSchemaMissing, or the database's
// own error; ctx bounds the wait.
func (s *Service) CheckDatabase(ctx context.Context) error {
	if s.config.Schema == nil {
		return nil
	}
	return s.config.Schema.CheckSchema(ctx)
}

func (s *Service) migrates() bool {
	if s.config.AutoMigrate == nil || s.config.Provider == nil {
		return false
	}
	db, err := s.config.Provider.Database(s.config.Database)
	return err == nil && s.config.AutoMigrate(db.Dialect())
}

// Migrate creates or updates tables, and reports whether there was anything to do: the tables of
// the history if database is the repository's or empty, else those for the checkpoints of steps
// that work in that database (rule C18).
func (s *Service) Migrate(ctx context.Context, database string) (changed bool, err error) {
	check, migrate := s.config.Schema.CheckSchema, s.config.Schema.Migrate
	if database != "" && database != s.config.Database {
		check = func(ctx context.Context) error { return s.config.Checkpoints.CheckSchema(ctx, database) }
		migrate = func(ctx context.Context) error { return s.config.Checkpoints.Migrate(ctx, database) }
	}
	if err := check(ctx); !errors.Is(err, core.ErrSchemaMissing) {
		return false, err
	}
	if err := migrate(ctx); err != nil {
		return true, err
	}
	return true, s.noteMigration(ctx, database)
}

// noteMigration records a migration in the audit, after it: a migration has its own transactions.
func (s *Service) noteMigration(ctx context.Context, database string) error {
	if s.config.Acts == nil || s.config.Schema.CheckSchema(ctx) != nil {
		return nil // there is no audit yet
	}
	return s.config.Acts.NoteAct(ctx, ports.VerbMigrate, s.actor(ctx), "tables in database "+cmp.Or(database, s.config.Database))
}
