package api_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

const dailyJob = `job: daily
parameters: {day: {type: date}}
schedule: {cron: "30 2 * * *", timezone: Europe/Berlin, parameters: {day: "${schedule.previous_day}"}}
flow:
- {step: one, tasklet: {sql: select 1}}
`

// Rule OP18.
func TestAScheduleIsRegisteredPausedAndRunByHandOverHTTP(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		scene := newScene(t, url)
		scene.write("daily.yaml", dailyJob)
		s := scene.serve()
		run := func(body any, headers ...string) *reply {
			return s.call("POST", "/v1/definitions/daily/run", body, headers...)
		}
		run(nil).is(http.StatusNotFound).says("not registered")
		s.call("POST", "/v1/jobs/none/register", nil).is(http.StatusNotFound)
		s.as(viewerToken, "POST", "/v1/jobs/daily/register", nil).is(http.StatusForbidden)
		registered := s.call("POST", "/v1/jobs/daily/register", nil).is(http.StatusOK).says(`"applied":true`, `"status":"enabled"`, "no worker is alive")
		require.Len(t, registered.body["version"], 64)
		s.call("POST", "/v1/jobs/daily/register", nil).is(http.StatusOK).says(`"applied":false`)
		scene.write("daily.yaml", dailyJob+"- {step: two, tasklet: {sql: select 2}}\n")
		s.call("POST", "/v1/jobs/daily/register", nil).is(http.StatusOK).says(`"applied":true`, `"before":"`+registered.body["version"].(string))
		scene.write("daily.yaml", "job: daily\nflow: []\n")
		s.call("POST", "/v1/jobs/daily/register", nil).is(http.StatusConflict)

		s.call("POST", "/v1/definitions/daily/disable", nil).is(http.StatusOK)
		s.call("GET", "/v1/schedules", nil).is(http.StatusOK).says(`"job":"daily"`, `"enabled":false`)
		s.call("GET", "/v1/schedules/week", nil).is(http.StatusOK).says(`"job":"daily"`, `"enabled":false`)

		at := map[string]any{"time": "2026-11-27T02:30"}
		run(map[string]any{"time": "2026-11-27T02:30", "dry_run": true}).is(http.StatusOK).says(`"applied":false`, `"id":0`, `"due":true`, `"day":"2026-11-26"`)
		run(map[string]any{"time": "later"}).is(http.StatusUnprocessableEntity).says("is not a time")
		run(map[string]any{"time": "2026-03-29T02:31"}).is(http.StatusUnprocessableEntity).says("skips")
		first := run(at, "Idempotency-Key", "a").is(http.StatusOK).says(`"applied":true`, `"status":"PENDING"`)
		require.Equal(t, first.text, run(at, "Idempotency-Key", "a").text)
		again := run(map[string]any{"time": "2026-11-27T01:30:00Z"}, "Idempotency-Key", "b").is(http.StatusOK).says(`"applied":false`)
		require.Equal(t, first.body["id"], again.body["id"])
		s.call("GET", "/v1/tasks/1", nil).is(http.StatusOK).says(`"job":"daily"`, `"day":"2026-11-26"`)
		run(nil).is(http.StatusOK).says(`"due":false`)
		s.call("GET", "/v1/workers", nil).is(http.StatusOK).says(`"workers":[]`)
	})
}
