package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/api"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type acting struct {
	path, verb string
	body       any
}

// Rule OP4. A new operation must be added to the list.
func TestEveryActOfTheAPIIsAudited(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		scene := newScene(t, url)
		scene.write("daily.yaml", "job: daily\nparameters: {day: {type: date}}\nschedule: {cron: '@daily', parameters: {day: '${schedule.date}'}}\nflow:\n- {step: one, tasklet: {sql: select 1}}\n")
		s := scene.serve()
		newest := func() operator.ActView {
			var page operator.ActPage
			require.NoError(t, json.Unmarshal([]byte(s.call("GET", "/v1/audit?limit=1", nil).is(http.StatusOK).text), &page))
			if len(page.Acts) == 0 {
				return operator.ActView{}
			}
			return page.Acts[0]
		}
		var page operator.ActPage
		acts := map[string]acting{}
		add := func(path, verb, at string, body any) { acts[path] = acting{at, verb, body} }
		loaded := s.call("POST", "/v1/jobs/load/run", map[string]any{}).acted(true)
		s.over(loaded, core.StatusCompleted)
		broken := s.call("POST", "/v1/jobs/broken/run", map[string]any{}).acted(true)
		s.over(broken, core.StatusFailed)
		held := s.call("POST", "/v1/jobs/hold/run", map[string]any{}).acted(true)
		s.await(s.holding, "the job holds")
		db, err := s.provider.Database("")
		require.NoError(t, err)
		now := map[string]string{"postgres": "clock_timestamp()", "sqlite": "1"}[string(db.Dialect())]
		for _, text := range []string{
			"INSERT INTO surfin_event (id, topic, subject, dedupe_key, offer_after, created_at, dead_at) VALUES (7, 'paid', 1, 'k', 0, " + now + ", " + now + ")",
			"INSERT INTO surfin_job_definition (name, version, definition_text, definition_path, definition_files, schedule, budget, enabled, scheduled_until, created_at, updated_at, updated_by) " +
				"VALUES ('nightly', 'v', '', '', '', '', '{}', " + map[string]string{"postgres": "true", "sqlite": "1"}[string(db.Dialect())] + ", " + now + ", " + now + ", " + now + ", '')",
		} {
			_, err := db.Conn().ExecContext(t.Context(), text)
			require.NoError(t, err, text)
		}
		work := map[string]any{"tasks": []any{map[string]any{"type": "http_request", "payload": map[string]any{"url": "http://127.0.0.1:1/"}}}}
		var reason any = map[string]any{"reason": "ticket 7"}
		at := func(format string, id core.JobExecutionID) string { return fmt.Sprintf(format, id) }
		add("/v1/jobs/{job}/run", ports.VerbRun, "/v1/jobs/nightly/run", reason)
		add("/v1/jobs/{job}/register", ports.VerbRegister, "/v1/jobs/daily/register", nil)
		add("/v1/definitions/{job}/run", ports.VerbRun, "/v1/definitions/daily/run", map[string]any{"time": "2026-11-27T00:00"})
		add("/v1/jobs/{job}/plan", "", "/v1/jobs/nightly/plan", map[string]any{})
		add("/v1/executions/{execution}/plan", "", at("/v1/executions/%d/plan", broken), nil)
		add("/v1/executions/{execution}/redrive/plan", "", at("/v1/executions/%d/redrive/plan", loaded), nil)
		add("/v1/executions/{execution}/restart", ports.VerbRestart, at("/v1/executions/%d/restart", broken), reason)
		add("/v1/executions/{execution}/redrive", ports.VerbRedrive, at("/v1/executions/%d/redrive", loaded), reason)
		add("/v1/executions/{execution}/stop", ports.VerbStop, at("/v1/executions/%d/stop", held), reason)
		add("/v1/executions/{execution}/abandon", ports.VerbAbandon, "", reason)
		add("/v1/bulk", ports.VerbSubmit, "/v1/bulk", map[string]any{"act": "restart", "executions": []any{broken}, "expect": 1})
		add("/v1/jobs/{job}/backfill", ports.VerbSubmit, "/v1/jobs/load/backfill", map[string]any{"param": "day", "from": "2026-12-01", "to": "2026-12-02"})
		add("/v1/recover", ports.VerbRecover, "/v1/recover", nil)
		add("/v1/groups", ports.VerbSubmit, "/v1/groups", work)
		add("/v1/tasks", ports.VerbSubmit, "/v1/tasks", map[string]any{"type": "http_request", "payload": map[string]any{"url": "http://127.0.0.1:1/"}})
		add("/v1/tasks/{task}/cancel", ports.VerbCancel, "/v1/tasks/1/cancel", nil)
		add("/v1/tasks/{task}/rerun", ports.VerbRerun, "/v1/tasks/1/rerun", nil)
		add("/v1/groups/{group}/cancel", ports.VerbCancelGroup, "/v1/groups/2/cancel", nil)
		add("/v1/events/{event}/offer", ports.VerbOffer, "/v1/events/7/offer", nil)
		add("/v1/settings/{name}", ports.VerbSet, "/v1/settings/audit_retention_days", map[string]any{"value": "400"})
		add("/v1/definitions/{job}/disable", ports.VerbDisable, "/v1/definitions/nightly/disable", nil)
		add("/v1/definitions/{job}/enable", ports.VerbEnable, "/v1/definitions/nightly/enable", nil)

		text, err := api.Document()
		require.NoError(t, err)
		var document struct {
			Paths map[string]map[string]any `json:"paths"`
		}
		require.NoError(t, json.Unmarshal(text, &document))
		for path, methods := range document.Paths {
			for method := range methods {
				require.Contains(t, []string{"get", "post"}, method, path)
				if _, known := acts[path]; method == "post" {
					require.True(t, known, "POST %s is in no list of acts", path)
				}
			}
		}
		before := newest()
		for _, path := range []string{
			"/v1/jobs/{job}/plan", "/v1/executions/{execution}/plan", "/v1/executions/{execution}/redrive/plan", "/v1/jobs/{job}/run", "/v1/executions/{execution}/restart", "/v1/executions/{execution}/redrive",
			"/v1/executions/{execution}/abandon", "/v1/groups", "/v1/tasks", "/v1/tasks/{task}/cancel", "/v1/tasks/{task}/rerun", "/v1/groups/{group}/cancel",
			"/v1/bulk", "/v1/jobs/{job}/backfill", "/v1/events/{event}/offer", "/v1/settings/{name}", "/v1/definitions/{job}/disable", "/v1/definitions/{job}/enable", "/v1/executions/{execution}/stop", "/v1/recover",
			"/v1/jobs/{job}/register", "/v1/definitions/{job}/run",
		} {
			act := acts[path]
			delete(acts, path)
			switch path {
			case "/v1/executions/{execution}/abandon":
				e := s.call("POST", "/v1/jobs/broken/run", map[string]any{"params": map[string]any{"big": 7}}).acted(true)
				s.over(e, core.StatusFailed)
				act.path = at("/v1/executions/%d/abandon", e)
			case "/v1/recover":
				s.release()
				s.over(held, core.StatusStopped)
				_, err := s.app.Repository.Launch(t.Context(), ports.LaunchRequest{JobName: "lost", Owner: core.Owner{Host: "h", PID: 1}, Lease: 1})
				require.NoError(t, err)
			}
			s.call("POST", act.path, act.body).is(http.StatusOK)
			got := newest()
			if act.verb == "" {
				require.Equal(t, before, got, path)
				continue
			}
			require.Equal(t, act.verb, got.Act, path)
			require.Equal(t, "API client anna", got.Actor, path)
			require.NotEqual(t, before.ID, got.ID, path)
			if reflect.DeepEqual(act.body, reason) {
				require.Equal(t, "ticket 7", got.Detail, path)
			}
			before = got
		}
		require.Empty(t, acts)

		s.as(viewerToken, "GET", "/v1/audit", nil).is(http.StatusForbidden).says("operators")
		s.call("GET", "/v1/audit?act=nope", nil).is(http.StatusUnprocessableEntity)
		require.NoError(t, json.Unmarshal([]byte(s.call("GET", "/v1/audit?actor=anna&act=set", nil).is(http.StatusOK).text), &page))
		require.Len(t, page.Acts, 1)
		require.NoError(t, json.Unmarshal([]byte(s.call("GET", "/v1/audit?limit=3", nil).is(http.StatusOK).text), &page))
		require.Len(t, page.Acts, 3)
		first := page.Acts[2].ID
		require.Equal(t, first, page.Next)
		require.NoError(t, json.Unmarshal([]byte(s.call("GET", fmt.Sprintf("/v1/audit?limit=3&before=%d", page.Next), nil).is(http.StatusOK).text), &page))
		for _, a := range page.Acts {
			require.NotEqual(t, first, a.ID)
		}
		require.Len(t, page.Acts, 3)
	})
}
