package acceptance

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testproxy"
)

const takenBack = "SELECT count(*) FROM surfin_task_decision WHERE trigger = 'lost_owner'"

func TestNoTaskRunsTwiceAtOnceThoughLinesAreCut(t *testing.T) {
	t.Parallel()
	const tasks = 40
	s := newScene(t, testdb.Postgres(t), nil)
	s.env = []string{"SURFIN_TASKS_SHELL=true", "SURFIN_LEASE=2s", "SURFIN_HEARTBEAT=200ms"}
	var specs []string
	for i := range tasks {
		script := fmt.Sprintf("a=$(date +%%s%%N); for i in $(seq 100); do echo %d $a $(date +%%s%%N) >> spans; sleep 0.02; done", i)
		specs = append(specs, fmt.Sprintf(`{"payload": {"script": %q}}`, script))
	}
	s.write("tasks.json", `{"type": "shell", "budget": {"max_attempts": 100}, "tasks": [`+strings.Join(specs, ",")+`]}`)
	s.said("tasks", "submit", "tasks.json")
	f := &taskFaults{scene: s, n: tasks}
	f.db, _ = s.open()
	watched, stop := make(chan struct{}), make(chan struct{})
	end := sync.OnceFunc(func() { close(stop); <-watched })
	defer end()
	go func() {
		defer close(watched)
		for ok := true; ok; ok = assert.Zero(t, f.count(apart)) {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	lines := make([]*testproxy.Proxy, 3)
	starts := make([]func() *process, len(lines))
	for i := range lines {
		far, line := s.onLine()
		lines[i], starts[i] = line, func() *process { return far.start("worker", "--slots", "2", "--poll", "50ms") }
		f.workers = append(f.workers, starts[i]())
	}
	for round := range 3 {
		order := rand.Perm(len(lines))[:1+round%2]
		works := func() bool {
			select {
			case <-f.workers[order[0]].done: // cut off with a free slot, it ends when its tasks are taken, and is started again
				f.workers[order[0]] = starts[order[0]]()
			default:
			}
			return f.count(fmt.Sprintf("SELECT count(*) FROM surfin_task WHERE state = 'RUNNING' AND worker LIKE '%%/%d/%%'", f.workers[order[0]].Process.Pid)) == 2
		}
		if !assert.Eventually(t, works, time.Minute, 5*time.Millisecond) {
			t.Log(s.said("sql", "select state, worker, count(*) as n from surfin_task group by state, worker order by 1, 2"))
			require.FailNow(t, "a worker never had two tasks", "round %d, process %d:\n%s", round, f.workers[order[0]].Process.Pid, f.workers[order[0]].out.String())
		}
		lost := f.count(takenBack)
		for _, i := range order {
			lines[i].Cut()
		}
		more := func() bool {
			return f.count(takenBack) > lost
		}
		require.Eventually(t, more, 20*time.Second, 20*time.Millisecond, "nothing was taken from those that are cut off")
		for _, i := range order {
			lines[i].Heal()
		}
	}
	s.said("tasks", "wait", "1", "--timeout", "2m")
	end()
	spans := map[string]map[string][2]int64{} // of a task, its attempts
	data, err := os.ReadFile(filepath.Join(s.dir, "spans"))
	require.NoError(t, err)
	for line := range strings.Lines(string(data)) {
		words := strings.Fields(line)
		if len(words) != 3 {
			continue
		}
		at, err := strconv.ParseInt(words[2], 10, 64)
		require.NoError(t, err, line)
		if spans[words[0]] == nil {
			spans[words[0]] = map[string][2]int64{}
		}
		span, known := spans[words[0]][words[1]]
		if !known {
			span[0] = at
		}
		spans[words[0]][words[1]] = [2]int64{span[0], at}
	}
	require.Len(t, spans, tasks)
	for id, attempts := range spans {
		for a, x := range attempts {
			for b, y := range attempts {
				require.False(t, a != b && x[0] <= y[1] && y[0] <= x[1], "two attempts of task %s side by side: %v and %v", id, x, y)
			}
		}
	}
	t.Logf("%d taken back", f.count(takenBack))
	for _, w := range f.workers {
		w.signal(syscall.SIGTERM)
		w.wait()
	}
}

func TestAWorkerThatLacksAHandlerLeavesTheTask(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, nil)
		s.env = []string{"SURFIN_LEASE=3s", "SURFIN_HEARTBEAT=300ms"}
		with := *s
		with.env = append(with.env, "SURFIN_TASKS_SHELL=true")
		s.write("tasks.json", `{"type": "shell", "tasks": [{"payload": {"script": "echo done >> ran"}}]}`)
		with.said("tasks", "submit", "tasks.json")
		f := &taskFaults{scene: s, n: 1}
		f.db, _ = s.open()
		lacks := s.start("worker", "--poll", "20ms")
		require.Eventually(t, func() bool { return f.count("SELECT count(*) FROM surfin_worker") == 1 }, time.Minute, 20*time.Millisecond)
		beats := func() int { return f.count("SELECT count(*) FROM surfin_leader") }
		require.Eventually(t, func() bool { return beats() == 1 }, time.Minute, 20*time.Millisecond)
		require.Contains(t, s.said("tasks", "workers"), "shell")
		time.Sleep(time.Second) // fifty polls of a worker that must do nothing
		require.Equal(t, 1, f.count("SELECT count(*) FROM surfin_task WHERE state = 'PENDING' AND attempts = 0"))
		has := with.start("worker", "--poll", "20ms")
		with.said("tasks", "wait", "1", "--timeout", "1m")
		require.Equal(t, 1, f.count(fmt.Sprintf("SELECT count(*) FROM surfin_task_attempt WHERE state = 'SUCCESS' AND worker LIKE '%%/%d/%%'", has.Process.Pid)))
		for _, w := range []*process{lacks, has} {
			w.signal(syscall.SIGTERM)
			code, out := w.wait()
			require.Zero(t, code, out)
		}
	})
}
