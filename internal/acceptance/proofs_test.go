package acceptance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

const apart = `SELECT count(*) FROM surfin_task t WHERE
	(t.state = 'RUNNING') <> EXISTS (SELECT 1 FROM surfin_task_attempt a WHERE a.task_id = t.id AND a.state = 'RUNNING' AND a.epoch = t.epoch AND a.worker = t.worker)
	OR (t.state = 'SUCCEEDED') <> EXISTS (SELECT 1 FROM surfin_task_attempt a WHERE a.task_id = t.id AND a.state = 'SUCCESS')
	OR (t.state = 'FAILED' AND NOT EXISTS (SELECT 1 FROM surfin_task_attempt a WHERE a.task_id = t.id AND a.number = t.attempts AND a.state = 'FAILED'))
	OR (SELECT count(*) FROM surfin_task_attempt a WHERE a.task_id = t.id AND a.state = 'RUNNING') > 1`

func TestATaskAndItsExecutionMoveTogetherThoughWorkersAreKilled(t *testing.T) {
	t.Parallel()
	const kills = 4
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, nil)
		s.env = []string{"SURFIN_TASKS_SHELL=true", "SURFIN_LEASE=4s", "SURFIN_HEARTBEAT=500ms"}
		var specs []string
		for i := range 40 * kills {
			specs = append(specs, fmt.Sprintf(`{"payload": {"script": "exit %d"}}`, i%2*3))
		}
		s.write("tasks.json", `{"type": "shell", "budget": {"max_attempts": 1}, "tasks": [`+strings.Join(specs, ",")+`]}`)
		s.said("tasks", "submit", "tasks.json")
		f := &taskFaults{scene: s, n: len(specs), workers: make([]*process, 2)}
		f.db, _ = s.open()
		watched, stop, looks := make(chan struct{}), make(chan struct{}), 0
		go func() {
			defer close(watched)
			for {
				select {
				case <-stop:
					return
				default:
				}
				if looks++; !assert.Zero(t, f.count(apart), "look %d", looks) {
					return
				}
			}
		}()
		for i := range f.workers {
			f.begin(i)
		}
		over := "SELECT count(*) FROM surfin_task WHERE state IN ('SUCCEEDED', 'FAILED', 'TIMED_OUT')"
		for n := range kills {
			require.Eventually(t, func() bool { return f.count(over) > n*f.n/(kills+1) }, time.Minute, 5*time.Millisecond, f.logs())
			f.kill(rand.IntN(len(f.workers)))
		}
		require.Eventually(t, func() bool { return f.count(over) == f.n }, 2*time.Minute, 50*time.Millisecond, f.logs())
		close(stop)
		<-watched
		require.Zero(t, f.count(apart))
		require.Zero(t, f.count("SELECT count(*) FROM surfin_task_attempt WHERE state = 'RUNNING'"))
		require.Positive(t, f.count("SELECT count(*) FROM surfin_task WHERE state = 'FAILED'"))
		t.Logf("%d tasks, %d looks, %d lost", f.n, looks, f.count("SELECT count(*) FROM surfin_task WHERE state = 'TIMED_OUT'"))
		f.end()
	})
}

// stopBetweenWrites stops a process at a moment when it does not hold the one writer of SQLite: else no other
// process could take its work over.
func (f *taskFaults) stopBetweenWrites(p *process) {
	f.t.Helper()
	for {
		p.signal(syscall.SIGSTOP)
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		_, err := f.db.Conn().ExecContext(ctx, "UPDATE surfin_leader SET epoch = epoch WHERE 1 = 0")
		cancel()
		if err == nil {
			return
		}
		p.signal(syscall.SIGCONT)
		time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond)
	}
}

func (f *taskFaults) end() {
	f.t.Helper()
	for _, p := range f.workers {
		p.signal(syscall.SIGTERM)
		code, out := p.wait()
		require.Zero(f.t, code, out)
	}
}

func TestAFrozenWorkerDoesNotEndTheRunOfAnotherOne(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, nil)
		s.env = []string{"SURFIN_TASKS_SHELL=true", "SURFIN_LEASE=3s", "SURFIN_HEARTBEAT=300ms"}
		s.write("tasks.json", `{"type": "shell", "tasks": [{"payload": {"script": "echo $$ >> ran; if [ $(wc -l < ran) = 1 ]; then while [ ! -e frozen ]; do sleep 0.05; done; echo >> first; else while [ ! -e enough ]; do sleep 0.05; done; fi"}}]}`)
		s.said("tasks", "submit", "tasks.json")
		f := &taskFaults{scene: s, n: 1, workers: make([]*process, 1)}
		f.db, _ = s.open()
		frozen := f.start("worker", "--poll", "50ms")
		s.awaitFile("ran")
		f.stopBetweenWrites(frozen)
		s.write("frozen", "")
		s.awaitFile("first") // the handler is a process of its own, and succeeds
		f.begin(0)
		second := "SELECT count(*) FROM surfin_task t JOIN surfin_task_attempt a ON a.task_id = t.id WHERE t.state = 'RUNNING' AND a.state = 'RUNNING' AND a.number = 2"
		require.Eventually(t, func() bool { return f.count(second) == 1 }, time.Minute, 20*time.Millisecond, f.logs())
		frozen.signal(syscall.SIGCONT)
		frozen.signal(syscall.SIGTERM)
		code, out := frozen.wait() // its work is over when it has ended
		require.Zero(t, code, out)
		require.Equal(t, 1, f.count(second), "the late end of the first run ended the second one\n%s", out)
		require.Zero(t, f.count("SELECT count(*) FROM surfin_task_attempt WHERE state = 'SUCCESS'"))
		s.write("enough", "")
		s.said("tasks", "wait", "1", "--timeout", "1m")
		require.Equal(t, 1, f.count("SELECT count(*) FROM surfin_task_attempt WHERE state = 'SUCCESS' AND number = 2"))
		f.end()
	})
}

func TestAWorkerThatLosesItsLeaseAbortsBeforeAnotherOneBegins(t *testing.T) {
	t.Parallel()
	c := newContinuing(t, 0)
	near := c.start("worker", "--poll", "50ms")
	lease := func() time.Time {
		return time.UnixMilli(int64(c.count("SELECT CAST(EXTRACT(EPOCH FROM lease_until) * 1000 AS bigint) FROM surfin_task")))
	}
	c.line.Cut()
	over := lease()
	require.Eventually(t, func() bool { return len(c.attempts()) == 2 }, time.Minute, 20*time.Millisecond)
	spans := c.attempts()
	require.Less(t, spans[0][1], over.Add(50*time.Millisecond), "it executed beyond its lease")
	require.Less(t, spans[0][1], spans[1][0], "two runs side by side")
	require.Equal(t, 1, c.count("SELECT count(*) FROM surfin_task_attempt WHERE state = 'RUNNING'"))
	c.write("enough", "")
	c.said("tasks", "wait", "1", "--timeout", "1m")
	c.line.Heal()
	for _, w := range []*process{c.far, near} {
		w.signal(syscall.SIGTERM)
	}
	_, out := c.far.wait()
	require.Contains(t, out, "the lease could not be renewed for")
	_, _ = near.wait()
	require.Equal(t, 1, c.count("SELECT count(*) FROM surfin_task WHERE state = 'SUCCEEDED' AND attempts = 2"))
}

func TestTheLeaderMovesOldLogTextToFiles(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, nil)
		s.env = []string{"SURFIN_TASKS_SHELL=true", "SURFIN_TASKS_LOGS=" + filepath.Join(s.dir, "logs"), "SURFIN_LEASE=4s", "SURFIN_HEARTBEAT=300ms"}
		s.write("tasks.json", `{"type": "shell", "tasks": [{"payload": {"script": "echo an old text"}}, {"payload": {"script": "echo a young text"}}]}`)
		s.said("tasks", "submit", "tasks.json")
		f := &taskFaults{scene: s, n: 2, workers: make([]*process, 1)}
		f.db, _ = s.open()
		f.begin(0)
		s.said("tasks", "wait", "1", "--timeout", "1m")
		back := "created_at - interval '8 days'"
		if f.db.Dialect() == tx.SQLite {
			back = "created_at - 8 * 86400000000"
		}
		_, err := f.db.Conn().ExecContext(context.Background(), "UPDATE surfin_task_log SET created_at = "+back+" WHERE body LIKE 'an old%'")
		require.NoError(t, err)
		require.Equal(t, 2, f.count("SELECT count(*) FROM surfin_task_log WHERE body LIKE '%text%'"))
		s.said("settings", "set", "log_retention_days_db", "7")
		f.end()
		f.begin(0) // a leader checks when it begins to lead, and then each hour
		moved := "SELECT count(*) FROM surfin_task_log WHERE body IS NULL AND log_ref <> ''"
		require.Eventually(t, func() bool { return f.count(moved) == 1 }, time.Minute, 50*time.Millisecond, f.logs())
		var texts []string
		require.NoError(t, filepath.WalkDir(filepath.Join(s.dir, "logs"), func(path string, e os.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() {
				text, rerr := os.ReadFile(path)
				texts, err = append(texts, string(text)), rerr
			}
			return err
		}))
		require.Equal(t, []string{"an old text"}, texts)
		require.Contains(t, s.said("tasks", "show", "1")+s.said("tasks", "show", "2"), "an old text")
		require.Equal(t, 1, f.count("SELECT count(*) FROM surfin_task_log WHERE body LIKE 'a young%'"))
		f.end()
	})
}
