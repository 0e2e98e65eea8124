package api_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func TestTheOverviewAndTheSummaryOfJobs(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url).serve()
		require.Empty(t, s.call("GET", "/v1/overview", nil).is(http.StatusOK).body["needs"])
		s.over(s.call("POST", "/v1/jobs/broken/run", nil).acted(true), core.StatusFailed)
		s.over(s.call("POST", "/v1/jobs/load/run", nil).acted(true), core.StatusCompleted)
		s.write("nightly.yml", "job: nightly\nflow:\n- {step: one, tasklet: {sqll: select 1}}\n")

		o := s.call("GET", "/v1/overview?limit=1&window=60", nil).is(http.StatusOK).body
		require.Len(t, o["needs"], 2)
		file := o["needs"].([]any)[0].(map[string]any)
		require.Equal(t, "file", file["reason"])
		require.Contains(t, file["text"], "nightly.yml:3:")
		require.EqualValues(t, 3, file["problems"].([]any)[0].(map[string]any)["line"])
		skips := o["needs"].([]any)[1].(map[string]any)
		require.Equal(t, "skips_left", skips["reason"])
		require.Equal(t, "Execution 2 of job load: 1 skipped item was not redriven.", skips["text"])
		require.EqualValues(t, 2, o["next"])
		require.EqualValues(t, 2, o["ended"].(map[string]any)["total"])
		rest := s.call("GET", "/v1/overview?before=2", nil).is(http.StatusOK).body
		require.Len(t, rest["needs"], 1)
		failed := rest["needs"].([]any)[0].(map[string]any)
		require.Equal(t, "failed", failed["reason"])
		require.Equal(t, "restart", failed["actions"].([]any)[0].(map[string]any)["kind"])
		require.NotContains(t, rest, "next")

		jobs := s.call("GET", "/v1/summary", nil).is(http.StatusOK).body["jobs"].([]any)
		require.Len(t, jobs, 4)
		load := jobs[2].(map[string]any)
		require.Equal(t, "load", load["job"])
		require.Equal(t, []any{"catalog", "history"}, load["sources"])
		require.EqualValues(t, 1, load["skips_left"])
		require.EqualValues(t, 3, load["last"].([]any)[0].(map[string]any)["rows"])
		require.Len(t, jobs[3].(map[string]any)["problems"], 1)
		day := s.call("GET", "/v1/day?limit=1", nil).is(http.StatusOK).body
		require.Equal(t, "broken", day["jobs"].([]any)[0].(map[string]any)["job"])
		require.EqualValues(t, 1, day["others"].(map[string]any)["jobs"])
		s.call("GET", "/v1/day?limit=201", nil).is(http.StatusUnprocessableEntity)
		s.call("GET", "/v1/overview?limit=201", nil).is(http.StatusUnprocessableEntity)
		s.call("GET", "/v1/summary?limit=1001", nil).is(http.StatusUnprocessableEntity)
	})
}
