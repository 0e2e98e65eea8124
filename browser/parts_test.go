package browser

import (
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

// Parts from the twentieth on wait for the file "go".
const sitesJob = `job: sites
description: Collects the figures of 64 sites.
flow:
- step: collect
  partition: {by: {count: 64}, remote: true}
  tasklet: {shell: {script: 'until [ "$PART" -lt 20 -o -e go ]; do sleep 0.1; done', env: {PART: "${string(part.index)}"}}}
`

// Two workers have parts; one is killed and one frozen; a third one runs the rest.
func TestTheTimeLineShowsPartsOfAKilledAndAFrozenWorker(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, map[string]string{"jobs/sites.yaml": sitesJob})
		s.env = append(s.env, "SURFIN_LEASE=4s", "SURFIN_HEARTBEAT=500ms")
		s.does(0, "migrate")
		server := s.serve()
		killed, frozen := s.worker(), s.worker()
		run := s.start("run", "jobs/sites.yaml")
		run.await("job started")
		b := newTab(t, server.at, "parts")
		// Both workers are busy with parts that wait, and the rest of the first parts are complete.
		b.until("/executions/1/parts", "main", "COMPLETED 20", "STARTED 8")
		b.look("running")
		b.open("/")
		b.look("now")
		killed.kill()
		frozen.signal(syscall.SIGSTOP)
		b.until("/workers", "h1", "No worker is alive")
		b.look("workers")
		s.write("jobs/go", "")
		third := s.worker()
		<-run.done
		require.Zero(t, run.code, run.out.String())
		frozen.signal(syscall.SIGCONT)
		b.until("/executions/1", "h1", "Execution 1 of job sites completed")
		b.look("ended")
		b.click("nav", "parts")
		require.Contains(t, b.text("main"), "COMPLETED 64")
		b.look("parts")
		b.click("nav", "timeline")
		for _, w := range []*process{killed, frozen, third} {
			require.Contains(t, b.text("main"), strconv.Itoa(w.Process.Pid))
		}
		b.look("time-line")
	})
}
