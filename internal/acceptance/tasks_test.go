package acceptance

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testtree"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// SURFIN_TASK_FAULTS is the number of faults, with ten tasks for each.
func TestEveryTaskEndsOnceThoughWorkersAreKilledAndFrozen(t *testing.T) {
	t.Parallel()
	faults := envInt(t, "SURFIN_TASK_FAULTS", 4)
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		f := newTaskFaults(t, url, 10*faults)
		for n := range faults {
			f.awaitDone(10*n + 3)
			i := rand.IntN(len(f.workers))
			if n%2 == 0 {
				f.kill(i)
			} else {
				f.freeze(i)
			}
		}
		code, out := f.run("tasks", "wait", "1", "--timeout", "10m")
		require.Zero(t, code, "%s\n%s", out, f.logs())
		f.assertEachEndedOnce()
	})
}

type taskFaults struct {
	*scene
	db      tx.Database
	n       int
	slots   string // of a worker; "" means 2
	workers []*process
	all     []*process
}

func newTaskFaults(t *testing.T, url string, n int) *taskFaults {
	t.Helper()
	var tasks []string
	for i := range n {
		tasks = append(tasks, fmt.Sprintf(`{"payload": {"script": "echo %d >> ran; sleep 0.2"}}`, i))
	}
	return newFaultsOf(t, url, n, `{"type": "shell", "budget": {"max_attempts": 100}, "tasks": [`+strings.Join(tasks, ",")+`]}`)
}

func newFaultsOf(t *testing.T, url string, n int, group string, env ...string) *taskFaults {
	t.Helper()
	s := newScene(t, url, nil)
	s.env = append([]string{"SURFIN_TASKS_SHELL=true", "SURFIN_LEASE=4s", "SURFIN_HEARTBEAT=500ms"}, env...)
	s.write("tasks.json", group)
	code, out := s.run("tasks", "submit", "tasks.json")
	require.Zero(t, code, out)
	f := &taskFaults{scene: s, n: n, workers: make([]*process, 3)}
	f.db, _ = s.open()
	for i := range f.workers {
		f.begin(i)
	}
	return f
}

func (f *taskFaults) begin(i int) {
	f.workers[i] = f.start("worker", "--slots", cmp.Or(f.slots, "2"), "--poll", "50ms")
	f.all = append(f.all, f.workers[i])
}

func (f *taskFaults) count(query string) (n int) {
	f.t.Helper()
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		err := f.db.Conn().QueryRowContext(context.Background(), query).Scan(&n)
		if err == nil {
			return n
		}
		if time.Since(began) > 30*time.Second {
			f.t.Errorf("%s: %v", query, err)
			return -1
		}
	}
}

func (f *taskFaults) awaitDone(n int) {
	f.t.Helper()
	require.Eventually(f.t, func() bool {
		return f.count("SELECT count(*) FROM surfin_task WHERE state = 'SUCCEEDED'") >= min(n, f.n)
	}, 2*time.Minute, 20*time.Millisecond, f.logs())
}

func (f *taskFaults) kill(i int) {
	f.workers[i].signal(syscall.SIGKILL)
	f.workers[i].wait()
	f.begin(i)
}

// freeze stops a process until others have its work, and resumes it. A process stopped while it writes to
// SQLite keeps all others from writing: it wakes before they give up, like a process without an answer to its
// first heartbeat.
func (f *taskFaults) freeze(i int) {
	f.t.Helper()
	for _, w := range f.workers {
		sent := func() bool {
			return f.count("SELECT count(*) FROM surfin_worker WHERE name LIKE '%/"+strconv.Itoa(w.Process.Pid)+"/%'") == 1
		}
		require.Eventually(f.t, sent, 2*time.Minute, 20*time.Millisecond, f.logs())
	}
	p := f.workers[i]
	p.signal(syscall.SIGSTOP)
	began := time.Now()
	query := "SELECT count(*) FROM surfin_task WHERE state = 'RUNNING' AND worker LIKE '%/" + strconv.Itoa(p.Process.Pid) + "/%'"
	for f.count(query) > 0 && time.Since(began) < 6*time.Second {
		time.Sleep(20 * time.Millisecond)
	}
	p.signal(syscall.SIGCONT)
}

func (f *taskFaults) assertEachEndedOnce() {
	f.t.Helper()
	require.Equal(f.t, f.n, f.count("SELECT count(*) FROM surfin_task WHERE state = 'SUCCEEDED'"))
	require.Equal(f.t, f.n, f.count("SELECT count(*) FROM surfin_task_attempt WHERE state = 'SUCCESS'"))
	require.Equal(f.t, f.n, f.count("SELECT count(DISTINCT task_id) FROM surfin_task_attempt WHERE state = 'SUCCESS'"))
	require.Zero(f.t, f.count("SELECT count(*) FROM surfin_task_attempt WHERE state = 'RUNNING'"))
	ran, err := os.ReadFile(filepath.Join(f.dir, "ran"))
	require.NoError(f.t, err)
	seen := map[string]bool{}
	for line := range strings.Lines(string(ran)) {
		seen[line] = true
	}
	require.Len(f.t, seen, f.n)
	f.t.Logf("%d tasks, %d attempts, %d taken back", f.n, f.count("SELECT count(*) FROM surfin_task_attempt"),
		f.count("SELECT count(*) FROM surfin_task_decision WHERE trigger = 'lost_owner'"))
	for _, p := range f.workers {
		p.signal(syscall.SIGTERM)
		code, out := p.wait()
		require.Zero(f.t, code, out)
	}
}

func (f *taskFaults) logs() string {
	var b strings.Builder
	for _, p := range f.all {
		fmt.Fprintf(&b, "--- worker %d\n%s", p.Process.Pid, p.out.String())
	}
	return b.String()
}

func (s *scene) shell(line string) string {
	s.t.Helper()
	cmd := testtree.Command(s.t.Context(), "sh", "-c", line)
	cmd.Dir = s.dir
	out, err := cmd.CombinedOutput()
	require.NoError(s.t, err, "%s\n%s", line, out)
	return string(out)
}

func TestTheCommandsOfTheTasksPageDoWhatItSays(t *testing.T) {
	t.Parallel()
	inTurn(t, 0, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, nil)
		for _, b := range blocks(t, "tasks.md") {
			if b.language == "json" {
				s.write("tasks.json", b.text)
			}
			if b.language != "sh" {
				continue
			}
			want := b.exits(t)
			for line := range strings.Lines(b.text) {
				if words, ok := strings.CutSuffix(strings.TrimSpace(line), " &"); ok {
					s.start(commandWords(t, words)...).await("waiting for work")
					continue
				}
				if !strings.HasPrefix(line, "surfin ") {
					s.shell(line)
					continue
				}
				code, out := s.run(commandWords(t, line)...)
				require.Equal(t, want, code, "%s\n%s", line, out)
			}
		}
		out := s.said("tasks", "show", "2")
		require.Contains(t, out, "no luck")
		require.Contains(t, out, "attempt 4", "it was run again")
		require.Contains(t, s.said("tasks", "show", "1"), "Stdout: hello")
		require.Contains(t, s.said("tasks", "status", "2"), "cancelled")
	})
}
