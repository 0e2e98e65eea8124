package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testproxy"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// continuing is a worker on a line that can be cut. It executes a task that
// writes the time and the attempt until the file enough exists.
type continuing struct {
	*taskFaults
	line *testproxy.Proxy
	far  *process
}

const beats = `n=$(date +%s%N); while [ ! -e enough ]; do echo $n $(date +%s%N) >> beats; sleep 0.05; done`

func newContinuing(t *testing.T, grace int) *continuing {
	t.Helper()
	s := newScene(t, testdb.Postgres(t), nil)
	s.env = []string{"SURFIN_TASKS_SHELL=true", "SURFIN_LEASE=3s", "SURFIN_HEARTBEAT=300ms"}
	s.write("tasks.json", fmt.Sprintf(`{"type": "shell", "tasks": [{"payload": {"script": %q}}]}`, beats))
	for _, command := range [][]string{{"settings", "set", "continuation_grace", strconv.Itoa(grace)}, {"tasks", "submit", "tasks.json"}} {
		code, out := s.run(command...)
		require.Zero(t, code, out)
	}
	far, line := s.onLine()
	c := &continuing{taskFaults: &taskFaults{scene: s, n: 1}, line: line}
	c.db, _ = s.open()
	c.far = far.start("worker", "--poll", "50ms")
	s.awaitFile("beats")
	return c
}

func (c *continuing) attempts() (spans [][2]time.Time) {
	c.t.Helper()
	data, err := os.ReadFile(filepath.Join(c.dir, "beats"))
	require.NoError(c.t, err)
	last := ""
	for line := range strings.Lines(string(data)) {
		attempt, at, found := strings.Cut(strings.TrimSpace(line), " ")
		nanos, err := strconv.ParseInt(at, 10, 64)
		if !found || err != nil {
			continue // it is being written
		}
		if attempt != last {
			spans, last = append(spans, [2]time.Time{time.Unix(0, nanos)}), attempt
		}
		spans[len(spans)-1][1] = time.Unix(0, nanos)
	}
	return spans
}

func (c *continuing) await(what, condition string) {
	c.t.Helper()
	require.Eventually(c.t, func() bool { return c.count("SELECT count(*) FROM surfin_task WHERE "+condition) == 1 }, time.Minute, 20*time.Millisecond, what)
}

func TestAWorkerWhoseLineIsCutContinuesWithinTheGrace(t *testing.T) {
	t.Parallel()
	c := newContinuing(t, 60)
	near := c.start("worker", "--poll", "50ms")
	c.line.Cut()
	c.await("nobody has confirmed", "state = 'RUNNING' AND continuation_state = 'CONFIRMING'")
	cut := time.Now()
	require.Eventually(t, func() bool {
		spans := c.attempts()
		return spans[len(spans)-1][1].Sub(cut) > 4*time.Second // more than a lease after the lease was over
	}, time.Minute, 50*time.Millisecond)
	require.Len(t, c.attempts(), 1)
	c.line.Heal()
	c.await("it confirms", "state = 'RUNNING' AND continuation_state = 'NONE' AND attempts = 1")
	c.write("enough", "")
	code, out := c.run("tasks", "wait", "1", "--timeout", "1m")
	require.Zero(t, code, out)
	require.Len(t, c.attempts(), 1)
	require.Equal(t, 1, c.count("SELECT count(*) FROM surfin_task_attempt"))
	require.Zero(t, c.count("SELECT count(*) FROM surfin_task_audit WHERE act LIKE 'lose%'"))
	for _, w := range []*process{c.far, near} {
		w.signal(syscall.SIGTERM)
		code, out := w.wait()
		require.Zero(t, code, out)
	}
}

func TestAWorkerWhoseLineStaysCutAbortsBeforeAnotherOneBegins(t *testing.T) {
	t.Parallel()
	c := newContinuing(t, 4)
	near := c.start("worker", "--poll", "50ms")
	c.line.Cut()
	cut := time.Now()
	require.Eventually(t, func() bool { return len(c.attempts()) == 2 }, time.Minute, 20*time.Millisecond)
	spans := c.attempts()
	require.Greater(t, spans[0][1].Sub(cut), 4*time.Second, "it continued beyond two thirds of the lease")
	require.Less(t, spans[0][1], spans[1][0], "two attempts side by side")
	require.Less(t, spans[1][0].Sub(cut), 3*time.Second+4*time.Second+4*time.Second, "lease, grace, two heartbeats and a look")
	c.write("enough", "")
	code, out := c.run("tasks", "wait", "1", "--timeout", "1m")
	require.Zero(t, code, out)
	c.line.Heal()
	for _, w := range []*process{c.far, near} {
		w.signal(syscall.SIGTERM)
	}
	_, out = c.far.wait()
	require.Contains(t, out, "the lease could not be renewed for")
	_, _ = near.wait()
}

func TestATaskOfAKilledWorkerBeginsElsewhereSoonAfterItsLease(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, nil)
		s.env = []string{"SURFIN_TASKS_SHELL=true", "SURFIN_LEASE=12s", "SURFIN_HEARTBEAT=6s"}
		s.write("tasks.json", `{"type": "shell", "tasks": [{"payload": {"script": "echo $$ >> ran; [ $(wc -l < ran) = 2 ] || sleep 100"}}]}`)
		code, out := s.run("tasks", "submit", "tasks.json")
		require.Zero(t, code, out)
		f := &taskFaults{scene: s, n: 1}
		f.db, _ = s.open()
		first := f.start("worker")
		s.awaitFile("ran")
		second := f.start("worker")
		first.signal(syscall.SIGKILL)
		first.wait()
		number := "EXTRACT(EPOCH FROM lease_until) * 1000"
		begun := "EXTRACT(EPOCH FROM started_at) * 1000"
		if f.db.Dialect() == tx.SQLite {
			number, begun = "lease_until / 1000", "started_at / 1000"
		}
		over := f.count("SELECT CAST(" + number + " AS bigint) FROM surfin_task")
		code, out = s.run("tasks", "wait", "1", "--timeout", "1m")
		require.Zero(t, code, out)
		again := f.count("SELECT CAST(" + begun + " AS bigint) FROM surfin_task_attempt WHERE number = 2")
		require.Positive(t, again-over, "before the lease was over")
		require.Less(t, again-over, 2000, "milliseconds after the end of the lease")
		second.signal(syscall.SIGTERM)
		second.wait()
	})
}
