package repository_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Rule OP5.
func TestTheAuditIsPurgedByItsOwnAge(t *testing.T) {
	t.Parallel()
	testengine.EachDatabase(t, func(t *testing.T, db tx.Database) {
		r := repository.New(db, repository.Options{})
		require.NoError(t, r.Migrate(t.Context()))
		for _, detail := range []string{"old", "older", "young"} {
			require.NoError(t, r.NoteAct(t.Context(), ports.VerbMigrate, "ada (root@host)", detail))
		}
		age := map[tx.Dialect]string{tx.Postgres: "at - interval '3 days'", tx.SQLite: "at - 259200000000"}[db.Dialect()]
		_, err := db.Conn().ExecContext(t.Context(), "UPDATE surfin_audit SET at = "+age+" WHERE detail <> 'young'")
		require.NoError(t, err)
		n, err := r.PurgeActs(t.Context(), 2*24*time.Hour, 1)
		require.NoError(t, err)
		require.EqualValues(t, 1, n)
		n, err = r.PurgeActs(t.Context(), 2*24*time.Hour, 100)
		require.NoError(t, err)
		require.EqualValues(t, 1, n)
		acts, _, err := r.Acts(t.Context(), ports.ActFilter{Actor: "ada"})
		require.NoError(t, err)
		require.Len(t, acts, 1)
		require.Equal(t, "young", acts[0].Detail)
		none, _, err := r.Acts(t.Context(), ports.ActFilter{Actor: "a%a"})
		require.NoError(t, err)
		require.Empty(t, none, "a name is no pattern")
		_, _, err = r.Acts(t.Context(), ports.ActFilter{Before: 4711})
		require.ErrorIs(t, err, core.ErrNotFound)
	})
}

func TestActsBeforeTheSchemaKnewThemAreListed(t *testing.T) {
	t.Parallel()
	testengine.EachDatabase(t, func(t *testing.T, db tx.Database) {
		r := repository.New(db, repository.Options{})
		require.NoError(t, r.Migrate(t.Context()))
		now := map[tx.Dialect]string{tx.Postgres: "clock_timestamp()", tx.SQLite: "1"}[db.Dialect()]
		for _, text := range []string{
			"INSERT INTO surfin_audit (at, act, actor, job_execution_id, detail) VALUES (" + now + ", 'abandon', 'ada@host', 7, '')",
			"INSERT INTO surfin_audit (at, act, actor, job_execution_id, detail) VALUES (" + now + ", 'launch', 'process 1 on h', 7, 'for API client anna')",
			"INSERT INTO surfin_audit (at, act, actor, job_execution_id, detail) VALUES (" + now + ", 'launch', 'process 1 on h', 8, '')",
			"INSERT INTO surfin_audit (at, act, actor, job_execution_id, step_execution_id, detail) VALUES (" + now + ", 'end step', 'process 1 on h', 8, 1, '')",
			"INSERT INTO surfin_audit (at, act, actor, job_execution_id, detail) VALUES (" + now + ", 'enable', 'ada@host', 0, 'nightly')",
			"INSERT INTO surfin_task_audit (at, task_id, act, actor, detail) VALUES (" + now + ", 0, 'set', 'ada@host', 'x = 1')",
			"INSERT INTO surfin_task_audit (at, task_id, act, actor, detail) VALUES (" + now + ", 1, 'cancel', 'reaper', '')",
			"DROP INDEX surfin_audit_actor", "DROP INDEX surfin_audit_act", "DROP INDEX surfin_task_audit_act",
			"ALTER TABLE surfin_audit DROP COLUMN verb", "ALTER TABLE surfin_audit DROP COLUMN person", "ALTER TABLE surfin_audit DROP COLUMN job_name",
			"ALTER TABLE surfin_task_audit DROP COLUMN verb", "ALTER TABLE surfin_task_audit DROP COLUMN person",
			"ALTER TABLE surfin_job_instance DROP COLUMN local_times", "ALTER TABLE surfin_job_execution DROP COLUMN local_times",
			"ALTER TABLE surfin_skipped_item DROP COLUMN fault", "ALTER TABLE surfin_leader DROP COLUMN since", "ALTER TABLE surfin_leader DROP COLUMN since_epoch",
			"UPDATE surfin_schema_migrations SET version = 2012",
		} {
			_, err := db.Conn().ExecContext(t.Context(), text)
			require.NoError(t, err, text)
		}
		require.NoError(t, r.Migrate(t.Context()))
		acts, _, err := r.Acts(t.Context(), ports.ActFilter{})
		require.NoError(t, err)
		had := map[string]string{}
		for _, a := range acts {
			had[a.Verb] = a.Actor
		}
		require.Equal(t, map[string]string{ports.VerbAbandon: "ada@host", ports.VerbRun: "API client anna", ports.VerbEnable: "ada@host", ports.VerbSet: "ada@host"}, had)
	})
}

func TestASearchInTheAuditReadsAFewActsAtATime(t *testing.T) {
	t.Parallel()
	testengine.EachDatabase(t, func(t *testing.T, db tx.Database) {
		r := repository.New(db, repository.Options{})
		require.NoError(t, r.Migrate(t.Context()))
		require.NoError(t, r.NoteAct(t.Context(), ports.VerbMigrate, "ada", "the oldest"))
		_, err := db.Conn().ExecContext(t.Context(), `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 11000)
			INSERT INTO surfin_audit (at, act, job_execution_id, verb, person, detail) SELECT a.at, 'launch', i, 'run', 'bob', CAST(i AS text) FROM n, surfin_audit a`)
		require.NoError(t, err)
		before, calls := int64(0), 0
		for ; ; calls++ {
			list, next, err := r.Acts(t.Context(), ports.ActFilter{Actor: "ada", Before: before, Limit: 10})
			require.NoError(t, err)
			if before = next; next == 0 {
				require.Len(t, list, 1)
				require.Equal(t, "the oldest", list[0].Detail)
				break
			}
			require.Empty(t, list)
		}
		require.Equal(t, 2, calls, "a call reads 5,000 acts")

		seen := map[string]bool{}
		for before, more := int64(0), true; more; more = before != 0 {
			var list []ports.Act
			list, before, err = r.Acts(t.Context(), ports.ActFilter{Before: before, Limit: 2500})
			require.NoError(t, err)
			for _, a := range list {
				require.False(t, seen[a.Detail], a.Detail)
				seen[a.Detail] = true
			}
		}
		require.Len(t, seen, 11_001)
	})
}
