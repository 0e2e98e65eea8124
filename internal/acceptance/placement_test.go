package acceptance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

type placing struct{ *taskFaults }

func placingOn(t *testing.T, n int, f func(p *placing)) {
	t.Helper()
	all := []struct {
		name, engine string
		url          func(t testing.TB) string
	}{
		{"sqlite", "local", testdb.SQLite}, {"postgres", "local", testdb.Postgres}, {"river", "river", testdb.Postgres},
	}
	for i, on := range all {
		if i != n%len(all) && !isSoak() {
			continue
		}
		t.Run(on.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, on.url(t), nil)
			s.env = []string{"SURFIN_TASKS_SHELL=true", "SURFIN_LEASE=4s", "SURFIN_HEARTBEAT=500ms", "SURFIN_ENGINE=" + on.engine}
			p := &placing{&taskFaults{scene: s}}
			p.must("migrate")
			p.must("settings", "set", "reassign_after_seconds", "1")
			p.db, _ = s.open()
			f(p)
		})
	}
}

func (p *placing) must(args ...string) string {
	p.t.Helper()
	code, out := p.run(args...)
	require.Zero(p.t, code, out)
	return out
}

func (p *placing) at(args ...string) *process {
	p.t.Helper()
	w := p.start(append([]string{"worker", "--poll", "50ms"}, args...)...)
	p.t.Cleanup(func() { w.signal(syscall.SIGKILL) })
	p.all = append(p.all, w)
	p.await("SELECT count(*) FROM surfin_worker WHERE " + isOf("name", w))
	return w
}

func isOf(column string, w *process) string {
	return fmt.Sprintf("%s LIKE '%%/%d/%%'", column, w.Process.Pid)
}

func (p *placing) leader() *process {
	p.t.Helper()
	w := p.at("--slots", "1")
	p.await("SELECT count(*) FROM surfin_leader WHERE " + isOf("holder", w))
	return w
}

func (p *placing) await(query string) {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return p.count(query) > 0 }, time.Minute, 20*time.Millisecond, "%s\n%s", query, p.logs())
}

// freeze stops a process at a moment at which it does not hold SQLite's lock.
func (p *placing) freeze(w *process) {
	p.t.Helper()
	for range 100 {
		w.signal(syscall.SIGSTOP)
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		_, err := p.db.Conn().ExecContext(ctx, "UPDATE surfin_worker SET version = version WHERE name = ''")
		cancel()
		if err == nil {
			return
		}
		w.signal(syscall.SIGCONT)
		time.Sleep(20 * time.Millisecond)
	}
	p.t.Fatal("it holds the lock whenever it is stopped")
}

func (p *placing) submit(on string, scripts ...string) {
	p.t.Helper()
	tasks := make([]string, len(scripts))
	for i, s := range scripts {
		tasks[i] = fmt.Sprintf(`{"payload": {"script": %q, "grace": "20s"}, "on": %s}`, s, on)
	}
	p.write("placed.json", `{"type": "shell", "tasks": [`+strings.Join(tasks, ",")+`]}`)
	p.must("tasks", "submit", "placed.json")
}

const onEU1 = `{"disk": "eu1"}`

func (p *placing) ran() string {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, "ran"))
	if !os.IsNotExist(err) {
		require.NoError(p.t, err)
	}
	return string(text)
}

func (p *placing) assertReassigned(task int, by *process) {
	p.t.Helper()
	code, out := p.run("tasks", "wait", fmt.Sprint(task), "--timeout", "1m")
	require.Zero(p.t, code, "%s\n%s", out, p.logs())
	require.Equal(p.t, 1, p.count(fmt.Sprintf("SELECT count(*) FROM surfin_task WHERE id = %d AND attempt = 2 AND attempts = 1 AND leader_epoch > 0 AND %s", task, isOf("worker", by))), p.logs())
	require.Equal(p.t, 1, p.count(fmt.Sprintf("SELECT count(*) FROM surfin_task_attempt WHERE task_id = %d", task)))
	require.Equal(p.t, "once\n", p.ran())
}

// assigned freezes a worker that fits, and returns when a task is assigned to it, but not begun.
func (p *placing) assigned() *process {
	p.t.Helper()
	first := p.at("--slots", "2", "--label", "disk=eu1")
	p.freeze(first)
	p.submit(onEU1, "echo once >> ran")
	p.await("SELECT count(*) FROM surfin_task WHERE state = 'ASSIGNED' AND " + isOf("worker", first))
	return first
}

func TestATaskAssignedToAWorkerThatIsKilledGoesToAnother(t *testing.T) {
	t.Parallel()
	placingOn(t, 0, func(p *placing) {
		p.leader()
		first := p.assigned()
		first.signal(syscall.SIGKILL)
		first.wait()
		p.await("SELECT count(*) FROM surfin_task WHERE state = 'ORPHANED'")
		require.Contains(p.t, p.must("tasks", "list"), "no live worker with the labels disk=eu1")
		p.assertReassigned(1, p.at("--label", "disk=eu1"))
	})
}

func TestATaskAssignedToAFrozenWorkerIsNotBegunByItWhenItWakes(t *testing.T) {
	t.Parallel()
	placingOn(t, 1, func(p *placing) {
		p.leader()
		first := p.assigned()
		second := p.at("--label", "disk=eu1")
		p.assertReassigned(1, second)
		first.signal(syscall.SIGCONT)
		p.await("SELECT count(*) FROM surfin_worker w WHERE left_at IS NULL AND " + isOf("name", first) +
			" AND heartbeat_at > (SELECT ended_at FROM surfin_task_attempt WHERE task_id = 1)")
		second.signal(syscall.SIGTERM)
		second.wait()
		p.submit(onEU1, "true")
		p.must("tasks", "wait", "2", "--timeout", "1m")
		require.Equal(p.t, 1, p.count("SELECT count(*) FROM surfin_task WHERE id = 2 AND "+isOf("worker", first)))
		require.Equal(p.t, "once\n", p.ran())
	})
}

func TestATaskAssignedToAWorkerThatIsStoppedGoesToAnother(t *testing.T) {
	t.Parallel()
	placingOn(t, 2, func(p *placing) {
		p.leader()
		first := p.at("--slots", "1", "--drain", "20s", "--label", "disk=eu1")
		p.submit(onEU1, "trap '' TERM; while true; do sleep 0.2; done")
		p.await("SELECT count(*) FROM surfin_task WHERE id = 1 AND state = 'RUNNING'")
		p.must("tasks", "cancel", "1")
		p.submit(onEU1, "echo once >> ran")
		p.await("SELECT count(*) FROM surfin_task WHERE id = 2 AND state = 'ASSIGNED' AND " + isOf("worker", first))
		first.signal(syscall.SIGTERM)
		p.await("SELECT count(*) FROM surfin_worker WHERE draining_at IS NOT NULL AND " + isOf("name", first))
		require.Contains(p.t, p.must("tasks", "workers"), "DRAINING")
		second := p.at("--label", "disk=eu1")
		p.assertReassigned(2, second)
		require.Zero(p.t, p.count("SELECT count(*) FROM surfin_worker WHERE left_at IS NOT NULL AND "+isOf("name", first)), "the worker had ended")
	})
}

func TestPlacedTasksAreExecutedOnceThoughLeadersAreFrozenAndKilled(t *testing.T) {
	t.Parallel()
	placingOn(t, 1, func(p *placing) {
		leaders := []*process{p.leader(), p.at("--slots", "1"), p.at("--slots", "1")}
		eu, us := p.at("--slots", "2", "--label", "disk=eu1"), p.at("--slots", "2", "--label", "disk=us1,name=big")
		const n = 60
		faults := 0
		for i := range n {
			p.submit([]string{onEU1, `"big"`}[i%2], fmt.Sprintf("echo %d >> ran; sleep 0.3", i))
			if i%20 != 10 {
				continue
			}
			for _, w := range leaders {
				if p.count("SELECT count(*) FROM surfin_leader WHERE "+isOf("holder", w)) == 0 {
					continue
				}
				faults++
				p.freeze(w)
				p.await("SELECT count(*) FROM surfin_leader WHERE holder <> '' AND NOT " + isOf("holder", w))
				if i > 40 {
					w.signal(syscall.SIGKILL)
				}
				w.signal(syscall.SIGCONT)
				break
			}
		}
		done := fmt.Sprintf("SELECT count(*) FROM surfin_task WHERE state = 'SUCCEEDED' HAVING count(*) = %d", n)
		require.Eventually(t, func() bool { return strings.Count(p.ran(), "\n") >= n && p.counts(done) == n }, 2*time.Minute, 50*time.Millisecond, p.logs())
		require.Equal(p.t, n, strings.Count(p.ran(), "\n"))
		require.Equal(p.t, n, p.count("SELECT count(*) FROM surfin_task WHERE attempt = 1 AND attempts = 1"))
		require.Equal(p.t, n/2, p.count("SELECT count(*) FROM surfin_task_attempt WHERE "+isOf("worker", eu)))
		require.Equal(p.t, n/2, p.count("SELECT count(*) FROM surfin_task_attempt WHERE "+isOf("worker", us)))
		if faults > 0 { // else one of the other two workers led all the time
			require.Greater(p.t, p.count("SELECT count(DISTINCT leader_epoch) FROM surfin_task"), 1, "one leader assigned all of them")
		}
	})
}

func (p *placing) counts(query string) (n int) {
	if err := p.db.Conn().QueryRowContext(context.Background(), query).Scan(&n); err != nil {
		return 0
	}
	return n
}

const placedJob = `job: placed
flow:
- step: parts
  tasklet: {shell: {script: "echo part >> ran"}}
  partition: {by: {count: {parts: 5}}, remote: true, on: {disk: eu1}}
- split: both
  remote: true
  on: {disk: eu1}
  branches:
  - - {step: left, tasklet: {shell: {script: "echo branch >> ran"}}}
  - - {step: right, tasklet: {shell: {script: "echo branch >> ran"}}}
- job: kid
  file: kid.yaml
  remote: true
  on: {disk: eu1}
- step: work
  tasks: {handler: shell, on: {disk: eu1}, items: [{script: "echo task >> ran"}]}
`

func TestPartsBranchesChildrenAndTasksOfAJobRunWhereTheyArePlaced(t *testing.T) {
	t.Parallel()
	for n, fault := range []string{"killed", "frozen"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			placingOn(t, n, func(p *placing) {
				p.write("job.yaml", placedJob)
				p.write("kid.yaml", "job: kid\nflow:\n- {step: k, tasklet: {shell: {script: \"echo kid >> ran\"}}}\n")
				p.leader()
				first := p.at("--slots", "2", "--label", "disk=eu1")
				p.freeze(first)
				run := p.start("run", "job.yaml")
				p.await("SELECT count(*) FROM surfin_placement WHERE state = 'ASSIGNED' AND " + isOf("worker", first) + " HAVING count(*) = 2")
				if fault == "killed" {
					first.signal(syscall.SIGKILL)
					p.await("SELECT count(*) FROM surfin_placement WHERE state = 'ORPHANED'")
					require.Contains(p.t, p.must("show", "1"), "no live worker with the labels disk=eu1")
				}
				second := p.at("--slots", "2", "--label", "disk=eu1")
				code, out := run.wait()
				require.Zero(p.t, code, "%s\n%s", out, p.logs())
				first.signal(syscall.SIGCONT)
				require.Equal(p.t, strings.Repeat("part\n", 5)+"branch\nbranch\nkid\ntask\n", p.ran())
				require.Equal(p.t, 8, p.count("SELECT count(*) FROM surfin_placement WHERE "+isOf("worker", second)), p.logs())
				require.Equal(p.t, 2, p.count("SELECT count(*) FROM surfin_placement WHERE attempt = 2"))
				require.Equal(p.t, 1, p.count("SELECT count(*) FROM surfin_task WHERE attempt = 1 AND "+isOf("worker", second)))
				require.Equal(p.t, 7, p.count(fmt.Sprintf("SELECT count(*) FROM surfin_step_execution WHERE manager_id IS NOT NULL AND owner LIKE '%%%d%%'", second.Process.Pid)))
			})
		})
	}
}

// Rules P5, PL2.
func TestAWorkerThatIsStoppedGivesBackAJobThatWaitsForPlacedTasks(t *testing.T) {
	t.Parallel()
	for n := range 3 {
		placingOn(t, n, func(p *placing) {
			p.write("far.yaml", `job: far
flow:
- step: work
  tasks: {handler: shell, on: {disk: eu1}, items: [{script: "echo begun >> ran; while [ ! -e go ]; do sleep 0.05; done; echo ended >> ran"}]}
- step: then
  tasklet: {shell: {script: "echo then >> ran"}}
`)
			p.must("register", "far.yaml")
			p.write("submit.json", `{"type": "job", "tasks": [{"payload": {"job": "far"}}]}`)
			p.must("tasks", "submit", "submit.json")
			first := p.at("--slots", "1", "--types", "job")
			p.at("--slots", "1", "--types", "shell", "--label", "disk=eu1")
			require.Eventually(p.t, func() bool { return p.ran() == "begun\n" }, time.Minute, 20*time.Millisecond, "%s", p.logs())
			first.signal(syscall.SIGTERM)
			require.True(p.t, first.waitFor(20*time.Second), "it waits for a task of another worker:\n%s", first.out.String())
			code, out := first.wait()
			require.Zero(p.t, code, out)
			require.Zero(p.t, p.count("SELECT count(*) FROM surfin_task WHERE state = 'CANCELED'"))

			p.at("--slots", "1", "--types", "job")
			p.write("go", "")
			code, out = p.run("tasks", "wait", "1", "--timeout", "1m")
			require.Zero(p.t, code, "%s\n%s", out, p.logs())
			require.Equal(p.t, "begun\nended\nthen\n", p.ran())
			require.Equal(p.t, 1, p.count("SELECT count(*) FROM surfin_job_execution WHERE status = 'COMPLETED'"))
			require.Equal(p.t, 1, p.count("SELECT count(*) FROM surfin_job_execution"))
		})
	}
}
