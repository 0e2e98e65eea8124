package acceptance

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

func TestARunWithoutAWorkerSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{
		"job.yaml": "job: both\nflow:\n- split: sides\n  remote: true\n  branches:\n  - [{step: left, tasklet: {sql: create table l (n int)}}]\n  - [{step: right, tasklet: {sql: create table r (n int)}}]\n",
	})
	p := s.start("run", "job.yaml")
	const says = "the execution waits for workers, and no live worker of engine local: start `surfin worker`"
	require.Eventually(t, func() bool { return strings.Contains(p.out.String(), says) }, time.Minute, 10*time.Millisecond, p.out.String())
	worker := s.worker()
	code, out := p.wait()
	require.Zero(t, code, out)
	require.Equal(t, 1, strings.Count(out, says), out)
	worker.signal(syscall.SIGTERM)
	_, _ = worker.wait()
}

// Rule S8.
func TestTheAPISaysThatNoWorkerIsAlive(t *testing.T) {
	t.Parallel()
	const says = "no worker is alive"
	inTurn(t, 1, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, map[string]string{"jobs/tick.yaml": "job: tick\nschedule: {cron: \"0 3 1 1 *\"}\nflow:\n- step: one\n  tasklet: {sql: create table ran (id int)}\n"})
		s.env = []string{"SURFIN_API_OPERATOR_TOKENS_CI=" + serveToken}
		server := s.serve("--jobs", "jobs")
		require.NotContains(t, server.get(serveToken, "/v1/definitions"), says, "nothing is registered")
		require.Contains(t, s.said("register", "jobs/tick.yaml"), says)
		answers := func() (all []string) {
			for path, body := range map[string]string{
				"/v1/definitions/tick/enable": "", "/v1/tasks": `{"type": "http_request", "delay": "1h", "payload": {"url": "http://127.0.0.1:1/"}}`,
				"/v1/groups": `{"type": "http_request", "tasks": [{"delay": "1h"}]}`,
			} {
				status, answer := server.post(path, "", body)
				require.Equal(t, http.StatusOK, status, "%v", answer)
				warnings := ""
				if list, ok := answer["warnings"].([]any); ok {
					for _, w := range list {
						warnings += w.(string) + "\n"
					}
				}
				all = append(all, path+" "+warnings)
			}
			return append(all, server.get(serveToken, "/v1/definitions"), server.get(serveToken, "/v1/schedules"))
		}
		for _, answer := range answers() {
			require.Contains(t, answer, says)
		}
		worker := s.worker()
		require.Eventually(t, func() bool { return strings.Contains(server.get(serveToken, "/v1/workers"), `"ACTIVE"`) }, time.Minute, 20*time.Millisecond, "the worker is registered when it begins")
		for _, answer := range answers() {
			require.NotContains(t, answer, says)
		}
		for _, p := range []*process{worker, server.process} {
			p.signal(syscall.SIGTERM)
			_, _ = p.wait()
		}
	})
}
