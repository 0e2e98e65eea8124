package browser

import (
	"database/sql"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

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

// Two workers have parts; one is killed and one frozen; a third one runs the rest. No page is loaded again.
func TestTheLanesOfPartsFollowAKilledAndAFrozenWorker(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, map[string]string{"jobs/sites.yaml": sitesJob})
		s.env = append(s.env, "SURFIN_LEASE=4s", "SURFIN_HEARTBEAT=500ms")
		s.does(0, "migrate")
		server := s.serve()
		run := s.start("run", "jobs/sites.yaml")
		run.await("job started")
		lanes, parts, workers := newTab(t, server.at, "lanes"), newTab(t, server.at, "parts"), newTab(t, server.at, "workers")
		for b, path := range map[*tab]string{lanes: "/executions/1/timeline", parts: "/executions/1/parts", workers: "/workers"} {
			b.open(path)
			b.do(stays())
		}
		killed, frozen := s.worker(), s.worker()
		// Both workers are busy with parts that wait, and the rest of the first parts are complete.
		lanes.await(spans(killed, "STARTED") + ` === 4`)
		lanes.await(spans(frozen, "STARTED") + ` === 4`)
		lanes.keep("running.png")
		parts.await(says("COMPLETED 20", "STARTED 8"))
		parts.keep("running.png")
		killed.kill()
		s.freezes(frozen)
		workers.await(`document.querySelector("h1").innerText.includes("No worker is alive")`)
		workers.lookAt("none", twoViews())
		third := s.worker()
		lanes.await(spans(third, "STARTED") + ` === 4`)
		lanes.lookAt("taken", twoViews())
		s.write("jobs/go", "")
		<-run.done
		require.Zero(t, run.code, run.out.String())
		frozen.signal(syscall.SIGCONT)
		lanes.await(`document.title === "Timeline of execution 1: COMPLETED · Surfin"`)
		lanes.await(spans(third, "COMPLETED") + ` === 44`)
		for _, w := range []*process{killed, frozen} {
			lanes.await(spans(w, "lost") + ` === 4`)
		}
		lanes.lookAt("ended", twoViews())
		parts.await(says("COMPLETED 64"))
		parts.lookAt("ended", twoViews())
		for _, b := range []*tab{lanes, parts, workers} {
			require.True(t, evaluate[bool](b, `document.stays === true`), "%s was loaded again", b.name)
		}
	})
}

// spans is the number of parts that a worker has in a state.
func spans(worker *process, state string) string {
	return fmt.Sprintf(`[...document.querySelectorAll("main tbody tr")].filter(r => r.innerText.includes("/%d/") && r.innerText.includes(%q)).length`,
		worker.Process.Pid, state)
}

// freezes stops a process that does not hold the writer of SQLite: with it frozen nobody could write.
func (s *scene) freezes(p *process) {
	s.t.Helper()
	for {
		p.signal(syscall.SIGSTOP)
		if isPostgres(s.url) || s.isWritable() {
			return
		}
		p.signal(syscall.SIGCONT)
		time.Sleep(poll)
	}
}

func (s *scene) isWritable() bool {
	s.t.Helper()
	db, err := sql.Open("sqlite", "file:"+strings.TrimPrefix(s.url, "sqlite:")+"?_pragma=busy_timeout(500)&_txlock=immediate")
	require.NoError(s.t, err)
	defer func() { require.NoError(s.t, db.Close()) }()
	tx, err := db.BeginTx(s.t.Context(), nil)
	if err != nil {
		return false
	}
	require.NoError(s.t, tx.Rollback())
	return true
}
