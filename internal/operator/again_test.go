package operator

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/redrive"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func TestTheNextInstanceFollowsTheNewestThatIsNoRepetition(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url)
		s.write("day.yaml", `job: daily
parameters:
  day: {type: date}
incrementer: day
flow:
- step: check
  tasklet: {sql: select 1}
`)
		path := filepath.Join(s.dir, "day.yaml")
		day := map[string]string{"day": "2026-11-20"}
		for i, req := range []RunRequest{{Params: day}, {}, {Params: day, Again: true}, {}, {Next: true}} {
			req.File = path
			exec, err := s.s.Run(t.Context(), req)
			require.NoError(t, err)
			made, _ := exec.Params.Get("day")
			text, err := made.Canonical()
			require.NoError(t, err)
			require.Equal(t, []string{"2026-11-20", "2026-11-21", "2026-11-20", "2026-11-22", "2026-11-23"}[i], text)
		}
	})
}

func TestARedriveFollowsTheNewestThatAPurgeLeft(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s, ctx := newScene(t, url), t.Context()
		plan := &redrive.Plan{Request: redrive.Request{Execution: 999, Step: "load.all"}}
		j := &model.Job{Name: "load", Restartable: true}
		end := func(n int64, status core.Status) {
			t.Helper()
			params, err := withRedrive(core.Parameters{}, plan.Execution, plan.Step, n)
			require.NoError(t, err)
			launched, err := s.e.Repository.Launch(ctx, ports.LaunchRequest{JobName: j.Name, Params: params, Restartable: true, RedriveOf: plan.Execution, Lease: time.Hour})
			require.NoError(t, err)
			s.e.Exec(fmt.Sprintf("UPDATE surfin_job_execution SET status = '%s', active = NULL, ended_at = created_at WHERE id = %d", status, launched.Execution.ID))
		}
		number := func() int64 {
			t.Helper()
			params, err := s.s.runs.redrives.redriveParameters(ctx, RedriveRequest{}, plan, core.Parameters{})
			require.NoError(t, err)
			require.Equal(t, plan.Step, redrivenStep(params))
			return redriveNumber(params)
		}
		require.Equal(t, int64(1), number())
		end(1, core.StatusCompleted)
		require.Equal(t, int64(2), number())
		end(2, core.StatusFailed)
		purged, err := s.s.Purge(ctx, PurgeRequest{EndedBefore: time.Now().Add(time.Hour)})
		require.NoError(t, err)
		require.Equal(t, int64(1), purged.Instances)
		require.Equal(t, int64(2), number(), "the one that failed goes on, though the first is gone")
		end(2, core.StatusCompleted)
		require.Equal(t, int64(3), number())
	})
}

// Rule L3a.
func TestOnlyTheIncrementAndWhatIsInheritedFollowTheLastExecution(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url)
		s.write("n.yaml", `job: n
parameters:
  n: {type: int, default: 1}
  region: {type: string, required: true}
  bad: {type: string, default: "no", identifying: false}
  mode: {type: string, default: plain, identifying: false}
incrementer: n
inherit: [region, mode]
flow:
- step: check
  tasklet: {sql: "insert into t values (${params.n}, ${params.region}, ${params.bad}, ${params.mode})"}
`)
		path := filepath.Join(s.dir, "n.yaml")
		run := func(want core.Status, params map[string]string) {
			t.Helper()
			exec, err := s.s.Run(t.Context(), RunRequest{File: path, Params: params})
			require.NoError(t, err)
			require.Equal(t, want, exec.Status)
		}
		run(core.StatusFailed, map[string]string{"n": "2", "region": "eu", "bad": "yes", "mode": "fast"})
		s.e.Exec("CREATE TABLE t (n bigint, region text, bad text, mode text)")
		run(core.StatusCompleted, nil) // it resumes the instance
		run(core.StatusCompleted, nil)
		run(core.StatusCompleted, map[string]string{"region": "us", "bad": "yes"})
		run(core.StatusCompleted, map[string]string{"mode": "slow"})
		var got []string
		rows, err := s.e.Database.Conn().QueryContext(t.Context(), "SELECT cast(n AS text) || ' ' || region || ' ' || bad || ' ' || mode FROM t ORDER BY n")
		require.NoError(t, err)
		defer rows.Close() //nolint:errcheck // rows.Err is checked
		for rows.Next() {
			var x string
			require.NoError(t, rows.Scan(&x))
			got = append(got, x)
		}
		require.NoError(t, rows.Err())
		require.Equal(t, []string{"2 eu no fast", "3 eu no fast", "4 us yes fast", "5 us no slow"}, got)

		s.write("m.yaml", "job: m\nparameters: {n: {type: int, default: 1}, region: {type: string, required: true}}\nincrementer: n\nflow:\n- {step: one, tasklet: {sql: select 1}}\n")
		path = filepath.Join(s.dir, "m.yaml")
		run(core.StatusCompleted, map[string]string{"region": "eu"})
		_, err = s.s.Run(t.Context(), RunRequest{File: path})
		require.ErrorContains(t, err, "parameter region: it is required (type string) (the next instance keeps only inherited parameters: set it, or write inherit: [region])")
	})
}

// Rule L3a.
func TestTheNextInstanceDoesNotFollowABackfill(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url)
		s.write("day.yaml", "job: daily\nparameters: {day: {type: date}}\nincrementer: day\nflow:\n- {step: check, tasklet: {sql: \"insert into t values (1)\"}}\n")
		path := filepath.Join(s.dir, "day.yaml")
		next := func(want string, params map[string]string) {
			t.Helper()
			exec, err := s.s.Run(t.Context(), RunRequest{File: path, Params: params})
			require.NoError(t, err)
			made, _ := exec.Params.Get("day")
			require.Equal(t, want, made.Text())
		}
		backfill := func(from, to string) {
			t.Helper()
			_, err := s.s.Backfill(t.Context(), BackfillRequest{RunRequest: RunRequest{File: path}, Param: "day", From: from, To: to})
			require.NoError(t, err)
		}
		s.e.Exec("CREATE TABLE t (x int)")
		backfill("2025-01-01", "2025-01-02")
		next("2025-01-03", nil) // there is no other
		next("2026-11-20", map[string]string{"day": "2026-11-20"})
		backfill("2026-01-01", "2026-01-03")
		next("2026-11-21", nil)
		s.e.Exec("DROP TABLE t")
		backfill("2026-02-01", "2026-02-01") // it fails
		s.e.Exec("CREATE TABLE t (x int)")
		next("2026-11-22", nil)
		backfill("2026-11-23", "2026-11-24")
		next("2026-11-25", nil) // those are complete
		_, err := s.s.Purge(t.Context(), PurgeRequest{EndedBefore: time.Now().Add(time.Hour)})
		require.NoError(t, err)
		next("2026-11-26", nil)
	})
}
