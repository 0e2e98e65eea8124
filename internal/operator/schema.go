package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"sync/atomic"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type schema struct {
	tables      Schema // may be nil
	checkpoints Checkpoints
	provider    tx.Provider
	database    string
	autoMigrate func(dialect tx.Dialect) bool
	audit       ports.Acts // may be nil
	actor       actor
	prepared    atomic.Bool // the tables were checked
}

// Prepare creates or updates the tables if Config.AutoMigrate allows it, else
// checks them. Acts call it. The Refusal has core.ErrSchemaMissing in its
// chain.
func (s *schema) Prepare(ctx context.Context) error {
	if s.tables == nil || s.prepared.Load() {
		return nil
	}
	err := model.Patiently(ctx, s.tables.CheckSchema)
	if errors.Is(err, core.ErrSchemaMissing) && s.migrates() {
		if err = s.tables.Migrate(ctx); err == nil {
			err = s.noteMigration(ctx, "")
		}
	}
	if errors.Is(err, core.ErrSchemaMissing) {
		err = &Refusal{Reason: refusal.Schema, Err: err, Actions: []Action{{Kind: refusal.ActMigrate}}}
	}
	if err == nil {
		s.prepared.Store(true)
	}
	return err
}

// CheckDatabase checks that the database answers and has the needed tables. It
// returns core.ErrSchemaMissing or the database's error; ctx bounds the wait.
func (s *schema) CheckDatabase(ctx context.Context) error {
	if s.tables == nil {
		return nil
	}
	return s.tables.CheckSchema(ctx)
}

// Migrate creates or updates tables and reports whether it did: those of the
// history, or those for checkpoints in another database (rule C18).
func (s *schema) Migrate(ctx context.Context, database string) (changed bool, err error) {
	check, migrate := s.tables.CheckSchema, s.tables.Migrate
	if database != "" && database != s.database {
		check = func(ctx context.Context) error { return s.checkpoints.CheckSchema(ctx, database) }
		migrate = func(ctx context.Context) error { return s.checkpoints.Migrate(ctx, database) }
	}
	if err := check(ctx); !errors.Is(err, core.ErrSchemaMissing) {
		return false, err
	}
	if err := migrate(ctx); err != nil {
		return true, err
	}
	return true, s.noteMigration(ctx, database)
}

func (s *schema) hasHistory(ctx context.Context) (bool, error) {
	if s.tables == nil || s.prepared.Load() {
		return true, nil
	}
	err := s.tables.CheckSchema(ctx)
	if errors.Is(err, core.ErrSchemaMissing) {
		return false, nil
	}
	return err == nil, err
}

func (s *schema) migrates() bool {
	if s.autoMigrate == nil || s.provider == nil {
		return false
	}
	db, err := s.provider.Database(s.database)
	return err == nil && s.autoMigrate(db.Dialect())
}

// After it: a migration has its own transactions.
func (s *schema) noteMigration(ctx context.Context, database string) error {
	if s.audit == nil || s.tables.CheckSchema(ctx) != nil {
		return nil // there is no audit yet
	}
	return s.audit.NoteAct(ctx, ports.VerbMigrate, s.actor.of(ctx), "tables in database "+cmp.Or(database, s.database))
}

// NoteSignIn notes that a client of the API signed in, or out, from an address.
func (s *schema) NoteSignIn(ctx context.Context, in bool, client, address string) error {
	verb := ports.VerbSignOut
	if in {
		verb = ports.VerbSignIn
	}
	if s.audit == nil {
		return fmt.Errorf("%s: %w", verb, core.ErrNotFound)
	}
	return s.audit.NoteAct(ctx, verb, ports.ClientActor+client, "from "+address)
}

// sweep: rule C18.
func (s *schema) sweep(ctx context.Context) error {
	if s.checkpoints == nil || s.provider == nil {
		return nil
	}
	var errs []error
	for _, name := range s.provider.Names() {
		if name == s.database {
			continue
		}
		if _, err := s.checkpoints.CollectGarbage(ctx, name); err != nil && !errors.Is(err, core.ErrSchemaMissing) {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("the history is deleted, but its checkpoints in other databases are not: %w", err)
	}
	return nil
}

// CurrentActor returns the user and the host, the default actor.
func CurrentActor() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}

// WithActor sets the actor for the audit: an API's client is not the process's
// user.
func WithActor(ctx context.Context, actor string) context.Context {
	return ports.WithActor(ctx, actor)
}

type actor string

// WithReason sets the reason of an act for the audit.
func WithReason(ctx context.Context, reason string) context.Context {
	return ports.WithReason(ctx, reason)
}

func (a actor) by(ctx context.Context, epoch int64) ports.By {
	return ports.By{Actor: a.of(ctx), Reason: ports.ReasonOf(ctx), Epoch: epoch}
}

func (a actor) of(ctx context.Context) string { return cmp.Or(ports.ActorOf(ctx), string(a)) }
