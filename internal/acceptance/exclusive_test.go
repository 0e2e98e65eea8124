package acceptance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Two executions at once would not both get the folder.
const exclusiveJob = `
job: alone
parameters:
  n: {type: int}
  region: {type: string, default: north}
exclusive: params.region
flow:
- step: hold
  tasklet: {shell: {command: [sh, -c, "mkdir busy && sleep 0.1 && rmdir busy"]}}
`

func TestOfTheInstancesWithOneKeyOneRunsAtATime(t *testing.T) {
	t.Parallel()
	races := envInt(t, "SURFIN_RACES", 4)
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, map[string]string{"alone.yaml": exclusiveJob})
		code, out := s.run("migrate")
		require.Zero(t, code, out)
		_, r := s.open()
		for race := range races {
			left := []int{3 * race, 3*race + 1, 3*race + 2}
			for first := true; len(left) > 0; first = false {
				var running []*process
				for _, n := range left {
					running = append(running, s.start("run", "alone.yaml", fmt.Sprintf("n=%d", n)))
				}
				var refused []int
				for i, p := range running {
					code, out := p.wait()
					if code == 4 {
						require.Contains(t, out, `runs one execution with the key "north" at a time: execution `)
						require.Contains(t, out, "surfin show ")
						require.NotContains(t, out, "its process is dead", "one that is gone has ended its execution")
						refused = append(refused, left[i])
						continue
					}
					require.Zero(t, code, "race %d, n=%d:\n%s", race, left[i], out)
				}
				require.True(t, !first || len(refused) < len(left), "one gets the key")
				left = refused
			}
		}
		executions, err := r.Executions(context.Background(), ports.ExecutionFilter{JobName: "alone", Limit: 100 * races})
		require.NoError(t, err)
		require.Len(t, executions, 3*races, "a refused launch leaves no execution behind")
	})
}

const waitingJob = `
job: waiting
parameters: {n: {type: int}}
exclusive: job
flow:
- step: wait
  tasklet: {shell: {command: [sh, -c, "echo yes > began; until [ -e go ]; do sleep 0.05; done"]}}
`

func TestAKilledProcessDoesNotKeepTheKey(t *testing.T) {
	t.Parallel()
	inTurn(t, 1, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, map[string]string{"waiting.yaml": waitingJob})
		_, r := s.open()
		first := s.start("run", "waiting.yaml", "n=1")
		s.awaitFile("began")
		code, out := s.run("run", "waiting.yaml", "n=2")
		require.Equal(t, 4, code, out)
		require.Contains(t, out, "job waiting runs one execution of it at a time: execution 1, owner ")
		code, out = s.run("run", "waiting.yaml", "n=2", "--dry-run")
		require.Zero(t, code, out)
		require.Contains(t, out, "A run is refused now: job waiting runs one execution of it at a time: execution 1, owner ")

		first.signal(syscall.SIGKILL)
		first.wait()
		require.NoError(t, os.Remove(filepath.Join(s.dir, "began")))
		second := s.start("run", "waiting.yaml", "n=2")
		s.awaitFile("began")
		lost, err := r.Execution(context.Background(), 1)
		require.NoError(t, err)
		require.Equal(t, core.StatusFailed, lost.Status)
		require.Equal(t, ports.LostOwner, lost.Error)

		code, out = s.run("restart", "1")
		require.Equal(t, 4, code, out)
		code, out = s.run("explain", "1")
		require.Zero(t, code, out)
		require.Contains(t, out, "A restart is refused now: execution 2 runs, and the job must not run in parallel with it.")
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600))
		code, out = second.wait()
		require.Zero(t, code, out)
		code, out = s.run("restart", "1")
		require.Zero(t, code, out)
	})
}
