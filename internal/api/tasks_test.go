package api_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
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
