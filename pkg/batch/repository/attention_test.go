package repository_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// manyJobs fills the history with n executions of 200 jobs, each with two steps. One in 40 has FAILED;
// the second half of these, in the order of time, was restarted and completed. One in 100 has a skipped
// item that is left.
func manyJobs(t *testing.T, db tx.Database, n int) {
	t.Helper()
	now := gormtx.Now(db.Dialect())
	at := map[tx.Dialect]string{tx.Postgres: now + " - make_interval(secs => %d - n)", tx.SQLite: now + " - (%d - n) * 1000000"}[db.Dialect()]
	exec := func(text string) {
		_, err := db.Conn().ExecContext(t.Context(), strings.NewReplacer("{at}", fmt.Sprintf(at, n), "{numbers}", "("+numbers(db.Dialect(), n)+") AS x", "{half}", strconv.Itoa(n/2)).Replace(text))
		require.NoError(t, err, text)
	}
	exec(`INSERT INTO surfin_job_instance (id, job_name, instance_key, created_at) SELECT n, 'job ' || (n % 200), 'k' || n, {at} FROM {numbers}`)
	exec(`INSERT INTO surfin_job_execution (id, instance_id, job_name, attempt, status, active, owner, epoch, created_at, started_at, ended_at, step_count)
		SELECT n, n, 'job ' || (n % 200), 1, CASE WHEN n % 40 = 3 THEN 'FAILED' WHEN n % 10000 = 1 THEN 'STARTED' ELSE 'COMPLETED' END,
		CASE WHEN n % 10000 = 1 THEN 1 END, 'o', 1, {at}, {at}, CASE WHEN n % 10000 <> 1 THEN {at} END, 2 FROM {numbers}`)
	exec(`INSERT INTO surfin_job_execution (id, instance_id, job_name, attempt, status, owner, epoch, created_at, started_at, ended_at, step_count)
		SELECT n + 10000000, n, 'job ' || (n % 200), 2, 'COMPLETED', 'o', 1, {at}, {at}, {at}, 2 FROM {numbers} WHERE n % 40 = 3 AND n > {half}`)
	for step := range 2 {
		exec(fmt.Sprintf(`INSERT INTO surfin_step_execution (id, job_execution_id, job_name, name, status, owner, epoch, started_at, read_count)
			SELECT 2 * n + %[1]d, n, 'job ' || (n %% 200), 's%[1]d', CASE WHEN n %% 10000 = 1 THEN 'STARTED' ELSE 'COMPLETED' END, 'o', 1, {at}, n %% 1000 FROM {numbers}`, step))
	}
	exec(`INSERT INTO surfin_skipped_item (job_execution_id, step_execution_id, phase, created_at) SELECT n, 2 * n, 'process', {at} FROM {numbers} WHERE n % 100 = 7`)
	exec(`UPDATE surfin_step_execution SET status = 'FAILED', error_text = 'x' WHERE job_execution_id % 40 = 3 AND name = 's1'`)
	exec(`INSERT INTO surfin_job_execution_param (job_execution_id, name, type, value, identifying)
		SELECT n, 'day', 'date', '2026-11-' || (10 + (n / 200) % 20), true FROM {numbers}`)
	exec(`INSERT INTO surfin_job_execution_param (job_execution_id, name, type, value, identifying)
		SELECT n, 'due', 'date', '2026-12-' || (10 + n % 20), true FROM {numbers} WHERE n <= 400`)
	if db.Dialect() == tx.Postgres { // PostgreSQL does this by itself, but later
		exec("ANALYZE")
	}
}

func TestWhatNeedsAPersonIsReadFromIndexesHoweverLongTheHistoryIs(t *testing.T) {
	t.Parallel()
	n := 20_000
	if text := os.Getenv(figuresVariable); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	testengine.EachDatabase(t, func(t *testing.T, db tx.Database) {
		require.NoError(t, repository.New(db, repository.Options{}).Migrate(t.Context()))
		manyJobs(t, db, n)
		w := &watched{Database: db}
		r := repository.New(w, repository.Options{})
		ctx, long := t.Context(), time.Now().AddDate(-1, 0, 0)
		var names []string
		for _, step := range []struct {
			name string
			do   func() error
		}{
			{"uncleared", func() error {
				found, err := r.Uncleared(ctx, ports.UnclearedRequest{Since: long, Limit: 51})
				require.Len(t, found.Skipped, 51)
				return err
			}},
			{"the last page of them", func() error {
				found, err := r.Uncleared(ctx, ports.UnclearedRequest{Since: long, Limit: 51, Before: core.JobExecutionID(n / 4)})
				require.Len(t, found.Attempts, 51)
				return err
			}},
			{"running", func() error {
				ids, err := r.OldestRunning(ctx, 200)
				require.Len(t, ids, n/10000)
				return err
			}},
			{"open steps", func() error {
				steps, err := r.OpenSteps(ctx, time.Now(), 1, 10001)
				require.Len(t, steps, 4)
				return err
			}},
			{"ended", func() error {
				counts, err := r.EndedSince(ctx, long, 5_001)
				require.Equal(t, 5_001, counts.Statuses[core.StatusCompleted]+counts.Statuses[core.StatusFailed])
				return err
			}},
			{"dead events", func() error { _, err := r.DeadTopics(ctx, 100); return err }},
			{"left out", func() error { _, err := r.LeftOut(ctx, long); return err }},
			{"waiting runs", func() error { _, _, err := r.WaitingRuns(ctx); return err }},
			{"names", func() (err error) { names, err = r.JobNames(ctx, 10_000); return err }},
			{"runs of jobs", func() error {
				list, err := r.JobRuns(ctx, 20, 30, names...)
				require.Len(t, list, 200)
				require.Len(t, list[0].Newest, 20)
				require.Len(t, list[0].Completed, 30)
				return err
			}},
			{"runs", func() error {
				var ids []core.JobExecutionID
				for id := range core.JobExecutionID(1000) {
					ids = append(ids, id+1)
				}
				runs, err := r.Runs(ctx, ids...)
				require.Len(t, runs, 1000)
				require.EqualValues(t, 10, *runs[5].Rows)
				return err
			}},
			{"failed steps", func() error {
				failed, err := r.FailedSteps(ctx, 1, 2, 3, 43)
				require.Equal(t, map[core.JobExecutionID]string{3: "s1", 43: "s1"}, failed)
				return err
			}},
			{"a calendar", func() error {
				found, err := r.Calendar(ctx, ports.CalendarFilter{JobName: "job 7", Param: "due", Values: []string{"2026-12-16", "2026-12-17", "2026-12-18"}})
				require.Equal(t, ports.Calendar{Runs: []ports.CalendarRun{
					{Value: "2026-12-17", ID: 207, Instance: 207, Status: core.StatusCompleted}, {Value: "2026-12-17", ID: 7, Instance: 7, Status: core.StatusCompleted},
				}}, found)
				return err
			}},
			{"a calendar of frequent values", func() error {
				var days []string
				for day := range 20 {
					days = append(days, fmt.Sprintf("2026-11-%d", day+10))
				}
				found, err := r.Calendar(ctx, ports.CalendarFilter{JobName: "job 7", Param: "day", Values: days})
				require.Len(t, found.Runs, n/200)
				require.Empty(t, found.Unread)
				return err
			}},
			{"skips left", func() error {
				left, err := r.SkipsLeft(ctx, 100, 7, 8)
				require.Equal(t, map[core.JobExecutionID]ports.SkipsLeft{7: {Count: 1, Items: 1}}, left)
				return err
			}},
		} {
			w.queries = nil
			best := time.Hour
			for range 3 {
				begun := time.Now()
				require.NoError(t, step.do(), step.name)
				best = min(best, time.Since(begun))
			}
			t.Logf("%s: %d executions on %s: %v for %d statements", step.name, n, db.Dialect(), best, len(w.queries)/3)
			for _, query := range w.queries[:len(w.queries)/3] {
				plan := planOf(t, db, query)
				t.Log(plan)
				for _, table := range []string{"job_execution", "step_execution"} {
					require.NotRegexp(t, `(?im)seq scan on surfin_`+table+`\b|scan (surfin_)?`+table+`\s*$`, plan, query.text)
				}
			}
		}
	})
}
