package api_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func TestTasksAreSubmittedAndOperatedOverHTTP(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url).serve()
		group := `{"title": "all", "type": "http_request", "budget": {"max_attempts": 2, "deadline": "1h"}, "tasks": [{"payload": {"url": "x"}, "delay": "1h"}, {"delay": "1h"}]}`
		first := s.call("POST", "/v1/groups", group, keyHeader, "k").is(200).says(`"applied":true`, `"tasks":[`)
		again := s.call("POST", "/v1/groups", group, keyHeader, "k").is(200)
		require.Equal(t, first.text, again.text)
		require.Equal(t, "true", again.header.Get("Idempotency-Replayed"))
		s.call("POST", "/v1/tasks", group, keyHeader, "k").is(422)
		id, tasks := first.body["id"], first.body["tasks"].([]any)
		require.Len(t, tasks, 2)
		s.call("POST", "/v1/tasks", `{"type": "http_request", "delay": "1h", "idempotency_key": "mine"}`).is(200).says(`"applied":true`)
		s.call("POST", "/v1/tasks", `{"type": "http_request", "delay": "1h", "idempotency_key": "mine"}`).is(200).says(`"applied":false`)
		s.call("POST", "/v1/tasks", `{"type": "http_request", "idempotency_key": "mine"}`).is(409).says(`"reason":"other_submission"`)
		s.call("POST", "/v1/tasks", `{"type": "shell"}`).is(422).says(`"reason":"unknown_type"`, "tasks.shell: true")
		s.call("POST", "/v1/tasks", `{"type": "http_request", "title": "a\u0000b"}`).is(422)
		s.call("POST", "/v1/groups", `{"title": "a\u0000b", "tasks": [{"type": "http_request"}]}`).is(422)
		s.call("POST", "/v1/groups", `{"type": "job", "tasks": [{"payload": {"act": "stop", "execution": 1}}]}`).is(422).says("use POST /v1/bulk", `body.tasks[0].payload`)
		s.call("POST", "/v1/groups", `{"type": "shell", "tasks": [{"seed_action_hint": {"type": "job"}, "payload": {"act": "stop", "execution": 1}}]}`).is(422).says("use POST /v1/bulk")
		s.call("POST", "/v1/tasks", `{"type": "http_request", "priority": 9}`).is(422).says(`"reason":"invalid"`)
		s.as(viewerToken, "POST", "/v1/tasks", `{"type": "http_request"}`).is(403)

		s.call("GET", "/v1/tasks?type=http_request", nil).is(200).says(`"tasks":[{`, `"delay":"1h0m0s"`)
		s.call("GET", "/v1/tasks?state=ODD", nil).is(422)
		s.call("GET", "/v1/groups", nil).is(200).says(`"groups":[{`, `"deadline":"1h0m0s"`)
		s.call("GET", "/v1/workers", nil).is(200).says(`"workers":[]`, `"waiting_types":["http_request"]`)
		s.as(viewerToken, "GET", fmt.Sprintf("/v1/groups/%v", id), nil).is(200).says(`"title":"all"`, `"total":2`)
		s.call("GET", "/v1/groups/99", nil).is(404)

		s.call("GET", "/v1/settings", nil).is(200).says(`"name":"log_retention_days_db"`)
		s.call("POST", "/v1/settings/log_retention_days_db", `{"value": "7"}`).is(422).says("tasks.logs names no folder")
		s.call("POST", "/v1/settings/history_retention_days", `{"value": "7"}`).is(200).says(`"applied":true`)
		s.call("POST", "/v1/settings/history_retention_days", `{"value": "7"}`).is(200).says(`"applied":false`, `"status":"7"`)
		s.call("GET", "/v1/settings", nil).is(200).says(`"value":"7"`, `"updated_by":"API client anna"`)
		s.call("POST", "/v1/settings/colour", `{"value": "7"}`).is(422)
		s.call("GET", "/v1/definitions", nil).is(200).says(`"definitions":[]`)
		s.call("GET", "/v1/schedules?count=2", nil).is(200).says(`"schedules":[]`)
		s.call("GET", "/v1/schedules/week?week=2026-W43&timezone=Europe/Berlin", nil).is(200).says(`"previous":"2026-W42"`, `"hours":25`, `"schedules":[]`)
		s.call("GET", "/v1/schedules/week?week=2026-43", nil).is(422).says("expected a week of a year")
		s.call("GET", "/v1/schedules/week?timezone=Mars", nil).is(422).says("Mars")
		s.call("GET", "/v1/schedules/load/times", nil).is(404).says("is not registered")
		s.call("POST", "/v1/definitions/load/enable", nil).is(404).says("is not registered")

		task := fmt.Sprintf("/v1/tasks/%v", tasks[0])
		s.call("POST", task+"/rerun", nil).is(409).says(`"reason":"illegal_state"`)
		s.as(viewerToken, "POST", task+"/cancel", nil).is(403)
		s.call("POST", task+"/cancel", `{"reason": "a\u0000b"}`).is(422)
		s.call("POST", task+"/cancel", `{"reason": "not wanted"}`).is(200).says(`"status":"CANCELED"`, `"applied":true`)
		s.call("POST", task+"/cancel", nil).is(200).says(`"applied":false`)
		s.call("POST", task+"/rerun", nil).is(200).says(`"applied":true`)
		s.call("GET", task, nil).is(200).says(`"attempts":[]`)
		s.call("POST", fmt.Sprintf("/v1/groups/%v/cancel", id), nil).is(200).says(`"applied":true`)
		s.call("POST", fmt.Sprintf("/v1/groups/%v/cancel", id), nil).is(200).says(`"applied":false`)
		s.call("POST", "/v1/tasks/99/cancel", nil).is(404).says(`"reason":"not_found"`)
	})
}

// Rules OP13 and OP17.
func TestARangeOfDaysIsShownAndBackFilledOverHTTP(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url).serve()
		const at = "/v1/jobs/nightly/backfill"
		all := `{"param": "day", "from": "2026-11-20", "to": "2026-11-23"`
		s.call("POST", at, all+`}`).is(404).says(`"reason":"no_such_job"`, "workers do not know job nightly")
		s.over(s.call("POST", "/v1/jobs/nightly/run", nil).acted(true), core.StatusCompleted)
		s.call("GET", "/v1/jobs/nightly/days?from=2026-11-21&to=2026-11-22", nil).is(200).
			says(`"param":"day"`, `"missing":["2026-11-21"]`, `{"value":"2026-11-22","instances":1,"status":"COMPLETED"`)
		s.call("GET", "/v1/jobs/hold/days?param=n&from=8&to=11", nil).is(200).says(`"missing":["8","9","10","11"]`)
		s.call("GET", "/v1/jobs/nightly/days?from=2026-11-21", nil).is(422)
		s.call("GET", "/v1/jobs/nightly/days?from=2026-11-21&to=x", nil).is(422).says(`"location":"to"`)

		s.call("POST", at, all+`, "dry_run": true}`).is(200).says(`"selected":3`, `{"value":"2026-11-22","effect":"left_out","execution":1,"status":"COMPLETED"}`)
		s.call("POST", at, all+`, "dry_run": true, "only": "failed"}`).is(200).says(`"selected":0`)
		s.call("POST", at, all+`, "only": "failed"}`).is(404)
		s.call("POST", at, all+`, "only": "odd"}`).is(422)
		s.call("POST", at, all+`, "params": {"day": []}}`).is(422).says("body.params.day")
		s.call("POST", at, all+`, "expect": 4}`).is(409).says(`"reason":"moved"`)
		s.call("POST", at, `{"param": "night", "from": "2026-11-20", "to": "2026-11-23"}`).is(422).says(`"reason":"parameters"`)
		s.as(viewerToken, "POST", at, all+`}`).is(403)
		first := s.call("POST", at, all+`, "expect": 3, "parallel": 2, "reason": "late files"}`, keyHeader, "k").is(200).says(`"selected":3`)
		require.Equal(t, first.text, s.call("POST", at, all+`, "expect": 3, "parallel": 2, "reason": "late files"}`, keyHeader, "k").is(200).text)
		s.call("GET", "/v1/groups/1", nil).is(200).says(`"total":3`, `"parallel":2`, `"WAITING":1`)
		s.call("GET", "/v1/groups/2", nil).is(404)
		s.call("GET", "/v1/tasks?state=WAITING", nil).is(200).says("at most 2 are begun at once", `"backfill":"day"`)
		s.call("POST", "/v1/tasks", `{"type": "job", "payload": {"job": "nightly", "backfill": "day", "params": {"day": "2026-11-25"}}}`).is(422).says("/v1/jobs/{job}/backfill")
	})
}
