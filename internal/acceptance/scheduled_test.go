package acceptance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

const minutelyJob = `
job: tick
schedule: {cron: "* * * * *", timezone: UTC, catch_up: all, overlap: allow, parameters: {at: "${schedule.key}"}}
parameters:
  at: {type: string}
budget: {max_attempts: 100}
flow:
- step: note
  tasklet: {sql: "insert into ticks values (${params.at})"}
`

// Rules S2 and S5. SURFIN_FROZEN is how often (2). Several leaders in turn may
// be frozen with the same run: its budget has an attempt for each.
func TestNoScheduledRunIsMissingOrTwiceThoughLeadersAreFrozen(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.Postgres(t), map[string]string{"tick.yaml": minutelyJob})
	s.env = []string{"SURFIN_LEASE=3s", "SURFIN_HEARTBEAT=200ms"}
	db, _ := s.open()
	execute := func(sql string) {
		t.Helper()
		_, err := db.Conn().ExecContext(t.Context(), sql)
		require.NoError(t, err)
	}
	execute("CREATE TABLE ticks (at text)")
	code, out := s.run("register", "tick.yaml")
	require.Zero(t, code, out)
	workers := make([]*process, 3)
	for i := range workers {
		workers[i] = s.start("worker", "--slots", "2", "--poll", "50ms")
	}
	frozen := 0
	for round := range min(envInt(t, "SURFIN_FROZEN", 2), 20) {
		leader, epoch := s.leader(db, workers)
		back := fmt.Sprintf("scheduled_until - interval '%d minutes'", 30*(round+1))
		execute("DROP TABLE IF EXISTS begin")
		execute("CREATE TABLE begin AS SELECT " + back + " AS at FROM surfin_job_definition")
		execute("UPDATE surfin_job_definition SET scheduled_until = " + back)
		time.Sleep(time.Duration(rand.IntN(400)) * time.Millisecond) // the moment of the freeze is random here
		leader.signal(syscall.SIGSTOP)
		next := func() bool { _, now := s.leader(db, workers); return now > epoch }
		require.Eventually(t, next, time.Minute, 20*time.Millisecond, "round %d: nobody leads", round)
		leader.signal(syscall.SIGCONT)
		frozen++
	}
	require.Positive(t, frozen)
	missing := func() int64 {
		return s.ints(db, `SELECT count(*) FROM generate_series((SELECT date_trunc('minute', at) FROM begin), (SELECT scheduled_until FROM surfin_job_definition),
		interval '1 minute') minute WHERE minute > (SELECT at FROM begin) AND NOT EXISTS (SELECT FROM ticks WHERE (ticks.at || 'Z')::timestamptz = minute)`, 1)[0]
	}
	decided := func() bool {
		return s.ints(db, "SELECT count(*) FROM surfin_job_definition WHERE scheduled_until > now() - interval '2 minutes'", 1)[0] == 1
	}
	require.Eventually(t, decided, 2*time.Minute, 100*time.Millisecond, "not all runs are submitted")
	for left := missing(); left > 0; { // many freezes leave thousands of runs to do: as long as the number of missing ones falls, none is lost
		before := left
		if !assert.Eventually(t, func() bool { left = missing(); return left < before }, 2*time.Minute, 100*time.Millisecond) {
			tasks := s.ints(db, "SELECT count(*), count(*) FILTER (WHERE state = 'SUCCEEDED'), count(*) FILTER (WHERE state = 'FAILED') FROM surfin_task", 3)
			require.Failf(t, "scheduled runs are missing", "%d; tasks, those that succeeded, and those that failed: %v", before, tasks)
		}
	}
	require.True(t, decided(), "a leader that woke has set back the time until which runs are submitted")
	counted := s.ints(db, "SELECT count(*), count(DISTINCT at) FROM ticks", 2)
	require.GreaterOrEqual(t, counted[0], int64(30*frozen))
	require.Equal(t, counted[0], counted[1], "a scheduled run is there twice")
	t.Logf("%d scheduled runs, %d leaders frozen", counted[0], frozen)
}

// leader returns the worker that leads, and its epoch.
func (s *scene) leader(db tx.Database, workers []*process) (leads *process, epoch int) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		var holder string
		err := db.Conn().QueryRowContext(s.t.Context(), "SELECT holder, epoch FROM surfin_leader").Scan(&holder, &epoch)
		i := slices.IndexFunc(workers, func(p *process) bool { return strings.Contains(holder, fmt.Sprintf("/%d/", p.Process.Pid)) })
		if err != nil || i < 0 {
			return false
		}
		leads = workers[i]
		return true
	}, time.Minute, 20*time.Millisecond)
	return leads, epoch
}

func TestAServerThatWorksStartsRegisteredJobs(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, map[string]string{
			"tick.yaml":  strings.Replace(minutelyJob, "catch_up: all", "catch_up: last", 1),
			"other.yaml": "job: other\nflow:\n- {step: one, tasklet: {sql: select 1}}\n",
		})
		db, _ := s.open()
		_, err := db.Conn().ExecContext(t.Context(), "CREATE TABLE ticks (at text)")
		require.NoError(t, err)
		code, out := s.run("register", "tick.yaml")
		require.Zero(t, code, out)
		require.Contains(t, out, "no worker is alive")
		code, out = s.run("schedules")
		require.Zero(t, code, out)
		require.Contains(t, out, "no worker is alive")
		idle := s.serve("--jobs", "other.yaml")
		idle.await("no worker is alive")
		idle.signal(syscall.SIGTERM)
		code, out = idle.wait()
		require.Zero(t, code, out)
		back := "scheduled_until - 120000000"
		if db.Dialect() == tx.Postgres {
			back = "scheduled_until - interval '2 minutes'"
		}
		_, err = db.Conn().ExecContext(t.Context(), "UPDATE surfin_job_definition SET scheduled_until = "+back)
		require.NoError(t, err)
		server := s.serve("--jobs", "other.yaml", "--worker", "2")
		ran := func() bool { return s.ints(db, "SELECT count(*) FROM ticks", 1)[0] > 0 }
		require.Eventually(t, ran, time.Minute, 50*time.Millisecond, "nothing starts the job")
		server.signal(syscall.SIGTERM)
		code, out = server.wait()
		require.Zero(t, code, out)
	})
}
