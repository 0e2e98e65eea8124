package acceptance

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
)

func (s *scene) awaitStatus(r *repository.Repository, id core.JobExecutionID, status core.Status) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		exec, err := r.Execution(s.t.Context(), id)
		return err == nil && exec.Status == status
	}, 60*time.Second, 10*time.Millisecond, "execution %d is not %s", id, status)
}

func (s *scene) parkedAlone(r *repository.Repository) {
	s.t.Helper()
	manager := s.start("run", "parts.yaml", "into=target")
	s.awaitStatus(r, 1, core.StatusParked)
	manager.signal(syscall.SIGKILL)
	manager.wait()
}

func TestAParkedExecutionIsStoppedWithoutAWorker(t *testing.T) {
	t.Parallel()
	const rows = 400
	inTurn(t, 1, func(t *testing.T, url string) {
		t.Parallel()
		s := newRemoteScene(t, url, rows, 10)
		db, r := s.open()
		s.parkedAlone(r)
		code, out := s.run("run", "parts.yaml", "into=target")
		require.Equal(t, 4, code, out)
		require.Contains(t, out, "waits for 8 partitions")
		require.Regexp(t, `surfin(\.test)? .*worker\b`, out, "what is missing is named")
		require.NotContains(t, out, "recover")
		code, out = s.run("recover")
		require.Zero(t, code, out)
		s.awaitStatus(r, 1, core.StatusParked)

		code, out = s.run("stop", "1")
		require.Zero(t, code, out)
		require.Contains(t, out, "STOPPED")
		for _, part := range s.partitions(r) {
			require.Equal(t, core.StatusStopped, part.Status, part.Name)
		}
		s.worker()
		code, out = s.run("run", "parts.yaml", "into=target")
		require.Zero(t, code, out)
		s.assertParts(db, "target", rows, 0, 1, 2, 3, 4, 5, 6, 7)
	})
}

func TestAnyProcessEndsAParkedExecutionThatIsToStop(t *testing.T) {
	t.Parallel()
	const rows = 1500
	for i, command := range []string{"stop 1", "stop 1 --wait 1m", "recover", "restart 1", "run parts.yaml into=target"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			inTurn(t, i, func(t *testing.T, url string) {
				t.Parallel()
				s := newRemoteScene(t, url, rows, 10)
				db, r := s.open()
				s.parkedAlone(r)
				worker := s.worker()
				s.awaitParts(r, worker, 2, isAtWork)
				worker.signal(syscall.SIGKILL)
				worker.wait()
				_, err := r.RequestStop(t.Context(), 1, ports.By{Actor: "test"})
				require.NoError(t, err)
				s.awaitStatus(r, 1, core.StatusStopping)

				s.inFewChunks("parts.yaml")
				p := s.start(strings.Fields(command)...)
				s.awaitStatus(r, 1, core.StatusStopped)
				if command == "recover" || strings.HasPrefix(command, "stop") {
					p.wait()
					p = s.start("restart", "1")
				}
				s.awaitStatus(r, 2, core.StatusParked)
				s.worker()
				code, out := p.wait()
				require.Zero(t, code, out)
				s.assertParts(db, "target", rows, 0, 1, 2, 3, 4, 5, 6, 7)
			})
		})
	}
}

const quickJob = `job: quick
flow:
- step: parts
  partition: {by: {count: 2}, remote: true}
  tasklet: {sql: "select 1"}
`

func TestAWaitingRunHearsThatItsExecutionIsOver(t *testing.T) {
	t.Parallel()
	inTurn(t, 0, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, map[string]string{"quick.yaml": quickJob})
		_, r := s.open()
		for i := range 3 {
			id := core.JobExecutionID(i + 1)
			manager := s.start("run", "quick.yaml", "--again")
			s.awaitStatus(r, id, core.StatusParked)
			worker := s.worker()
			s.awaitStatus(r, id, core.StatusCompleted)
			manager.signal(syscall.SIGTERM)
			code, out := manager.wait()
			if code != -1 || !strings.Contains(out, ": COMPLETED in ") { // else it was about to exit, and listened no more
				require.Zero(t, code, out)
			}
			worker.signal(syscall.SIGTERM)
			worker.wait()
		}
	})
}

// Rule P5.
func TestTheEndOfAServerStopsNoParkedExecution(t *testing.T) {
	t.Parallel()
	const rows = 400
	inTurn(t, 1, func(t *testing.T, url string) {
		t.Parallel()
		s := newRemoteScene(t, url, rows, 10)
		s.env = append(s.env, "SURFIN_API_OPERATOR_TOKENS_CI="+serveToken)
		db, r := s.open()
		server := s.serve("--jobs", "parts.yaml")
		status, answer := server.post("/v1/jobs/parts/run", "k", `{"params": {"into": "target"}}`)
		require.Equal(t, 200, status, "%v", answer)
		s.awaitStatus(r, 1, core.StatusParked)
		server.signal(syscall.SIGTERM)
		code, out := server.wait()
		require.Zero(t, code, out)
		exec, err := r.Execution(t.Context(), 1)
		require.NoError(t, err)
		require.Equal(t, core.StatusParked, exec.Status)
		require.False(t, exec.StopRequested)
		s.worker()
		s.awaitStatus(r, 1, core.StatusCompleted)
		s.assertParts(db, "target", rows, 0, 1, 2, 3, 4, 5, 6, 7)
	})
}
