// Package migration is the tasklet `migration`: it migrates a database's schema with golang-migrate (rule
// T7).
//
// It imports core, tx, internal/migrator and internal/nearest.
package migration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/confine"
	"github.com/surfin-batch/surfin/internal/migrator"
	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Source is a folder of migrations inside an application.
type Source struct {
	Name string
	FS   fs.FS
	// Dir is the folder in FS; empty means its root.
	Dir string
}

// config configures the tasklet.
type config struct {
	Dir         string           `key:"dir" main:"true" path:"true" doc:"The folder with the files NUMBER_name.up.sql and NUMBER_name.down.sql."`
	Source      string           `key:"source" doc:"The name of migrations that are embedded in the application, instead of a folder."`
	Command     migrator.Command `key:"command" default:"up" enum:"up,down,goto,version,force" doc:"up applies the missing migrations; down reverts steps; goto does either until version is reached; version only reports; force records a version after a manual repair and runs nothing."`
	Steps       *int             `key:"steps" doc:"How many migrations to apply (default: all) or to revert (required)."`
	Version     *int             `key:"version" doc:"The version for goto (0 reverts all) and force (-1: none)."`
	Database    string           `key:"database" doc:"The database; default: the job's."`
	Table       string           `key:"table" default:"schema_migrations" doc:"The table that records the version."`
	LockTimeout time.Duration    `key:"lock_timeout" default:"10s" doc:"How long to wait for another migration, and for each lock that a statement needs."`
}

// Validate checks that the command has exactly its keys.
func (c *config) Validate() error {
	bad := func(key, format string, args ...any) error {
		return &registry.ConfigError{Key: key, Err: fmt.Errorf(format, args...)}
	}
	var errs []error
	switch {
	case c.Dir == "" && c.Source == "":
		errs = append(errs, bad("dir", "the migrations are missing: set a folder or source"))
	case c.Dir != "" && c.Source != "":
		errs = append(errs, bad("source", "a folder is set, too: set one of them"))
	}
	command := c.command()
	if !slices.Contains(migrator.Commands(), command) {
		return errors.Join(append(errs, bad("command", "%q is unknown (allowed: %v)", command, migrator.Commands()))...)
	}
	takesVersion := command == migrator.Goto || command == migrator.Force
	takesSteps := command == migrator.Up || command == migrator.Down
	minVersion := 0
	if command == migrator.Force {
		minVersion = -1
	}
	switch {
	case takesVersion && c.Version == nil:
		errs = append(errs, bad("version", "%s needs a version", command))
	case !takesVersion && c.Version != nil:
		errs = append(errs, bad("version", "%s takes no version (goto does)", command))
	case takesVersion && *c.Version < minVersion:
		errs = append(errs, bad("version", "%d is less than %d", *c.Version, minVersion))
	}
	switch {
	case command == migrator.Down && c.Steps == nil:
		errs = append(errs, bad("steps", "down needs the number of migrations to revert (goto with version 0 reverts all)"))
	case !takesSteps && c.Steps != nil:
		errs = append(errs, bad("steps", "%s takes no steps", command))
	case takesSteps && c.Steps != nil && *c.Steps < 1:
		errs = append(errs, bad("steps", "%d is less than 1", *c.Steps))
	}
	if c.LockTimeout < 0 {
		errs = append(errs, bad("lock_timeout", "%s is less than 0", c.LockTimeout))
	}
	return errors.Join(errs...)
}

// OnMySQL implements trait.OnMySQL.
func (c *config) OnMySQL() error { return nil }

func (c *config) command() migrator.Command {
	if c.Command == "" {
		return migrator.Up
	}
	return c.Command
}

// Components describes the tasklet.
func Components(sources []Source) []registry.Component {
	return []registry.Component{{
		Kind: registry.KindTasklet, Name: "migration", Config: reflect.TypeFor[config](), NoTransaction: true, OwnCommits: true,
		Summary: "brings the schema of a database to a version",
		Doc: `Migrations run on their own connection, outside the step's transaction, and record their
version in their own table. Then the database's connections are replaced, so that the
next step sees the new schema; transactions in progress finish undisturbed on the old ones. The
results are ` + "`from`, `to` and `changed`" + `.

A migration commits together with its version: run again after a failure or a crash, it
continues with the missing migration. Only a statement that PostgreSQL rejects in a
transaction, such as ` + "`CREATE INDEX CONCURRENTLY`" + `, can leave a migration incomplete: the statements before
it commit first. The error then names the statement, and says what to repair and which
version to ` + "`force`" + `. SQLite rejects such a statement (` + "`VACUUM`" + `). On MySQL every CREATE or ALTER is such a
statement. BEGIN and COMMIT are allowed only around a whole file, where they change nothing. A migration is not allowed in an atomic group, because its
rollback would not undo it: put the step before the group.`,
		Example: `job: schema
flow:
- step: schema
  tasklet: {migration: migrations}`,
		Types: types,
		New: func(ctx context.Context, cfg any, b registry.BuildContext) (any, error) {
			c := *cfg.(*config)
			c.Database = cmp.Or(c.Database, b.Database)
			made, err := newTasklet(b.Databases, sources, c)
			if err != nil {
				return nil, err
			}
			if c.Dir != "" {
				made.options.FS = confine.From(ctx).DirFS(c.Dir)
			}
			return made, nil
		},
	}}
}

// A wrong folder is found before anything runs.
func types(cfg any, in item.Type) (item.Type, error) {
	c := cfg.(*config)
	if c.Dir == "" {
		return in, nil
	}
	if _, err := migrator.Latest(os.DirFS(c.Dir), "."); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("there is no folder %s with files such as 1_name.up.sql", c.Dir)
		}
		return nil, &registry.ConfigError{Key: "dir", Err: err}
	}
	return in, nil
}

// MigrationTasklet runs migrations and then reconnects (rule T7).
type MigrationTasklet struct {
	provider tx.Provider
	db       tx.Database
	options  migrator.Options
}

// newTasklet checks config and finds database and source.
func newTasklet(provider tx.Provider, sources []Source, cfg config) (*MigrationTasklet, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	db, err := provider.Database(cfg.Database)
	if err != nil {
		return nil, &registry.ConfigError{Key: "database", Err: err}
	}
	t := &MigrationTasklet{provider: provider, db: db, options: migrator.Options{
		Table: cfg.Table, Command: cfg.command(), LockTimeout: cfg.LockTimeout, Dir: ".",
	}}
	if cfg.Steps != nil {
		t.options.Steps = *cfg.Steps
	}
	if cfg.Version != nil {
		t.options.Version = *cfg.Version
	}
	if cfg.Dir != "" {
		t.options.FS, t.options.Shown = os.DirFS(cfg.Dir), cfg.Dir
		return t, nil
	}
	var names []string
	for _, s := range sources {
		if s.Name == cfg.Source {
			t.options.FS = s.FS
			if s.Dir != "" {
				t.options.Dir = s.Dir
			}
			return t, nil
		}
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return nil, &registry.ConfigError{Key: "source", Err: fmt.Errorf("the application has no migrations named %s%s", cfg.Source, nearest.Hint(cfg.Source, names))}
}

// Execute migrates, then replaces the database's connections, also after a failure: some migrations may
// have been applied.
func (t *MigrationTasklet) Execute(ctx context.Context, c *core.StepContribution) error {
	result, err := migrator.Run(ctx, t.db, t.options)
	if result.Changed || err != nil {
		if rerr := t.provider.ForceReconnect(context.WithoutCancel(ctx), t.db.Name()); rerr != nil {
			err = errors.Join(err, fmt.Errorf("migration: reconnect: %w", rerr))
		}
	}
	if c.Out == nil {
		c.Out = map[string]any{}
	}
	c.Out["from"], c.Out["to"], c.Out["changed"] = int64(result.From), int64(result.To), result.Changed
	if err != nil {
		return fmt.Errorf("migration: %w", err)
	}
	return nil
}
