package api_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const keyHeader = "Idempotency-Key"

// Rule L11.
func TestARequestWithAKeyHasOneAnswer(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		scene := newScene(t, url)
		s := scene.serve()
		run := func(on *server, key, body string) *reply {
			return on.call("POST", "/v1/jobs/nightly/run", body, keyHeader, key)
		}
		first := run(s, "a", `{"next": true}`)
		id := first.acted(true)
		require.Empty(t, first.header.Get("Idempotency-Replayed"))
		s.over(id, core.StatusCompleted)
		s.stop()
		other := scene.serve()
		again := run(other, "a", `{ "next": true }`)
		require.Equal(t, id, again.acted(true))
		require.JSONEq(t, first.text, again.text)
		require.Equal(t, "true", again.header.Get("Idempotency-Replayed"))
		run(other, "a", `{"next": false}`).is(422).says(`"reason":"key_reused"`)
		other.call("POST", "/v1/jobs/load/run", `{"next": true}`, keyHeader, "a").is(422).says(`"reason":"key_reused"`)
		require.Len(t, other.executions(), 1)

		stop := fmt.Sprintf("/v1/executions/%d/stop", id)
		for range 2 {
			other.call("POST", stop, nil, keyHeader, "b").is(409).says(`"reason":"over"`, `"kind":"show"`)
			other.call("POST", "/v1/recover", nil, keyHeader, "c").is(200).says(`"applied":false`)
			other.call("POST", "/v1/jobs/broken/run", `{"params": {"big": "x"}}`, keyHeader, "d").is(422).says("body.params.big")
		}
		second := run(other, "e", `{"next": true}`).acted(true)
		require.NotEqual(t, id, second)
	})
}

// Rule L11.
func TestOneExecutionIsStartedByTheSameRequestToTwoServers(t *testing.T) {
	t.Parallel()
	const rounds, each = 5, 4
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		scene := newScene(t, url)
		servers := []*server{scene.serve(), scene.serve()}
		for round := range rounds {
			for job, body := range map[string]string{"nightly": `{"next": true}`, "broken": `{"again": true}`, "hold": fmt.Sprintf(`{"params": {"n": %d}}`, round)} {
				before := len(servers[0].executions())
				var all sync.WaitGroup
				replies := make([]*reply, each)
				for i := range each {
					all.Go(func() {
						replies[i] = servers[i%2].call("POST", "/v1/jobs/"+job+"/run", body, keyHeader, fmt.Sprintf("%s-%d", job, round))
					})
				}
				all.Wait()
				id := replies[0].acted(true)
				for _, r := range replies {
					require.Equal(t, id, r.acted(true), r.text)
					require.JSONEq(t, replies[0].text, r.text)
				}
				require.Len(t, servers[0].executions(), before+1)
				if job == "broken" { // the next round runs the same instance again
					servers[0].over(id, core.StatusFailed)
				}
			}
		}
		scene.release()
		for _, e := range servers[0].executions() {
			_, err := servers[0].app.AwaitEnd(t.Context(), e.ID)
			require.NoError(t, err)
		}
	})
}

func TestAKeyIsThatOfItsClient(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t)).serve()
	s.call("POST", "/v1/recover", nil, keyHeader, "a").is(http.StatusOK)
	s.as(viewerToken, "POST", "/v1/recover", nil, keyHeader, "a").is(http.StatusForbidden)
	s.as("", "POST", "/v1/recover", nil, keyHeader, "a").is(http.StatusUnauthorized)
}

// Rule L11.
func TestOneActOnATaskHasOneAnswerThoughItIsAskedForTogether(t *testing.T) {
	t.Parallel()
	const each = 6
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url).serve()
		task := fmt.Sprintf("/v1/tasks/%v", s.call("POST", "/v1/tasks", `{"type": "http_request", "delay": "1h"}`).is(200).body["tasks"].([]any)[0])
		for i, act := range []string{"/cancel", "/rerun", "/cancel", "/rerun"} {
			var all sync.WaitGroup
			replies := make([]*reply, each)
			for n := range each {
				all.Go(func() { replies[n] = s.call("POST", task+act, nil, keyHeader, fmt.Sprint(act, i)) })
			}
			all.Wait()
			for _, r := range replies {
				r.is(200).says(`"applied":true`)
			}
		}
	})
}
