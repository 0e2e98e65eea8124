package acceptance

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

// A run that waits for workers where there is none says so, once, and what to type.
func TestARunWithoutAWorkerSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{
		"job.yaml": "job: both\nflow:\n- split: sides\n  remote: true\n  branches:\n  - [{step: left, tasklet: {sql: create table l (n int)}}]\n  - [{step: right, tasklet: {sql: create table r (n int)}}]\n",
	})
	p := s.start("run", "job.yaml")
	const says = "the execution waits for workers, and no live worker of engine local: start `surfin worker`"
	require.Eventually(t, func() bool { return strings.Contains(p.out.String(), says) }, time.Minute, 10*time.Millisecond, p.out.String())
	worker := s.worker()
	code, out := p.wait()
	require.Zero(t, code, out)
	require.Equal(t, 1, strings.Count(out, says), out)
	worker.signal(syscall.SIGTERM)
	_, _ = worker.wait()
}
