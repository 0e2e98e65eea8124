package repository_test

import (
	"bytes"
	"context"
	"database/sql"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/migrator"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestMissingSchemaNamesTheCommandThatMakesIt(t *testing.T) {
	t.Parallel()
	testdb.EachEmpty(t, func(t *testing.T, url string) {
		repo := repository.New(connect(t, url), repository.Options{})
		err := repo.CheckSchema(t.Context())
		require.ErrorIs(t, err, core.ErrSchemaMissing)
		require.ErrorContains(t, err, "run `surfin migrate`")
		require.ErrorContains(t, err, "database default")

		require.NoError(t, repo.Migrate(t.Context()))
		require.NoError(t, repo.CheckSchema(t.Context()))
		require.NoError(t, repo.Migrate(t.Context()), "once more is nothing more")
	})
}

func TestSchemaVersionsAreJudged(t *testing.T) {
	t.Parallel()
	testdb.EachEmpty(t, func(t *testing.T, url string) {
		db := connect(t, url)
		repo := repository.New(db, repository.Options{})
		require.NoError(t, repo.Migrate(t.Context()))
		set := func(assignment string) {
			_, err := db.Conn().ExecContext(t.Context(), "UPDATE surfin_schema_migrations SET "+assignment)
			require.NoError(t, err)
		}

		for _, old := range []string{"1000", "1001"} {
			set("version = " + old)
			for _, refuse := range []func() error{
				func() error { return repo.CheckSchema(t.Context()) },
				func() error { return repo.Migrate(t.Context()) },
			} {
				err := refuse()
				require.ErrorIs(t, err, repository.ErrSchemaTooOld)
				require.NotErrorIs(t, err, core.ErrSchemaMissing, "nothing migrates it")
				require.ErrorContains(t, err, "version 1.")
				if db.Dialect() == tx.SQLite {
					require.ErrorContains(t, err, "delete the file /")
				} else {
					require.ErrorContains(t, err, "drop the tables surfin_*")
				}
			}
		}

		set("version = 2900")
		require.NoError(t, repo.CheckSchema(t.Context()), "a newer minor only adds")
		require.NoError(t, repo.Migrate(t.Context()))

		set("version = 3000")
		for _, refuse := range []func() error{
			func() error { return repo.CheckSchema(t.Context()) },
			func() error { return repo.Migrate(t.Context()) },
		} {
			err := refuse()
			require.ErrorIs(t, err, repository.ErrSchemaNewer)
			require.NotErrorIs(t, err, core.ErrSchemaMissing)
			require.ErrorContains(t, err, "3.0")
		}

		if db.Dialect() == tx.SQLite {
			return // there a migration is atomic
		}
		set("version = 2000, dirty = true")
		err := repo.CheckSchema(t.Context())
		require.ErrorIs(t, err, core.ErrSchemaMissing)
		require.ErrorContains(t, err, "did not end")
		require.NoError(t, repo.Migrate(t.Context()), "a migration whose process was killed is repeated")
		require.NoError(t, repo.CheckSchema(t.Context()))
		run(t, repo.Ports())
	})
}

func TestSchemaWithAddedColumnsAndTablesIsUsedByAnOlderBinary(t *testing.T) {
	t.Parallel()
	testdb.EachEmpty(t, func(t *testing.T, url string) {
		db := connect(t, url)
		repo := repository.New(db, repository.Options{})
		require.NoError(t, repo.Migrate(t.Context()))
		exec := run(t, repo.Ports())
		for _, table := range []string{"job_instance", "job_execution", "job_execution_param", "step_execution", "audit"} {
			_, err := db.Conn().ExecContext(t.Context(), "ALTER TABLE surfin_"+table+" ADD COLUMN added text NOT NULL DEFAULT 'x'")
			require.NoError(t, err)
		}
		found, err := repo.Execution(t.Context(), exec)
		require.NoError(t, err)
		require.Equal(t, core.StatusFailed, found.Status)
		run(t, repo.Ports())
	})
}

func run(t *testing.T, repo ports.Repository) core.JobExecutionID {
	t.Helper()
	launched, err := repo.Launch(t.Context(), ports.LaunchRequest{JobName: "load", Restartable: true, Owner: core.Owner{Host: "h"}, Lease: 1e9})
	require.NoError(t, err)
	exec := launched.Execution
	ref := ports.JobRef{ID: exec.ID, Owner: exec.Owner, Epoch: exec.Epoch}
	_, err = repo.ChangeJob(t.Context(), ref, ports.JobChange{To: core.StatusStarted})
	require.NoError(t, err)
	step, err := repo.StartStep(t.Context(), ref, ports.StepStart{Name: "one"})
	require.NoError(t, err)
	_, err = repo.EndStep(t.Context(), ports.StepRef{ID: step.ID, Owner: step.Owner, Epoch: step.Epoch}, ports.StepChange{To: core.StatusFailed})
	require.NoError(t, err)
	_, err = repo.ChangeJob(t.Context(), ref, ports.JobChange{To: core.StatusFailed})
	require.NoError(t, err)
	_, err = repo.LastSteps(t.Context(), exec.InstanceID, 0)
	require.NoError(t, err)
	return exec.ID
}

func TestProcessesThatMigrateAtOnceBothSucceed(t *testing.T) {
	t.Parallel()
	testdb.EachEmpty(t, func(t *testing.T, url string) {
		const processes = 4
		errs := make(chan error, processes)
		for range processes {
			repo := repository.New(connect(t, url), repository.Options{})
			go func() { errs <- repo.Migrate(t.Context()) }()
		}
		for range processes {
			require.NoError(t, <-errs)
		}
	})
}

func TestRepositoriesWithOtherPrefixesLiveSideBySide(t *testing.T) {
	t.Parallel()
	testdb.EachEmpty(t, func(t *testing.T, url string) {
		db := connect(t, url)
		for _, prefix := range []string{"", "batch_", "x"} {
			repo := repository.New(db, repository.Options{Prefix: prefix})
			require.ErrorIs(t, repo.CheckSchema(t.Context()), core.ErrSchemaMissing)
			require.NoError(t, repo.Migrate(t.Context()))
			require.Equal(t, core.JobExecutionID(1), run(t, repo.Ports()))
		}
		for _, prefix := range []string{"Batch_", "a b", `a"b`, "a.b", "1a", strings.Repeat("a", 31)} {
			repo := repository.New(db, repository.Options{Prefix: prefix})
			require.ErrorContains(t, repo.Migrate(t.Context()), "prefix")
			require.ErrorContains(t, repo.CheckSchema(t.Context()), "prefix")
		}
	})
}

// hot are the columns that a chunk commit, a heartbeat or the start of a step
// changes.
func hot() map[string][]string {
	return map[string][]string{
		"surfin_step_execution": {
			"read_count", "filter_count", "write_count", "read_skip_count", "process_skip_count",
			"write_skip_count", "commit_count", "rollback_count", "position", "context",
		},
		"surfin_job_execution": {"lease_until", "step_count"},
	}
}

func TestNoIndexHoldsAColumnThatAChunkOrHeartbeatChanges(t *testing.T) {
	t.Parallel()
	testdb.EachEmpty(t, func(t *testing.T, url string) {
		db := connect(t, url)
		require.NoError(t, repository.New(db, repository.Options{}).Migrate(t.Context()))
		for table, columns := range hot() {
			indexed := query(t, db, map[tx.Dialect]string{
				tx.SQLite: `SELECT c.name FROM pragma_index_list(?1) i, pragma_index_info(i.name) c`,
				tx.Postgres: `SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
					WHERE i.indrelid = to_regclass($1)`,
			}, table)
			require.NotEmpty(t, indexed)
			for _, column := range columns {
				require.NotContains(t, indexed, column)
			}
			if db.Dialect() == tx.Postgres {
				require.Equal(t, []string{"{fillfactor=70}"}, query(t, db, map[tx.Dialect]string{
					tx.Postgres: `SELECT reloptions::text FROM pg_class WHERE oid = to_regclass($1)`}, table))
			}
		}
	})
}

func TestEveryForeignKeyBeginsAnIndex(t *testing.T) {
	t.Parallel()
	testdb.EachEmpty(t, func(t *testing.T, url string) {
		db := connect(t, url)
		require.NoError(t, repository.New(db, repository.Options{}).Migrate(t.Context()))
		keys := 0
		for _, table := range []string{"job_execution", "job_execution_param", "step_execution", "skipped_item"} {
			foreign := query(t, db, map[tx.Dialect]string{
				tx.SQLite: `SELECT "from" FROM pragma_foreign_key_list(?1)`,
				tx.Postgres: `SELECT a.attname FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
					WHERE c.contype = 'f' AND c.conrelid = to_regclass($1)`,
			}, "surfin_"+table)
			first := query(t, db, map[tx.Dialect]string{
				tx.SQLite: `SELECT c.name FROM pragma_index_list(?1) i, pragma_index_info(i.name) c WHERE c.seqno = 0`,
				tx.Postgres: `SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
					WHERE i.indrelid = to_regclass($1)`,
			}, "surfin_"+table)
			for _, column := range foreign {
				require.Contains(t, first, column, table)
				keys++
			}
		}
		require.Equal(t, 5, keys)
	})
}

func TestDialectsHaveTheSameColumns(t *testing.T) {
	t.Parallel()
	columns := func(t *testing.T, url string) (all []string) {
		db := connect(t, url)
		require.NoError(t, repository.New(db, repository.Options{}).Migrate(t.Context()))
		for _, table := range []string{"job_instance", "job_execution", "job_execution_param", "step_execution", "skipped_item", "audit"} {
			for _, column := range query(t, db, map[tx.Dialect]string{
				tx.SQLite:   `SELECT name FROM pragma_table_info(?1) ORDER BY cid`,
				tx.Postgres: `SELECT attname FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 ORDER BY attnum`,
			}, "surfin_"+table) {
				all = append(all, table+"."+column)
			}
		}
		return all
	}
	require.Equal(t, columns(t, testdb.EmptySQLite(t)), columns(t, testdb.EmptyPostgres(t)))
}

// Jobs that run lock the tables of executions and of steps, in either order. A
// migration that waits for one of them must hold no lock of the other (schema
// 2.4 and 2.5).
func TestAMigrationBesideJobsThatRunMakesNoDeadlock(t *testing.T) {
	t.Parallel()
	tables := map[string]string{
		"execution": "UPDATE surfin_job_execution SET exit_code = '' WHERE id = $1",
		"step":      "UPDATE surfin_step_execution SET exit_code = '' WHERE job_execution_id = $1",
	}
	for first, then := range map[string]string{"execution": "step", "step": "execution"} {
		t.Run(first+" first", func(t *testing.T) {
			t.Parallel()
			db := connect(t, testdb.EmptyPostgres(t))
			migrateTo(t, db, 2003)
			repo := repository.New(db, repository.Options{})
			const exec = 1 // there is none: what counts are the locks of the tables
			migrated := make(chan error, 1)
			require.NoError(t, tx.NewManager(db).Do(t.Context(), tx.Attr{}, func(ctx context.Context) error {
				job := tx.ConnOf(ctx, db)
				if _, err := job.ExecContext(ctx, tables[first], exec); err != nil {
					return err
				}
				go func() { migrated <- repo.Migrate(t.Context()) }()
				require.Eventually(t, func() bool {
					return query(t, db, map[tx.Dialect]string{tx.Postgres: `SELECT count(*)::text FROM pg_locks WHERE NOT granted AND locktype = 'relation'
						AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`})[0] == "1"
				}, 10*time.Second, 10*time.Millisecond)
				_, err := job.ExecContext(ctx, tables[then], exec)
				return err
			}))
			require.NoError(t, <-migrated)
			require.NoError(t, repo.CheckSchema(t.Context()))
			run(t, repo.Ports())
		})
	}
}

func migrateTo(t *testing.T, db tx.Database, version int) {
	t.Helper()
	dir := "migrations/" + string(db.Dialect())
	files, err := fs.Glob(os.DirFS("."), dir+"/*.sql")
	require.NoError(t, err)
	fsys := fstest.MapFS{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		fsys[name] = &fstest.MapFile{Data: bytes.ReplaceAll(text, []byte("{{prefix}}"), []byte("surfin_"))}
	}
	_, err = migrator.Run(t.Context(), db, migrator.Options{
		FS: fsys, Dir: dir, Table: "surfin_schema_migrations", Command: migrator.Goto, Version: version,
	})
	require.NoError(t, err)
}

func query(t *testing.T, db tx.Database, text map[tx.Dialect]string, args ...any) (values []string) {
	t.Helper()
	rows, err := db.Conn().QueryContext(t.Context(), text[db.Dialect()], args...)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	for rows.Next() {
		var v sql.NullString
		require.NoError(t, rows.Scan(&v))
		values = append(values, v.String)
	}
	require.NoError(t, rows.Err())
	return slices.Compact(values)
}
