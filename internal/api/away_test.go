package api_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testproxy"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func withoutDatabase(path string) bool {
	return path == "/v1/me" || path == "/v1/jobs" || path == "/v1/jobs/{job}" || path == "/v1/jobs/{job}/flow"
}

// everyOperation calls each operation of the OpenAPI once, all concurrently, and returns the
// answers by method and path, and the duration of the slowest.
func (s *server) everyOperation(execution core.JobExecutionID) (map[string]*reply, time.Duration) {
	s.t.Helper()
	all, err := operations()
	require.NoError(s.t, err)
	bodies := map[string]string{
		"/v1/tasks": `{"type": "http_request", "delay": "1h"}`, "/v1/groups": `{"tasks": [{"type": "http_request", "delay": "1h"}]}`,
		"/v1/jobs/{job}/backfill": `{"param": "day", "from": "2026-11-01", "to": "2026-11-02"}`,
		"/v1/bulk":                fmt.Sprintf(`{"act": "stop", "executions": [%d]}`, execution), "/v1/settings/{name}": `{"value": "1"}`,
	}
	var mu sync.Mutex
	var calls sync.WaitGroup
	replies, slowest := map[string]*reply{}, time.Duration(0)
	for _, d := range all {
		path := strings.NewReplacer("{execution}", fmt.Sprint(execution), "{job}", "load", "{name}", "history_retention_days", "{task}", "1", "{group}", "1", "{skip}", "1", "{event}", "1").Replace(d.path)
		calls.Go(func() {
			began := time.Now()
			var body any
			if text, has := bodies[d.path]; has && d.method == http.MethodPost {
				body = text
			}
			got := s.call(d.method, path, body)
			mu.Lock()
			defer mu.Unlock()
			replies[d.method+" "+d.path] = got
			slowest = max(slowest, time.Since(began))
		})
	}
	calls.Wait()
	return replies, slowest
}

func TestADatabaseThatIsAwayIs503InEveryOperation(t *testing.T) {
	t.Parallel()
	proxy := testproxy.New(t, testdb.Postgres(t))
	s := newScene(t, proxy.URL()).serve()
	t.Cleanup(func() { // before the server and the application end
		proxy.Heal()
		proxy.Thaw()
	})
	id := s.call("POST", "/v1/jobs/load/run", nil).acted(true)
	s.over(id, core.StatusCompleted)
	for what, begin := range map[string]func(){"cut": proxy.Cut, "frozen": proxy.Freeze} {
		begin()
		replies, slowest := s.everyOperation(id)
		proxy.Heal()
		proxy.Thaw()
		require.Greater(t, len(replies), 30)
		for operation, got := range replies {
			if _, path, _ := strings.Cut(operation, " "); withoutDatabase(path) {
				got.is(http.StatusOK)
				continue
			}
			got.is(http.StatusServiceUnavailable).says("the database")
			seconds, err := strconv.Atoi(got.header.Get("Retry-After"))
			require.NoError(t, err, "%s: %s", what, operation)
			require.Positive(t, seconds)
		}
		require.Less(t, slowest, 20*time.Second, what)
		require.Eventually(t, func() bool { return s.call("GET", "/v1/executions", nil).status == http.StatusOK }, time.Minute, 50*time.Millisecond, "it answers again")
	}
	page := s.executions()
	require.Len(t, page, 1, "what was refused was not done")
}
