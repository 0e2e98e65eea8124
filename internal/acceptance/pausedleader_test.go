package acceptance

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

// The leader is stopped by SIGSTOP between two transactions, with the first
// statement of the next one on a line that is held back. The next leader is
// paused as well, so that there is work that no other process can do.
func TestALeaderThatWasPausedWritesNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.Postgres(t), map[string]string{"tick.yaml": minutelyJob})
	s.env = []string{"SURFIN_TASKS_SHELL=true", "SURFIN_LEASE=5s", "SURFIN_HEARTBEAT=200ms"}
	f := &taskFaults{scene: s}
	f.db, _ = s.open()
	execute := func(sql string) {
		t.Helper()
		_, err := f.db.Conn().ExecContext(t.Context(), sql)
		require.NoError(t, err)
	}
	s.said("register", "tick.yaml")
	execute("CREATE TABLE ticks (at text)")
	s.write("tasks.json", `{"type": "shell", "tasks": [{"payload": {"script": "sleep 600"}}, {"payload": {"script": "sleep 600"}}]}`)
	s.said("tasks", "submit", "tasks.json") // each worker has one: none executes the tasks submitted here

	far, line := s.onLine()
	far.url += "&application_name=paused"
	paused := far.start("worker", "--slots", "1", "--poll", "1h")
	_, epoch := s.leader(f.db, []*process{paused})
	near := *s
	near.url += "&application_name=follower"
	follower := near.start("worker", "--slots", "1", "--poll", "1h")
	busy := func() bool { return f.count("SELECT count(*) FROM surfin_task WHERE state = 'RUNNING'") == 2 }
	require.Eventually(t, busy, time.Minute, 20*time.Millisecond)
	for _, name := range []string{"paused", "follower"} {
		require.Positive(t, f.count("SELECT count(*) FROM pg_stat_activity WHERE application_name = '"+name+"'"))
	}

	inTransaction := func(name string) int {
		return f.count("SELECT count(*) FROM pg_stat_activity WHERE state <> 'idle' AND application_name = '" + name + "'")
	}
	const due = "SELECT count(*) FROM surfin_job_definition WHERE scheduled_until < now() - interval '5 minutes'"
	back := func(hours int) {
		execute(fmt.Sprintf("UPDATE surfin_job_definition SET scheduled_until = now() - interval '%d hours'", hours))
	}
	until := func() int {
		return f.count("SELECT CAST(EXTRACT(EPOCH FROM scheduled_until) AS bigint) FROM surfin_job_definition")
	}
	const delay = 10 * time.Millisecond // of the line, in each direction
	line.Slow(delay)
	for {
		back(24)
		began := until()
		for before := began; before == began; before = until() { // until a transaction of the duty is committed
			time.Sleep(time.Millisecond)
		}
		time.Sleep(delay + delay/2) // its reply has come, and the next transaction begins
		line.Freeze()
		time.Sleep(2 * delay) // the server has answered all statements that it has received
		if inTransaction("paused") == 0 && f.count(due) == 1 {
			break
		}
		line.Thaw()
	}
	paused.signal(syscall.SIGSTOP)
	leads := func() bool { _, now := s.leader(f.db, []*process{paused, follower}); return now > epoch }
	require.Eventually(t, leads, time.Minute, 20*time.Millisecond)
	require.Eventually(t, func() bool { return f.count(due) == 0 }, time.Minute, 20*time.Millisecond, "the follower submits what is due")
	for {
		follower.signal(syscall.SIGSTOP)
		if inTransaction("follower") == 0 {
			break
		}
		follower.signal(syscall.SIGCONT)
		time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
	}
	back(1)
	tasks := f.count("SELECT count(*) FROM surfin_task")
	held := "SELECT count(*) FROM surfin_leader WHERE lease_until > clock_timestamp() AND epoch > " + fmt.Sprint(epoch)
	require.Equal(t, 1, f.count(held))
	beat := f.count(beatOf(paused))
	line.Slow(0)
	line.Thaw()
	paused.signal(syscall.SIGCONT)
	require.Eventually(t, func() bool { return f.count(beatOf(paused)) > beat }, 20*time.Second, 10*time.Millisecond, "it is awake")
	for began := time.Now(); time.Since(began) < time.Second; time.Sleep(20 * time.Millisecond) {
		require.Equal(t, tasks, f.count("SELECT count(*) FROM surfin_task"), "a leader of epoch %d has submitted a run", epoch)
	}
	require.Equal(t, 1, f.count(held), "nobody else could have led in this time")
	require.Equal(t, 1, f.count(due), "it advanced the schedule")
	follower.signal(syscall.SIGCONT)
	require.Eventually(t, func() bool { return f.count(due) == 0 }, time.Minute, 20*time.Millisecond, "whoever leads goes on")
	for _, p := range []*process{paused, follower} {
		p.signal(syscall.SIGKILL)
		p.wait()
	}
}

func beatOf(p *process) string {
	return fmt.Sprintf("SELECT CAST(EXTRACT(EPOCH FROM heartbeat_at) * 1000 AS bigint) FROM surfin_worker WHERE name LIKE '%%/%d/%%'", p.Process.Pid)
}
