package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/api"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func TestAJobIsRunAndLookedAtOverHTTP(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url).serve()
		s.call("GET", "/v1/jobs", nil).is(200).says(`"job":"broken"`, `"job":"hold"`, `"job":"load"`, `"incrementer":"day"`)
		s.call("GET", "/v1/jobs/load", nil).is(200).says(`"description":"Loads numbers."`, `"name":"factor"`, `"min":"1"`, `"default":"2026-11-22"`)
		id := s.call("POST", "/v1/jobs/load/run", map[string]any{"params": map[string]any{"day": "2026-11-23", "factor": 2}}).acted(true)
		s.over(id, core.StatusCompleted)
		path := fmt.Sprintf("/v1/executions/%d", id)
		s.call("GET", path, nil).is(200).says(`"status":"COMPLETED"`, `"day":"2026-11-23"`, `"factor":2`, `"input":"in.csv"`, `"skipped":1`)
		s.call("GET", path+"?audit=true&definition=true&partitions=true", nil).is(200).says(`"act":"launch"`, "description: Loads numbers.")
		s.call("GET", path+"/explain", nil).is(200).says(`"skipped":[{"step":"load"`)
		s.call("GET", path+"/flow", nil).is(200).says(`"element":"load"`, `"work":"chunk"`, `"visits":[{`, `"last_line":`)
		s.call("GET", "/v1/jobs/load/flow", nil).is(200).says(`"element":"load"`, `"default":true`)
		s.call("GET", path+"/series", nil).is(200).says(`"whole":{"step_executions":`, `"step":"load"`, `"rows_per_second":`)
		s.call("GET", path+"/series?step=load", nil).is(200).says(`"steps":[{"step":"load"`)
		s.call("GET", path+"/series?step=laod", nil).is(404).says("did you mean load?")
		s.call("GET", path+"/compare?with=nobody", nil).is(422).says("typical")
		skips := s.call("GET", path+"/skips?step=load&phase=read&left=true&limit=1", nil).is(200).says(`"raw":"x"`)
		skip := skips.body["items"].([]any)[0].(map[string]any)["id"].(float64)
		s.call("GET", fmt.Sprintf("/v1/skips/%v", skip), nil).is(200).says(`"line":4`, `"fields":[{"name":"id","text":"x","from":0,"to":1,"bad":true}]`)
		s.call("GET", "/v1/executions?job=load&statuses=COMPLETED,FAILED&limit=1&since=2026-01-01T00:00:00Z", nil).is(200).says(`"executions":[{`)
		s.call("GET", "/v1/instances?job=load", nil).is(200).says(`"instance":`)
		s.call("GET", "/v1/history", nil).is(200).says(`"attempt":1`)
		s.call("GET", "/v1/progress", nil).is(200).says(`"running":[]`)
		s.call("POST", "/v1/jobs/load/run", map[string]any{"params": map[string]any{"day": "2026-11-23"}}).is(409).
			says(`"reason":"complete"`, `"kind":"again"`, "is already complete")
		again := s.call("POST", "/v1/jobs/load/run", map[string]any{"params": map[string]any{"day": "2026-11-23"}, "again": true}).acted(true)
		s.over(again, core.StatusCompleted)
		s.call("POST", "/v1/jobs/load/plan", map[string]any{"params": map[string]any{"day": "2026-11-24"}, "sample": 1}).is(200).says(`"step":"load"`, `"read":{"id":1}`)
		require.Len(t, s.executions(), 2)
		s.call("GET", fmt.Sprintf("/v1/executions/%d/compare", again), nil).is(200).says(fmt.Sprintf(`"with":{"execution":%d`, id), `"step":"load"`)
		s.call("POST", path+"/redrive", `{"items": [{"id": 1, "raw": "4"}, {"id": 1}, {"key": 1}]}`).is(422).
			says(`"location":"body.items"`, "body.items:2: skipped item 1 is already in line 1", "body.items:3: not a line of an export")
		s.call("POST", path+"/redrive", `{"items": []}`).is(422).says("no skipped item found")
		s.call("POST", path+"/redrive", `{"items": [{"id": 99, "raw": "4"}]}`).is(409).says(`"reason":"items"`)
		edited := skips.body["items"].([]any)[0].(map[string]any)
		edited["raw"] = "4"
		redriven := s.over(s.call("POST", path+"/redrive", map[string]any{"items": []any{edited}}).acted(true), core.StatusCompleted)
		s.call("GET", path+"/skips?left=true", nil).is(200).says(`"items":[]`)
		require.Equal(t, id, redriven.RedriveOf)
		s.call("POST", fmt.Sprintf("/v1/executions/%d/redrive", again), `{"step": "table"}`).is(409).says(`"reason":"`)
	})
}

func TestWhatFailedIsRestartedAndGivenUp(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url).serve()
		first := s.call("POST", "/v1/jobs/broken/run", `{"params": {"big": 9007199254740993, "text": "a'b\"c", "exact": 0.1, "yes": true}}`).acted(true)
		s.over(first, core.StatusFailed)
		s.call("GET", fmt.Sprintf("/v1/executions/%d", first), nil).is(200).says(`"big":9007199254740993`, `"exact":0.1`, `"yes":true`, `"kind":"restart"`)
		second := s.call("POST", fmt.Sprintf("/v1/executions/%d/restart", first), nil).acted(true)
		require.NotEqual(t, first, second)
		s.over(second, core.StatusFailed)
		s.call("POST", fmt.Sprintf("/v1/executions/%d/restart", first), nil).is(409).says(`"reason":"not_newest"`, fmt.Sprintf(`"execution":%d`, second))
		s.call("POST", fmt.Sprintf("/v1/executions/%d/restart", first), `{"epoch": 1}`).is(409).says(`"reason":"moved"`, fmt.Sprintf(`"now":{"execution":%d,"status":"FAILED","epoch":1}`, second))
		for _, act := range []string{"restart", "abandon", "redrive"} {
			s.call("POST", fmt.Sprintf("/v1/executions/%d/%s", second, act), `{"epoch": 2}`).is(409).says(`"reason":"moved"`, fmt.Sprintf("execution %d has changed since: it is FAILED, epoch 1", second))
			s.call("POST", fmt.Sprintf("/v1/executions/%d/%s", second, act), map[string]string{"reason": strings.Repeat("x", 1001)}).is(422)
			s.call("POST", fmt.Sprintf("/v1/executions/%d/%s", second, act), `{"reason": "a\u0000b"}`).is(422)
		}
		s.call("POST", fmt.Sprintf("/v1/executions/%d/stop", second), nil).is(409).says(`"reason":"over"`)
		s.call("POST", fmt.Sprintf("/v1/executions/%d/restart", second), `{"from": "nowhere"}`).is(409).says(`"reason":"from"`, "broken.yaml:")
		s.call("POST", fmt.Sprintf("/v1/executions/%d/restart", second), `{"from": "x", "from_start": true}`).is(422).says("cannot be combined with from_start")
		s.call("POST", fmt.Sprintf("/v1/executions/%d/plan", second), `{"if_complete": true}`).is(422).says("set from")
		s.call("POST", fmt.Sprintf("/v1/executions/%d/plan", second), nil).is(200).says(`"job":"broken"`, `"action":"resume"`)
		s.call("POST", fmt.Sprintf("/v1/executions/%d/redrive", second), nil).is(409).says(`"reason":"nothing_skipped"`)
		s.call("POST", fmt.Sprintf("/v1/executions/%d/abandon", first), nil).is(409).says(`"reason":"not_newest"`)
		require.Equal(t, second, s.call("POST", fmt.Sprintf("/v1/executions/%d/abandon", second), nil).acted(true))
		require.Equal(t, second, s.call("POST", fmt.Sprintf("/v1/executions/%d/abandon", second), nil).acted(false))
		s.call("GET", fmt.Sprintf("/v1/executions/%d?audit=1", second), nil).is(200).says(`"actor":"API client anna"`)
		s.call("POST", fmt.Sprintf("/v1/executions/%d/restart", second), nil).is(409).says(`"reason":"abandoned"`)
		s.call("POST", "/v1/recover", nil).is(200).says(`"applied":false`, `"executions":[]`)
		s.call("POST", "/v1/jobs/broken/run", `{"next": true}`).is(409).says(`"reason":"no_incrementer"`)
		s.call("POST", "/v1/jobs/broken/run", `{"next": true, "again": true}`).is(422).says("one of them")
		night := s.call("POST", "/v1/jobs/nightly/run", `{"next": true}`).acted(true)
		s.over(night, core.StatusCompleted)
		night = s.call("POST", "/v1/jobs/nightly/run", `{"next": true}`).acted(true)
		s.over(night, core.StatusCompleted)
		s.call("GET", fmt.Sprintf("/v1/executions/%d", night), nil).is(200).says(`"day":"2026-11-23"`)
	})
}

func TestARunIsStoppedByARequestAndByTheEndOfTheServer(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		scene := newScene(t, url)
		s, other := scene.serve(), scene.serve()
		first := s.call("POST", "/v1/jobs/hold/run", nil).acted(true)
		scene.await(scene.holding, "it does not run")
		s.call("POST", "/v1/jobs/hold/run", nil).is(409).says(`"reason":"running"`, `"kind":"stop"`)
		other.call("POST", fmt.Sprintf("/v1/executions/%d/restart", first), nil).is(409).says(`"reason":"running"`)
		other.call("POST", fmt.Sprintf("/v1/executions/%d/abandon", first), nil).is(409).says(`"reason":"illegal_state"`)
		s.call("GET", "/v1/progress?job=hold", nil).is(200).says(fmt.Sprintf(`"execution":%d`, first))
		second := s.call("POST", "/v1/jobs/hold/run", `{"params": {"n": 2}}`).acted(true)
		require.Equal(t, first, other.call("POST", fmt.Sprintf("/v1/executions/%d/stop", first), nil).acted(true))
		require.Equal(t, first, s.call("POST", fmt.Sprintf("/v1/executions/%d/stop", first), nil).acted(false))
		scene.release()
		s.over(first, core.StatusStopped)
		s.over(second, core.StatusCompleted)
		s.call("GET", fmt.Sprintf("/v1/executions/%d?audit=1", first), nil).is(200).
			says(`"act":"request stop","actor":"API client anna"`, `"detail":"for API client anna"`)
		restarted := other.call("POST", fmt.Sprintf("/v1/executions/%d/restart", first), nil).acted(true)
		other.over(restarted, core.StatusCompleted)
	})
}

func TestAServerThatStopsStopsWhatItRuns(t *testing.T) {
	t.Parallel()
	scene := newScene(t, testdb.SQLite(t))
	s := scene.serve()
	id := s.call("POST", "/v1/jobs/hold/run", nil).acted(true)
	scene.await(scene.holding, "it does not run")
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.stop()
	}()
	scene.await(scene.asked, "nobody asked it to stop")
	scene.release()
	<-over
	s.over(id, core.StatusStopped)
}

func TestWhatIsUnknownOrWrongIsRefusedWithWhatIsAllowed(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url).serve()
		for _, c := range []struct {
			method, path string
			body         any
			status       int
			says         string
		}{
			{"GET", "/v1/executions/99", nil, 404, `"reason":"not_found"`},
			{"GET", "/v1/executions/99/explain", nil, 404, `"reason":"not_found"`},
			{"GET", "/v1/executions/99/skips", nil, 404, `"reason":"not_found"`},
			{"GET", "/v1/skips/99", nil, 404, `"reason":"not_found"`},
			{"POST", "/v1/executions/99/stop", nil, 404, `"kind":"history"`},
			{"POST", "/v1/executions/99/abandon", nil, 404, `"reason":"not_found"`},
			{"POST", "/v1/executions/99/restart", nil, 404, `"reason":"not_found"`},
			{"POST", "/v1/executions/99/redrive", nil, 404, `"reason":"not_found"`},
			{"GET", "/v1/executions/x", nil, 422, "invalid integer"},
			{"GET", "/v1/executions/-1", nil, 422, "expected number >= 1"},
			{"GET", "/v1/executions/99999999999999999999", nil, 422, "invalid integer"},
			{"GET", "/v1/executions/9223372036854775807", nil, 404, `"reason":"not_found"`},
			{"GET", "/v1/executions?limit=-1", nil, 422, "query.limit"},
			{"GET", "/v1/executions?limit=100000", nil, 422, "query.limit"},
			{"GET", "/v1/executions?statuses=DONE", nil, 422, "allowed: "},
			{"GET", "/v1/executions?running=true&statuses=FAILED", nil, 422, "statuses are set as well"},
			{"GET", "/v1/executions?since=yesterday", nil, 422, "query.since"},
			{"GET", "/v1/executions?colour=red", nil, 422, "unknown query parameter"},
			{"GET", "/v1/executions?job=%00", nil, 400, "NUL"},
			{"GET", "/v1/executions?job=%ff", nil, 400, "UTF-8"},
			{"GET", "/v1/executions/1/skips?phase=late", nil, 422, "read, process, write"},
			{"GET", "/v1/jobs/lod", nil, 404, "did you mean load?"},
			{"GET", "/v1/jobs/..%2Fload.yaml", nil, 404, `"reason":"no_such_job"`},
			{"POST", "/v1/jobs/lod/run", nil, 404, `"reason":"no_such_job"`},
			{"POST", "/v1/jobs/load/run", `{"params": {"dya": "2026-11-22"}}`, 422, `"location":"body.params.dya"`},
			{"POST", "/v1/jobs/load/run", `{"params": {"day": "tomorrow", "factor": 10}}`, 422, `"location":"body.params.factor"`},
			{"POST", "/v1/jobs/load/run", `{"params": {"day": null}}`, 422, `"location":"body.params.day"`},
			{"POST", "/v1/jobs/load/run", `{"params": {"factor": [1]}}`, 422, "expected a text, a number, true or false"},
			{"POST", "/v1/jobs/load/run", `{"params": {"factor": 1e400}}`, 422, `"location":"body.params.factor"`},
			{"POST", "/v1/jobs/load/run", `{"params": {"input": "a\u0000b"}}`, 422, "NUL"},
			{"POST", "/v1/jobs/load/run", `{"params": 7}`, 422, "body.params"},
			{"POST", "/v1/jobs/load/run", `{"file": "/etc/passwd"}`, 422, "unexpected property"},
			{"POST", "/v1/jobs/load/run", `{`, 400, "body"},
			{"POST", "/v1/jobs/load/run", `[]`, 422, "expected object"},
			{"POST", "/v1/jobs/load/plan", `{"sample": -1}`, 422, "body.sample"},
			{"DELETE", "/v1/executions/1", nil, 405, "allowed here: GET"},
			{"GET", "/v1/recover", nil, 405, "allowed here: POST"},
			{"GET", "/v2", nil, 404, "/openapi.json lists"},
		} {
			s.call(c.method, c.path, c.body).is(c.status).says(c.says)
		}
		s.call("POST", "/v1/jobs/load/run", "a: b", "Content-Type", "text/yaml").is(415)
		s.call("POST", "/v1/jobs/load/run", `{"params": {"input": "`+string(make([]byte, 1<<20))+`"}}`).is(413)
		s.call("POST", "/v1/jobs/load/run", nil, "Idempotency-Key", "a key").is(422).says("Idempotency-Key")
		s.write("load.yaml", loadJob+"flw: []\n")
		s.call("POST", "/v1/jobs/load/run", nil).is(409).says(`"reason":"file"`, "load.yaml:")
		s.call("GET", "/v1/jobs", nil).is(200).says(`"error":"`)
		s.write("load.yaml", "job: other\nflow: [{step: a, tasklet: {sql: select 1}}]\n")
		s.call("POST", "/v1/jobs/load/run", nil).is(409).says("now defines job other")
		require.Empty(t, s.executions())
		require.Empty(t, s.log.String())
	})
}

func TestTheDescriptionIsServed(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t)).serve()
	document, err := api.Document()
	require.NoError(t, err)
	got := s.as(viewerToken, "GET", "/openapi.json", nil).is(http.StatusOK)
	require.Equal(t, string(document), got.text)
}
