package repository_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/migrator"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// version1000 makes the tables as schema 1.0 had them, with a failed execution, a
// running one and an instance without any.
func version1000(t *testing.T, db tx.Database) {
	t.Helper()
	dir := t.TempDir()
	text, err := os.ReadFile(filepath.Join("migrations", string(db.Dialect()), "1000_create.up.sql"))
	require.NoError(t, err)
	text = []byte(strings.ReplaceAll(string(text), "{{prefix}}", "surfin_"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "1000_create.up.sql"), text, 0o600))
	_, err = migrator.Run(t.Context(), db, migrator.Options{FS: os.DirFS(dir), Dir: ".", Table: "surfin_schema_migrations", Command: migrator.Up})
	require.NoError(t, err)
	now := map[tx.Dialect]string{tx.SQLite: "1700000000000000", tx.Postgres: "to_timestamp(1700000000)"}[db.Dialect()]
	for _, statement := range []string{
		"INSERT INTO surfin_job_instance (job_name, instance_key, created_at) VALUES ('load', '" + (core.Parameters{}).Key() + "', NOW)",
		"INSERT INTO surfin_job_instance (job_name, instance_key, created_at) VALUES ('report', '" + (core.Parameters{}).Key() + "', NOW)",
		"INSERT INTO surfin_job_instance (job_name, instance_key, created_at) VALUES ('empty', '" + (core.Parameters{}).Key() + "', NOW)",
		`INSERT INTO surfin_job_execution (instance_id, job_name, attempt, status, exit_code, error_text, owner, epoch, lease_until, created_at, ended_at)
			VALUES (1, 'load', 1, 'FAILED', 'FAILED', 'no file', 'h/b/1/2/n', 3, NOW, NOW, NOW)`,
		`INSERT INTO surfin_job_execution (instance_id, job_name, attempt, status, owner, epoch, active, lease_until, created_at)
			VALUES (2, 'report', 1, 'STARTED', 'h/b/1/2/n', 1, 1, NOW, NOW)`,
		`INSERT INTO surfin_step_execution (job_execution_id, job_name, name, status, read_count, position, owner, epoch, started_at, ended_at)
			VALUES (1, 'load', 'copy', 'FAILED', 7, '{"at":7}', 'h/b/1/2/n', 3, NOW, NOW)`,
		`INSERT INTO surfin_step_execution (job_execution_id, job_name, name, status, owner, epoch, started_at)
			VALUES (2, 'report', 'write', 'STARTED', 'h/b/1/2/n', 1, NOW)`,
	} {
		_, err := db.Conn().ExecContext(t.Context(), strings.ReplaceAll(statement, "NOW", now))
		require.NoError(t, err, statement)
	}
}

func TestAHistoryOfTheFirstSchemaGoesOnInThisOne(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		ctx, db := t.Context(), connect(t, url)
		version1000(t, db)
		repo := repository.New(db, repository.Options{})
		err := repo.CheckSchema(ctx)
		require.ErrorIs(t, err, core.ErrSchemaMissing)
		require.ErrorContains(t, err, "version 1.0")
		require.ErrorContains(t, err, "needs 1.1")
		require.NoError(t, repo.Migrate(ctx))
		require.NoError(t, repo.CheckSchema(ctx))

		old, err := repo.Execution(ctx, 1)
		require.NoError(t, err)
		require.Equal(t, "no file", old.Error)
		require.Empty(t, old.Gate)
		history, err := repo.LastSteps(ctx, 1, 0)
		require.NoError(t, err)
		copied := history["copy"].Last
		require.Equal(t, core.Counters{Read: 7}, copied.Counters)
		require.Zero(t, copied.Before)

		req := core.LaunchRequest{JobName: "load", Restartable: true, Owner: core.Owner{Host: "new"}, Lease: time.Hour}
		launched, err := repo.Launch(ctx, req)
		require.NoError(t, err)
		require.Equal(t, 2, launched.Execution.Attempt)
		require.Equal(t, int64(3), launched.Execution.Epoch)
		ref := core.JobRef{ID: launched.Execution.ID, Owner: req.Owner, Epoch: 3}
		_, err = repo.ChangeJob(ctx, ref, core.JobChange{To: core.StatusStarted})
		require.NoError(t, err)
		step, err := repo.StartStep(ctx, ref, "copy", &copied)
		require.NoError(t, err)
		require.Equal(t, core.Counters{Read: 7}, step.Total())
		require.Equal(t, core.Position(`{"at":7}`), step.Position)

		ended, err := repo.Recover(ctx, "ada", nil)
		require.NoError(t, err)
		require.Len(t, ended, 1)
		require.Equal(t, core.JobExecutionID(2), ended[0].ID)
		req.JobName = "empty"
		_, err = repo.Launch(ctx, req)
		require.ErrorIs(t, err, core.ErrIllegalState)
	})
}

// A binary that knows 1.0 names its columns, and finds defaults in the others.
func TestABinaryOfTheFirstSchemaGoesOnInThisOne(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		ctx, db := t.Context(), connect(t, url)
		version1000(t, db)
		repo := repository.New(db, repository.Options{})
		require.NoError(t, repo.Migrate(ctx))
		now := map[tx.Dialect]string{tx.SQLite: "1700000000000000", tx.Postgres: "to_timestamp(1700000000)"}[db.Dialect()]
		for _, statement := range []string{
			"INSERT INTO surfin_job_instance (job_name, instance_key, created_at) VALUES ('load', 'k', NOW) ON CONFLICT (job_name, instance_key) DO UPDATE SET job_name = excluded.job_name",
			"INSERT INTO surfin_job_execution (instance_id, job_name, attempt, status, owner, epoch, active, lease_until, created_at) VALUES (4, 'load', 1, 'STARTED', 'h/b/1/2/n', 1, 1, NOW, NOW)",
			"INSERT INTO surfin_step_execution (job_execution_id, job_name, name, status, owner, epoch, started_at) VALUES (3, 'load', 'copy', 'STARTED', 'h/b/1/2/n', 1, NOW)",
		} {
			_, err := db.Conn().ExecContext(ctx, strings.ReplaceAll(statement, "NOW", now))
			require.NoError(t, err, statement)
		}
		found, err := repo.Execution(ctx, 3)
		require.NoError(t, err)
		require.Equal(t, core.StatusStarted, found.Status)
		steps, err := repo.Steps(ctx, 3)
		require.NoError(t, err)
		require.Zero(t, steps[0].Before)
	})
}
