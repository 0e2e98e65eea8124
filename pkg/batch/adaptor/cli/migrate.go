package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func (p *program) migrateCommand() *cobra.Command {
	var database string
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Make or update the tables of the history of executions",
		Long: `Makes or updates the tables that hold the history of executions, in the database
that the setting repository.database names, or in --database. What is there is
kept. SQLite needs no such command: see the setting auto_migrate.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.migrate(cmd.Context(), database) },
	}
	cmd.Flags().StringVar(&database, "database", "", "`NAME` of the database (default: that of the setting repository.database)")
	return cmd
}

func (p *program) migrate(ctx context.Context, database string) error {
	if err := p.configure(); err != nil {
		return err
	}
	if database != "" {
		if err := p.checkDatabase(database); err != nil {
			return err
		}
		p.settings.Repository.Database = database
	}
	where := p.databaseText(p.settings.Repository.Database)
	return p.withRawSession(ctx, p.quiet(), func(s *Session) error {
		before := s.CheckSchema(ctx)
		if before == nil {
			return p.print(where + ": the schema is up to date\n")
		}
		if !errors.Is(before, core.ErrSchemaMissing) {
			return fmt.Errorf("%s: %w", where, before)
		}
		if err := s.Migrate(ctx); err != nil {
			return fmt.Errorf("%s: make the repository's schema: %w", where, err)
		}
		return p.print(where + ": migrated\n")
	})
}
