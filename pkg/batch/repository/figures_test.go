package repository_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// figuresVariable sets the number of executions in the history of the test; the default is 20,000.
const figuresVariable = "SURFIN_TEST_FIGURES"

func numbers(d tx.Dialect, n int) string {
	if d == tx.Postgres {
		return fmt.Sprintf("SELECT n FROM generate_series(1, %d) AS s(n)", n)
	}
	return fmt.Sprintf("WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < %d) SELECT n FROM s", n)
}

// longHistory fills the tables: executions of 40 jobs, one in 50 failed, with 20 open ones.
func longHistory(t *testing.T, db tx.Database, n int) {
	t.Helper()
	now := gormtx.Now(db.Dialect())
	far := map[tx.Dialect]string{tx.Postgres: now + " + interval '1 hour'", tx.SQLite: now + " + 3600000000"}[db.Dialect()]
	exec := func(text string) {
		_, err := db.Conn().ExecContext(t.Context(), strings.NewReplacer("{now}", now, "{far}", far, "{numbers}", "("+numbers(db.Dialect(), n)+") AS x").Replace(text))
		require.NoError(t, err, text)
	}
	exec(`INSERT INTO surfin_job_instance (id, job_name, instance_key, created_at) SELECT n, 'job ' || (n % 40), 'k' || n, {now} FROM {numbers}`)
	exec(`INSERT INTO surfin_job_execution (id, instance_id, job_name, attempt, status, active, owner, epoch, created_at, ended_at)
		SELECT n, n, 'job ' || (n % 40), 1, CASE WHEN n % 50 = 0 THEN 'FAILED' WHEN n % 1000 = 1 THEN 'STARTED' ELSE 'COMPLETED' END,
		CASE WHEN n % 50 <> 0 AND n % 1000 = 1 THEN 1 END, 'o', 1, {now}, {now} FROM {numbers}`)
	exec(`INSERT INTO surfin_step_execution (id, job_execution_id, job_name, name, status, owner, epoch, started_at, manager_id)
		SELECT n, n, 'job ' || (n % 40), 's', CASE WHEN n % 1000 = 1 THEN 'STARTING' ELSE 'COMPLETED' END, '', 1, {now}, 1 FROM {numbers}`)
	exec(`INSERT INTO surfin_task_group (id, budget, task_count, created_at, updated_at) VALUES (1, '{}', 1, {now}, {now})`)
	exec(`INSERT INTO surfin_task (id, group_id, ordinal, type, priority, spec, state, delivered_at, created_at, updated_at, job_definition_id, scheduled_for)
		SELECT n, 1, n, CASE WHEN n % 100 = 1 THEN 'job' ELSE 'shell' END, 1, '{}', CASE WHEN n % 500 = 1 THEN 'PENDING' ELSE 'SUCCEEDED' END, {now}, {now}, {now},
		CASE WHEN n % 100 = 1 THEN n % 7 + 1 END, CASE WHEN n % 100 = 1 THEN 'd' || n END FROM {numbers}`)
	exec(`INSERT INTO surfin_event (id, topic, subject, dedupe_key, offer_after, created_at, dead_at)
		SELECT n, 'paid', n, 'e' || n, 0, {now}, CASE WHEN n % 10000 = 1 THEN {now} END FROM {numbers}`)
	exec(`INSERT INTO surfin_worker (name, capacity, types, started_at, heartbeat_at, lease_until, left_at) VALUES
		('a', 1, '[]', {now}, {now}, {far}, NULL), ('b', 1, '[]', {now}, {now}, {now}, {now})`)
	if db.Dialect() == tx.Postgres { // PostgreSQL does this by itself, but later
		exec("ANALYZE")
	}
}

// Rule OP1.
func TestFiguresAreReadFromIndexesHoweverLongTheHistoryIs(t *testing.T) {
	t.Parallel()
	n := 20_000
	if text := os.Getenv(figuresVariable); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	testengine.EachDatabase(t, func(t *testing.T, db tx.Database) {
		require.NoError(t, repository.New(db, repository.Options{}).Migrate(t.Context()))
		longHistory(t, db, n)
		w := &watched{Database: db}
		r := repository.New(w, repository.Options{})
		begun := time.Now()
		f, waiting, err := r.Figures(t.Context())
		require.NoError(t, err)
		took := time.Since(begun)
		require.LessOrEqual(t, len(w.queries), 4, "and one more for the schedules")

		require.Len(t, f.Completed, 40)
		require.WithinDuration(t, time.Now(), f.Completed["job 1"], time.Hour)
		require.EqualValues(t, n/1000, openOf(f, "job 1", core.StatusStarted))
		require.EqualValues(t, n/1000, f.Parts["job 1"])
		require.EqualValues(t, n/500, f.Tasks["job"]+f.Tasks["shell"])
		require.EqualValues(t, n/10000, f.DeadEvents["paid"])
		require.EqualValues(t, 1, f.Workers)
		require.NotEmpty(t, waiting)
		require.WithinDuration(t, time.Now(), f.At, time.Hour)
		t.Logf("%d executions on %s: %v for all statements", n, db.Dialect(), took)
		for _, query := range w.queries {
			plan := planOf(t, db, query)
			t.Log(plan)
			require.NotRegexp(t, "execution_manager|execution_job_status|event_open", plan, "their size is that of the history")
			for _, table := range []string{"job_execution", "step_execution", "task", "event"} {
				require.NotRegexp(t, `(?im)seq scan on surfin_`+table+`\b|scan (surfin_)?`+table+`\s*$`, plan, query.text)
			}
		}
	})
}

func openOf(f core.Figures, job string, status core.Status) int64 {
	for _, o := range f.Open {
		if o.JobName == job && o.Status == status {
			return o.Count
		}
	}
	return 0
}

type watched struct {
	tx.Database
	queries []sentQuery
}

type sentQuery struct {
	text string
	args []any
}

func (w *watched) Conn() tx.Conn { return watchedConn{w.Database.Conn(), w} }

type watchedConn struct {
	tx.Conn
	w *watched
}

func (c watchedConn) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	c.w.queries = append(c.w.queries, sentQuery{text, args})
	return c.Conn.QueryContext(ctx, text, args...)
}

func planOf(t *testing.T, db tx.Database, q sentQuery) string {
	t.Helper()
	explain := map[tx.Dialect]string{tx.Postgres: "EXPLAIN (ANALYZE, COSTS OFF) ", tx.SQLite: "EXPLAIN QUERY PLAN "}[db.Dialect()]
	rows, err := db.Conn().QueryContext(t.Context(), explain+q.text, q.args...)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	columns, err := rows.Columns()
	require.NoError(t, err)
	var lines []string
	for rows.Next() {
		values, into := make([]string, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		require.NoError(t, rows.Scan(into...))
		lines = append(lines, values[len(values)-1])
	}
	require.NoError(t, rows.Err())
	return strings.Join(lines, "\n")
}
