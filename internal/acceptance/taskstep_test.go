package acceptance

import (
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

func TestTheJobFileOfTasksRunsWithoutAWorker(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), nil)
	s.env = []string{"SURFIN_TASKS_SHELL=true"}
	for _, file := range []string{"jobs/tasks.yaml", "example/birdstrikes/data/birdstrikes.csv"} {
		text, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Join(s.dir, filepath.Dir(file)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, file), text, 0o600))
	}
	code, out := s.run("run", "jobs/tasks.yaml", "--dry-run")
	require.Zero(t, code, out)
	require.Contains(t, out, "Step check (tasks): would submit tasks\n  3 tasks for the handler shell\n")
	code, out = s.run("run", "jobs/tasks.yaml", "least=1000000")
	require.Equal(t, 1, code, out)
	require.Contains(t, out, "1 of 3 tasks of group 1 did not succeed: task 2 is FAILED: exit status 1 (it was tried 2 times (max_attempts 2))")
	code, out = s.run("explain", "1")
	require.Zero(t, code, out)
	require.Contains(t, out, "A restart resumes check after the tasks that have succeeded and then, if check completes, runs table and keep.")
	code, out = s.run("run", "jobs/tasks.yaml")
	require.Zero(t, code, out)
	db, _ := s.open()
	require.Equal(t, []int64{3}, s.ints(db, "SELECT checks FROM checked", 1))
}

func TestATaskOfAStepIsSubmittedOnceThoughTheProcessIsKilled(t *testing.T) {
	t.Parallel()
	const n = 16
	kills, random := killsOf(t, 3, 20, 11)
	kills = max(kills, 3)
	s := newScene(t, testdb.SQLite(t), nil)
	s.env = []string{"SURFIN_TASKS_SHELL=true", "SURFIN_LEASE=3s", "SURFIN_HEARTBEAT=300ms"}
	var rows []string
	for i := range n {
		rows = append(rows, fmt.Sprintf("(%d, 'echo %d >> ran; sleep 0.1')", i, i))
	}
	s.write("job.yaml", `job: killed
flow:
- step: make
  tasklet: {sql: "create table work (id int, script text); create table done (total int, ok int); insert into work values `+strings.Join(rows, ", ")+`"}
- step: work
  tasks:
    handler: shell
    items: {query: {sql: select script from work, key: [script], item: {script: string}}}
    budget: {max_attempts: 100}
- step: done
  tasklet: {sql: "insert into done values (${steps.work.out.total}, ${steps.work.out.succeeded})"}
`)
	for {
		p := s.start("run", "job.yaml")
		if kills > 0 {
			p.waitFor(time.Duration(random.IntN(900)) * time.Millisecond)
			p.signal(syscall.SIGKILL)
		}
		code, out := p.wait()
		if isComplete(code, out) {
			break
		}
		require.Equal(t, -1, code, out)
		kills--
	}
	db, r := s.open()
	require.Equal(t, []int64{1, int64(n), int64(n)}, s.ints(db, `SELECT (SELECT count(*) FROM surfin_task_group), (SELECT count(*) FROM surfin_task),
		(SELECT count(*) FROM surfin_task WHERE state = 'SUCCEEDED')`, 3), "one group, of which nothing is lost")
	require.Equal(t, []int64{1, int64(n), int64(n)}, s.ints(db, "SELECT count(*), sum(total), sum(ok) FROM done", 3))
	execs, err := r.LastSteps(t.Context(), 1, 0)
	require.NoError(t, err)
	work := execs["work"].Last.Total()
	require.Equal(t, []int64{int64(n), int64(n)}, []int64{work.Read, work.Write})
	ran, err := os.ReadFile(filepath.Join(s.dir, "ran"))
	require.NoError(t, err)
	for i := range n {
		require.Contains(t, "\n"+string(ran), fmt.Sprintf("\n%d\n", i))
	}
}
