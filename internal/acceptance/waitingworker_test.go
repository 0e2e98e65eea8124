package acceptance

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
)

// waitKind is work that a step waits for, and that no process does while the only worker stops.
type waitKind struct {
	name, step, job string
	// stop means that a stop is requested while no process has the execution.
	stop  bool
	lines int
}

const waitWork = `{shell: {command: [sh, -c, "sleep 0.2; echo x >> done"]}}`

func waitKinds() []waitKind {
	const parts = "step: wait\n  partition: {by: {count: 30}, remote: true}\n  tasklet: " + waitWork
	const tasks = "step: wait\n  tasks: {handler: shell, items: {query: {sql: select script from work, key: [script], item: {script: string}}}}"
	const key, file = "job: wait\n  file: lock.yaml", "step: wait\n  tasklet: {wait_file: {path: go, poll: 50ms, stable: 0s}}"
	return []waitKind{
		{"branch key", key, waitingBranch, false, 2},
		{"branch file", file, waitingBranch, false, 0},
		{"finally file", file, waitingFinally, false, 0},
		{"finally parts", parts, waitingFinally, false, 30},
		{"finally parts stopped", parts, waitingFinally, true, 30},
		{"finally tasks", tasks, waitingFinally, false, 30},
		{"finally tasks stopped", tasks, waitingFinally, true, 30},
	}
}

const (
	waitingBranch = `
job: waiting
flow:
- split: both
  remote: true
  branches:
  - - step: before
      tasklet: {sql: "insert into trace values ('before')"}
    - %s
    - step: then
      tasklet: {sql: "insert into trace values ('then')"}
  - - step: other
      tasklet: {sql: "insert into trace values ('other')"}
- step: after
  tasklet: {sql: "insert into trace values ('after')"}
`
	// The flow fails, so that the outcome has a message and finally runs for it.
	waitingFinally = `
job: waiting
flow:
- step: parks
  partition: {by: {count: 1}, remote: true}
  tasklet: {sql: "insert into trace values ('parks')"}
- step: fails
  tasklet: {fail: {message: "the flow has failed"}}
finally:
- step: before
  tasklet: {sql: "insert into trace values ('before')"}
- %s
- step: then
  tasklet: {sql: "insert into trace values ('then')"}
`
)

func newWaitingScene(t *testing.T, url string, kind waitKind) (*scene, *repository.Repository) {
	t.Helper()
	step := kind.step
	if kind.job == waitingBranch {
		step = strings.ReplaceAll(step, "\n", "\n    ")
	}
	values := make([]string, 30)
	for i := range values {
		values[i] = fmt.Sprintf("('sleep 0.2; echo x >> done; : %02d')", i)
	}
	s := newScene(t, url, map[string]string{
		"waiting.yaml": fmt.Sprintf(kind.job, step),
		"lock.yaml":    "job: lock\nparameters:\n  n: {type: int, default: 0}\nexclusive: job\nflow:\n- step: hold\n  tasklet: {shell: {command: [sh, -c, \"until [ -e go ]; do sleep 0.05; done; echo x >> done\"]}}\n",
		"tables.yaml": "job: tables\nflow:\n- step: make\n  tasklet: {sql: \"create table trace (name varchar(20)); create table work (script varchar(100)); insert into work values " +
			strings.Join(values, ", ") + "\"}\n",
	})
	s.env = []string{"SURFIN_LEASE=8s", "SURFIN_HEARTBEAT=500ms", "SURFIN_TASKS_SHELL=true"}
	if strings.HasPrefix(url, "postgres") {
		s.env = append(s.env, "SURFIN_ENGINE=river")
	}
	code, out := s.run("migrate")
	require.Zero(t, code, out)
	code, out = s.run("run", "tables.yaml")
	require.Zero(t, code, out)
	_, r := s.open()
	return s, r
}

func (s *scene) doneLines() int {
	text, err := os.ReadFile(filepath.Join(s.dir, "done"))
	if err != nil {
		return 0
	}
	return strings.Count(string(text), "\n")
}

// assertDone checks that each script ran. One that the stop ended between its last command and its exit
// ran again.
func (s *scene) assertDone(scripts int) {
	s.t.Helper()
	require.GreaterOrEqual(s.t, s.doneLines(), scripts, "none is lost")
	require.LessOrEqual(s.t, s.doneLines(), scripts+runtime.GOMAXPROCS(0), "only those that ran at the stop are repeated")
}

// awaitWaiting returns when the step waits for the work of the kind.
func (s *scene) awaitWaiting(r *repository.Repository, kind waitKind) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		if kind.lines > 2 {
			return s.doneLines() > 1
		}
		steps, err := r.Steps(s.t.Context(), newestOf(s.t, r, "waiting").ID)
		require.NoError(s.t, err)
		for _, step := range steps {
			if step.Name != "wait" || step.Status != core.StatusStarted {
				continue
			}
			_, waits := step.Context.Get(ports.WaitsKey)
			return waits || kind.lines == 0
		}
		return false
	}, time.Minute, 10*time.Millisecond)
}

// Rules P5, P8.
func TestTheOnlyWorkerGivesBackWhatWaits(t *testing.T) {
	t.Parallel()
	for _, kind := range waitKinds() {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			for turn := range 2 {
				inTurn(t, turn, func(t *testing.T, url string) { gaveBack(t, url, kind) })
			}
		})
	}
}

func gaveBack(t *testing.T, url string, kind waitKind) {
	t.Parallel()
	s, r := newWaitingScene(t, url, kind)
	if kind.lines == 2 {
		s.start("run", "lock.yaml", "n=1")
		awaitJob(t, r, "lock", func(e core.JobExecution) bool { return e.Status == core.StatusStarted })
	}
	manager := s.start("run", "waiting.yaml")
	awaitJob(t, r, "waiting", func(e core.JobExecution) bool { return e.Status == core.StatusParked })
	manager.signal(syscall.SIGKILL)
	manager.wait()

	worker := s.worker()
	s.awaitWaiting(r, kind)
	worker.signal(syscall.SIGTERM)
	require.True(t, worker.waitFor(20*time.Second), "it waits for work that no process does:\n%s", worker.out.String())
	code, out := worker.wait()
	require.Zero(t, code, out)
	given := newestOf(t, r, "waiting")
	require.Equal(t, core.StatusParked, given.Status)
	require.Equal(t, core.Owner{}, given.Owner)
	require.False(t, given.StopRequested)

	var stop *process
	if kind.stop { // a step of finally is not stopped by it (rule L13)
		stop = s.start("stop", fmt.Sprint(given.ID), "--wait", "2m")
		require.Eventually(t, func() bool { return newestOf(t, r, "waiting").StopRequested }, time.Minute, 10*time.Millisecond)
	}
	s.worker()
	s.write("go", "")
	awaitJob(t, r, "waiting", func(e core.JobExecution) bool { return e.Status.IsOver() })
	ended := newestOf(t, r, "waiting")
	require.Equal(t, 1, ended.Attempt)
	if stop != nil {
		stop.wait()
	}
	want, trace := core.StatusCompleted, []string{"after", "before", "other", "then"}
	if kind.job == waitingFinally {
		want, trace = core.StatusFailed, []string{"before", "parks", "then"}
		require.Contains(t, ended.Error, "the flow has failed")
	}
	require.Equal(t, want, ended.Status, ended.Error)
	db, _ := s.open()
	require.Equal(t, trace, s.lines(db, "select name from trace order by name"))
	s.assertDone(kind.lines)
	steps, err := r.Steps(t.Context(), ended.ID)
	require.NoError(t, err)
	for _, step := range steps {
		if step.Name == "wait" {
			require.Equal(t, core.StatusCompleted, step.Status, step.Error)
		}
	}
}

func serverKinds() map[string]string {
	return map[string]string{
		"parts":    "job: waiting\nflow:\n- step: wait\n  partition: {by: {count: 30}, remote: true}\n  tasklet: " + waitWork + "\n",
		"tasks":    "job: waiting\nflow:\n- step: wait\n  tasks: {handler: shell, items: {query: {sql: select script from work, key: [script], item: {script: string}}}}\n",
		"children": "job: waiting\nflow:\n- job: wait\n  file: child.yaml\n  remote: true\n",
		"branches": "job: waiting\nflow:\n- split: both\n  remote: true\n  branches:\n  - [{job: wait, file: child.yaml, remote: false}]\n  - [{step: other, tasklet: {sql: \"insert into trace values ('other')\"}}]\n",
	}
}

// Rule P5.
func TestTheEndOfAServerStopsNoWaitingJob(t *testing.T) {
	t.Parallel()
	n := 0
	kinds := serverKinds()
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		job := kinds[name]
		for _, worker := range []bool{false, true} {
			n++
			t.Run(fmt.Sprintf("%s worker %t", name, worker), func(t *testing.T) {
				t.Parallel()
				inTurn(t, n, func(t *testing.T, url string) {
					t.Parallel()
					if name == "tasks" && !worker && strings.HasPrefix(url, "sqlite:") {
						return // on SQLite the server executes the tasks of a step itself: nothing waits
					}
					s, r := newWaitingScene(t, url, waitKind{job: waitingFinally, step: "step: none\n  tasklet: {sql: select 1}"})
					s.write("waiting.yaml", job)
					steps := strings.Repeat("- step: s%d\n  tasklet: "+waitWork+"\n", 30)
					numbers := make([]any, 30)
					for i := range numbers {
						numbers[i] = i
					}
					s.write("child.yaml", "job: child\nflow:\n"+fmt.Sprintf(steps, numbers...))
					s.env = append(s.env, "SURFIN_API_OPERATOR_TOKENS_CI="+serveToken)
					args := []string{"--jobs", "waiting.yaml"}
					if worker {
						args = append(args, "--worker", "2")
					}
					server := s.serve(args...)
					status, answer := server.post("/v1/jobs/waiting/run", "k", "{}")
					require.Equal(t, 200, status, "%v", answer)
					awaitJob(t, r, "waiting", func(e core.JobExecution) bool { return e.Status == core.StatusParked })
					if worker {
						require.Eventually(t, func() bool { return s.doneLines() > 1 }, time.Minute, 10*time.Millisecond)
					}
					server.signal(syscall.SIGTERM)
					require.True(t, server.waitFor(30*time.Second), server.out.String())
					code, out := server.wait()
					require.Zero(t, code, out)
					exec := newestOf(t, r, "waiting")
					require.Equal(t, core.StatusParked, exec.Status, out)
					require.False(t, exec.StopRequested)
					s.worker()
					awaitJob(t, r, "waiting", func(e core.JobExecution) bool { return e.Status.IsOver() })
					exec = newestOf(t, r, "waiting")
					require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
					require.Equal(t, 1, exec.Attempt)
					s.assertDone(30)
				})
			})
		}
	}
}
