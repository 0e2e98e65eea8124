package acceptance

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb/pgcluster"
)

// docs/howto/scale.md has the numbers. A worker more sends few statements in a second while all are idle: it polls for
// deliveries, for work that was not delivered and for the leader, and has a heartbeat.
func TestAnIdleWorkerMoreIsFewStatements(t *testing.T) {
	t.Parallel()
	cluster, err := pgcluster.Start(t.Context(), "log_statement=all")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cluster.Stop()) })
	s := newScene(t, cluster.URL(), nil)
	s.env = []string{"SURFIN_ENGINE=river", "SURFIN_TASKS_SHELL=true"}
	code, out := s.run("migrate")
	require.Zero(t, code, out)
	const seconds, more = 5, 3
	var workers []*process
	counted := func(n int) int {
		for len(workers) < n {
			w := s.start("worker", "--slots", "4")
			w.await("waiting for work")
			workers = append(workers, w)
		}
		time.Sleep(3 * time.Second) // the first polls are over
		before := logOf(t, cluster)
		time.Sleep(seconds * time.Second)
		after := strings.TrimPrefix(logOf(t, cluster), before)
		return strings.Count(after, "LOG:  statement: ") + strings.Count(after, "LOG:  execute ")
	}
	one := counted(1)
	each := float64(counted(1+more)-one) / more / seconds
	t.Logf("one worker: %d statements in %d s; one more: %.1f/s", one, seconds, each)
	require.Less(t, each, 8.)
	for _, w := range workers {
		w.signal(syscall.SIGTERM)
	}
	for _, w := range workers {
		code, out := w.wait()
		require.Zero(t, code, out)
	}
}
