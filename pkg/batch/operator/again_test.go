package operator

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/chunk/redrive"
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
		j := &core.Job{Name: "load", Restartable: true}
		end := func(n int64, status core.Status) {
			t.Helper()
			params, err := withRedrive(core.Parameters{}, plan.Execution, plan.Step, n)
			require.NoError(t, err)
			launched, err := s.e.Repository.Launch(ctx, core.LaunchRequest{JobName: j.Name, Params: params, Restartable: true, RedriveOf: plan.Execution, Lease: time.Hour})
			require.NoError(t, err)
			s.e.Exec(fmt.Sprintf("UPDATE surfin_job_execution SET status = '%s', active = NULL, ended_at = created_at WHERE id = %d", status, launched.Execution.ID))
		}
		number := func() int64 {
			t.Helper()
			params, err := s.s.redriveParameters(ctx, RedriveRequest{}, plan, core.Parameters{})
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
