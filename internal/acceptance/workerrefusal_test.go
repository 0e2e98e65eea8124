package acceptance

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const otherJob = `job: other
flow:
- step: parts
  partition: {by: {count: 2}, remote: true}
  tasklet: {sql: "select 1"}
- step: elsewhere
  tasklet: {sql: {database: other, statement: "select 1"}}
`

func TestAUserSeesWhyNoWorkerTakesAPart(t *testing.T) {
	t.Parallel()
	inTurn(t, 0, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, map[string]string{"job.yaml": otherJob, "surfin.yaml": "databases:\n  other: sqlite:other.db\n"})
		code, out := s.run("migrate")
		require.Zero(t, code, out)
		_, r := s.open()
		manager := s.start("run", "job.yaml")
		s.awaitStatus(r, 1, core.StatusParked)
		manager.signal(syscall.SIGKILL)
		manager.wait()

		poor := newScene(t, url, nil).worker()
		for _, command := range [][]string{{"explain", "1"}, {"show", "1"}} {
			require.Eventually(t, func() bool {
				code, out = s.run(command...)
				return code == 0 && strings.Contains(out, "refused by worker")
			}, 20*time.Second, 100*time.Millisecond, "%v", command)
			require.Contains(t, out, "other")
			require.Contains(t, out, "surfin worker", "what is missing is named")
		}
		require.Contains(t, poor.out.String(), "part refused")
		require.NotContains(t, poor.out.String(), "execution=0")

		s.worker()
		s.awaitStatus(r, 1, core.StatusCompleted)
		_, out = s.run("show", "1")
		require.NotContains(t, out, "refused")
	})
}
