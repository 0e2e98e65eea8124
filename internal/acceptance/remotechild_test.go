package acceptance

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
)

// The first worker that reaches the step killed dies.
const (
	remoteOuter = `
job: outer
flow:
- step: before
  tasklet: {sql: "insert into done values ('before')"}
- job: middle
  file: middle.yaml
  remote: true
- step: after
  tasklet: {sql: "insert into done values ('after')"}
`
	remoteMiddle = `
job: middle
flow:
- step: first
  tasklet: {sql: "insert into done values ('first')"}
- job: leaf
  file: leaf.yaml
  remote: true
- step: last
  tasklet: {sql: "insert into done values ('last')"}
`
	remoteLeaf = `
job: leaf
flow:
- step: once
  tasklet: {sql: "insert into done values ('once')"}
- step: killed
  tasklet:
    shell:
      script: |
        [ -e again ] && exit 0
        touch again
        until [ -e parked ]; do sleep 0.05; done
        kill -9 $PPID
`
)

func newRemoteChildScene(t *testing.T, url string) (*scene, *repository.Repository) {
	t.Helper()
	s := newScene(t, url, map[string]string{
		"outer.yaml": remoteOuter, "middle.yaml": remoteMiddle, "leaf.yaml": remoteLeaf,
		"tables.yaml": "job: tables\nflow:\n- step: make\n  tasklet: {sql: create table done (name varchar(20))}\n",
	})
	s.env = []string{"SURFIN_LEASE=4s", "SURFIN_HEARTBEAT=500ms"}
	if strings.HasPrefix(url, "postgres") { // the engine local is that on SQLite
		s.env = append(s.env, "SURFIN_ENGINE=river")
		code, out := s.run("migrate")
		require.Zero(t, code, out)
	}
	code, out := s.run("run", "tables.yaml")
	require.Zero(t, code, out)
	_, r := s.open()
	return s, r
}

// newestOf returns the newest execution of a job; its status is empty if there
// is none.
func newestOf(t *testing.T, r *repository.Repository, job string) core.JobExecution {
	t.Helper()
	list, err := r.Executions(context.Background(), ports.ExecutionFilter{JobName: job, Limit: 1})
	require.NoError(t, err)
	if len(list) == 0 {
		return core.JobExecution{}
	}
	return list[0]
}

func awaitJob(t *testing.T, r *repository.Repository, job string, holds func(core.JobExecution) bool) {
	t.Helper()
	require.Eventually(t, func() bool { return holds(newestOf(t, r, job)) }, 60*time.Second, 10*time.Millisecond, job)
}

func TestChildJobsRunOnWorkersThatAreKilled(t *testing.T) {
	t.Parallel()
	inTurn(t, 0, func(t *testing.T, url string) {
		t.Parallel()
		s, r := newRemoteChildScene(t, url)
		require.Contains(t, s.said("run", "outer.yaml", "--dry-run"), "middle")
		manager := s.start("run", "outer.yaml")
		awaitJob(t, r, "outer", func(e core.JobExecution) bool { return e.Status == core.StatusParked })
		middle := newestOf(t, r, "middle")
		require.Equal(t, core.StatusParked, middle.Status)
		require.Zero(t, middle.StartedAt)
		manager.signal(syscall.SIGKILL)

		first := s.worker()
		awaitJob(t, r, "middle", func(e core.JobExecution) bool { return e.Status == core.StatusParked && !e.StartedAt.IsZero() })
		s.write("parked", "")
		code, out := first.wait()
		require.Equal(t, -1, code, out) // by the step
		require.Equal(t, core.StatusParked, newestOf(t, r, "outer").Status)
		require.Equal(t, core.StatusParked, newestOf(t, r, "middle").Status)
		s.worker()
		awaitJob(t, r, "outer", func(e core.JobExecution) bool { return e.Status.IsOver() })
		for job, attempt := range map[string]int{"outer": 1, "middle": 1, "leaf": 2} {
			e := newestOf(t, r, job)
			require.Equal(t, core.StatusCompleted, e.Status, "%s: %s", job, e.Error)
			require.Equal(t, attempt, e.Attempt, job)
		}
		db, _ := s.open()
		require.Equal(t, []string{"after", "before", "first", "last", "once"}, s.lines(db, "select name from done order by name"))
	})
}

func TestAStopOfAParkedParentReachesItsChild(t *testing.T) {
	t.Parallel()
	inTurn(t, 1, func(t *testing.T, url string) {
		t.Parallel()
		s, r := newRemoteChildScene(t, url)
		s.write("again", "")
		stopped := func(p *process) {
			_, out := s.run("stop", "--wait", "30s", fmt.Sprint(newestOf(t, r, "outer").ID)) // with the exit code of the execution
			for _, job := range []string{"outer", "middle"} {
				e := newestOf(t, r, job)
				require.Equal(t, core.StatusStopped, e.Status, "%s: %s\n%s", job, e.Error, out)
			}
			p.wait()
		}
		manager := s.start("run", "outer.yaml")
		awaitJob(t, r, "outer", func(e core.JobExecution) bool { return e.Status == core.StatusParked })
		stopped(manager)

		s.write("leaf.yaml", "job: leaf\nflow:\n- step: once\n  tasklet: {shell: {command: [sleep, \"600\"]}}\n")
		manager = s.start("run", "outer.yaml")
		worker := s.worker()
		awaitJob(t, r, "leaf", func(e core.JobExecution) bool { return e.Status == core.StatusStarted })
		awaitJob(t, r, "middle", func(e core.JobExecution) bool { return e.Status == core.StatusParked })
		stopped(manager)

		s.write("leaf.yaml", remoteLeaf)
		code, out := s.run("run", "outer.yaml")
		require.Zero(t, code, out)
		for job, attempt := range map[string]int{"outer": 3, "middle": 3, "leaf": 2} {
			e := newestOf(t, r, job)
			require.Equal(t, core.StatusCompleted, e.Status, "%s: %s", job, e.Error)
			require.Equal(t, attempt, e.Attempt, job)
		}
		worker.signal(syscall.SIGTERM)
		worker.wait()
	})
}
