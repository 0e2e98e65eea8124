package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// The first worker that reaches the step killed dies; a file makes the step
// fails fail.
const remoteBranches = `
job: branches
flow:
- step: before
  tasklet: {sql: "insert into done values ('before')"}
- split: both
  remote: true
  branches:
  - - step: once
      tasklet: {sql: "insert into done values ('once')"}
    - step: killed
      tasklet:
        shell:
          script: |
            [ -e again ] && exit 0
            touch again
            kill -9 $PPID
    - step: then
      tasklet: {sql: "insert into done values ('then')"}
  - - step: fails
      tasklet: {shell: {script: "[ ! -e broken ]"}}
    - step: other
      tasklet: {sql: "insert into done values ('other')"}
- step: after
  tasklet: {sql: "insert into done values ('after')"}
`

func TestBranchesRunOnWorkersThatAreKilled(t *testing.T) {
	t.Parallel()
	inTurn(t, 0, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, map[string]string{
			"branches.yaml": remoteBranches, "broken": "",
			"tables.yaml": "job: tables\nflow:\n- step: make\n  tasklet: {sql: create table done (name varchar(20))}\n",
		})
		s.env = []string{"SURFIN_LEASE=4s", "SURFIN_HEARTBEAT=500ms"}
		code, out := s.run("run", "tables.yaml")
		require.Zero(t, code, out)
		_, r := s.open()
		require.Contains(t, s.said("run", "branches.yaml", "--dry-run"), "Step once (tasklet, on workers)")
		manager := s.start("run", "branches.yaml")
		awaitJob(t, r, "branches", func(e core.JobExecution) bool { return e.Status == core.StatusParked })
		manager.signal(syscall.SIGKILL)

		first := s.worker()
		code, out = first.wait()
		require.Equal(t, -1, code, out) // by the step
		parked := newestOf(t, r, "branches")
		require.Equal(t, core.StatusParked, parked.Status)
		require.Equal(t, core.Owner{}, parked.Owner)
		shown := s.said("show", fmt.Sprint(parked.ID))
		require.Contains(t, shown, "once")
		worker := s.worker()
		awaitJob(t, r, "branches", func(e core.JobExecution) bool { return e.Status.IsOver() })
		failed := newestOf(t, r, "branches")
		require.Equal(t, core.StatusFailed, failed.Status)
		require.True(t, strings.HasPrefix(failed.Error, "step fails: "), failed.Error)
		require.Equal(t, 1, failed.Attempt)
		db, _ := s.open()
		require.Equal(t, []string{"before", "once", "then"}, s.lines(db, "select name from done order by name"))

		_, explained := s.run("explain", fmt.Sprint(failed.ID))
		require.Contains(t, explained, "Step both FAILED; 1 of 2 branches complete, 2 is FAILED")
		require.Contains(t, explained, "other (on workers)")
		require.NoError(t, os.Remove(filepath.Join(s.dir, "broken")))
		code, out = s.run("restart", fmt.Sprint(failed.ID))
		require.Zero(t, code, out)
		require.Equal(t, []string{"after", "before", "once", "other", "then"}, s.lines(db, "select name from done order by name"))
		worker.signal(syscall.SIGTERM)
		worker.wait()
	})
}
