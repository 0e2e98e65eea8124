package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func (c serverCommands) migrateCommand() *cobra.Command {
	var database string
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Create or update the tables of the history",
		Long: `Creates or updates the tables of the history of executions, in the database that
the setting repository.database names. Existing rows are kept. SQLite does not need
this command: see the setting auto_migrate.

With --database NAME of another database, it creates or updates the tables for the
checkpoints of steps that write to that database: a chunk's checkpoint commits with
its rows.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.migrate(cmd.Context(), database) },
	}
	cmd.Flags().StringVar(&database, "database", "", "`NAME` of the database (default: that of the setting repository.database)")
	return cmd
}

func (c serverCommands) migrate(ctx context.Context, database string) error {
	if err := c.env.configure(); err != nil {
		return err
	}
	if database == "" {
		database = c.env.settings.Repository.Database
	}
	if err := c.env.checkDatabase(database); err != nil {
		return err
	}
	where, what := c.env.databaseText(database), "schema"
	if database != c.env.settings.Repository.Database {
		what = "schema of the checkpoints"
	}
	return c.env.withRawSession(ctx, c.env.observer(), func(s *Session) error {
		changed, err := s.Service.Migrate(ctx, database)
		switch {
		case changed && err != nil:
			return fmt.Errorf("%s: make the %s: %w", where, what, err)
		case err != nil:
			return fmt.Errorf("%s: %w", where, err)
		case !changed:
			return c.env.print(where + ": the " + what + " is up to date\n")
		}
		return c.env.print(where + ": migrated\n")
	})
}
