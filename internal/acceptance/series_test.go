package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/series"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
)

// Rule OP8.
func TestAKilledProcessLeavesItsSamplesAndLosesNoCounter(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, nil)
		s.env = []string{"SURFIN_HEARTBEAT=100ms"}
		writeInput(t, filepath.Join(s.dir, "in.csv"), longRows)
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, "sampled.yaml"), []byte(fmt.Sprintf(loadJob, "sampled", "sampled", "sampled", "sampled")), 0o600))
		p := s.start("run", "sampled.yaml", "input=in.csv", "into=sampled")
		p.await("step=load")
		db, r := s.open()
		require.Eventually(t, func() bool { return len(s.samplesOf(r, 1)) > 3 }, time.Minute, 10*time.Millisecond)
		p.signal(syscall.SIGKILL)
		code, out := p.wait()
		require.Equal(t, -1, code, out)
		samples := s.samplesOf(r, 1)
		last := samples[len(samples)-1].Counters
		// In one statement: the server may still commit.
		counts := s.ints(db, "select count(*), (select write_count from surfin_step_execution where name = 'load') from sampled", 2)
		require.Positive(t, last.Write)
		require.LessOrEqual(t, last.Write, counts[0], "a sample is of a commit")
		require.Equal(t, counts[0], counts[1], "its row has them all")

		code, out = s.run("run", "sampled.yaml", "input=in.csv", "into=sampled")
		require.True(t, isComplete(code, out), out)
		kept := len(samples) - 1 // the server may have committed another heartbeat since
		require.Equal(t, samples[:kept], s.samplesOf(r, 1)[:kept], "its successor has samples of its own")
		steps, err := r.Steps(t.Context(), 1)
		require.NoError(t, err)
		again := s.samplesOf(r, 2)
		require.Equal(t, longRows, int(steps[1].Counters.Read+again[len(again)-1].Counters.Read))
	})
}

// samplesOf returns the stored samples of step load.
func (s *scene) samplesOf(r *repository.Repository, id core.JobExecutionID) []series.Sample {
	s.t.Helper()
	steps, err := r.SampledSteps(s.t.Context(), ports.SampledRequest{Execution: id, Limit: 10})
	require.NoError(s.t, err)
	for _, step := range steps {
		if step.Name == "load" {
			samples, err := series.Decode(step.Samples)
			require.NoError(s.t, err)
			return samples
		}
	}
	return nil
}
