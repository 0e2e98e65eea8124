package acceptance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"

	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb/pgcluster"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/engine/river"
	"github.com/surfin-batch/surfin/pkg/batch/cli"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
)

// effectApp makes this test binary a worker with the engine river and a handler that writes a row for each
// task, and one for each call.
const effectApp = "SURFIN_ACCEPTANCE_EFFECT_APP"

type effects struct{ pool *pgxpool.Pool }

func newEffects() (effects, error) {
	pool, err := pgxpool.New(context.Background(), os.Getenv("DATABASE_URL"))
	return effects{pool}, err
}

// Execute implements task.Handler. Its effect occurs once, however often it is called.
func (e effects) Execute(ctx context.Context, t task.Task) (task.Outcome, error) {
	_, err := e.pool.Exec(ctx, `WITH called AS (INSERT INTO calls (task) VALUES ($1))
		INSERT INTO effects (task) SELECT $1 FROM (SELECT pg_sleep(0.2)) AS work ON CONFLICT DO NOTHING`, int64(t.ID))
	return task.Success(), err
}

func runEffectApp() { cli.Main(river.Module(), batch.Handler("effect", newEffects)) }

const sixtyFourParts = `
job: parts
flow:
- step: load
  partition: {by: {range: {table: src, key: id, parts: 64}}, remote: true}
  chunk:
    size: 10
    reader: {query: {sql: "select id from src where id between ${part.min} and ${part.max}", key: [id]}}
    writer: {table: target}
  expect: read == written
`

// riverLease is the lease of workers here: the work of a killed one is taken back within it and two seconds.
const riverLease = 6 * time.Second

// SURFIN_RIVER_TASKS is the number of tasks, with a fault for each 100 of
// them.
func TestNothingIsLostOrDoubledByTasksAndPartsOverRiver(t *testing.T) {
	t.Parallel()
	n := envInt(t, "SURFIN_RIVER_TASKS", 300)
	f := newRiverFaults(t, n)
	job := f.start("run", "parts.yaml")
	for fault := range n / 100 {
		f.awaitDone(100*fault + 30)
		f.replaceEnded()
		f.double()
		switch fault % 5 {
		case 0, 3:
			f.killAndMeasure(rand.IntN(len(f.workers)))
		case 1:
			f.freezeLeader(func() {})
		case 2:
			f.finishJob(job) // an operator must judge a COMMIT that a crash leaves in doubt
			f.crash()
		case 4:
			f.freezeLeader(func() {
				f.kill(rand.IntN(len(f.workers)))
				require.NoError(t, f.cluster.Restart(t.Context()))
			})
		}
	}
	f.awaitEnd()
	f.finishJob(job)
	f.assertNothingLostOrDoubled()
}

type riverFaults struct {
	*taskFaults
	cluster    *pgcluster.Cluster
	repository *repository.Repository
	killed     []death
	crashes    int
	frozen     int       // leaders
	waited     sync.Once // for the job that was started
}

type death struct {
	pid int
	at  string
}

func newRiverFaults(t *testing.T, n int) *riverFaults {
	t.Helper()
	cluster, err := pgcluster.Start(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cluster.Stop()) })
	s := newScene(t, cluster.URL(), map[string]string{"parts.yaml": sixtyFourParts})
	s.program, err = os.Executable()
	require.NoError(t, err)
	s.env = []string{
		effectApp + "=1", "SURFIN_LOG_LEVEL=debug", "SURFIN_ENGINE=river", "SURFIN_HEARTBEAT=1s", "SURFIN_LEASE=" + riverLease.String(),
	}
	f := &riverFaults{cluster: cluster, taskFaults: &taskFaults{scene: s, n: n, slots: "8", workers: make([]*process, 3)}}
	f.db, f.repository = s.open()
	for _, sql := range []string{
		"CREATE TABLE calls (task bigint)", "CREATE TABLE effects (task bigint PRIMARY KEY)", "CREATE TABLE target (id bigint)",
		"CREATE TABLE src AS SELECT generate_series(1, 6400) AS id", "ALTER DATABASE postgres SET synchronous_commit = on",
	} {
		_, err := f.db.Conn().ExecContext(t.Context(), sql)
		require.NoError(t, err)
	}
	s.write("tasks.json", `{"type": "effect", "budget": {"max_attempts": 100}, "tasks": [{}`+strings.Repeat(",{}", n-1)+`]}`)
	code, out := s.run("tasks", "submit", "tasks.json")
	require.Zero(t, code, out)
	f.double()
	for i := range f.workers {
		f.begin(i)
	}
	return f
}

func (f *riverFaults) double() {
	f.t.Helper()
	done, err := f.db.Conn().ExecContext(f.t.Context(), `INSERT INTO surfin_river.river_job (args, kind, max_attempts, priority, queue, state, scheduled_at)
		SELECT args, kind, max_attempts, priority, queue, 'available', now() FROM surfin_river.river_job
		WHERE state = 'available' GROUP BY args, kind, max_attempts, priority, queue HAVING count(*) = 1`)
	require.NoError(f.t, err)
	n, err := done.RowsAffected()
	require.NoError(f.t, err)
	f.t.Logf("%d deliveries come twice", n)
}

// replaceEnded restarts the workers that have ended by themselves, as a supervisor does: a worker ends if its
// polls fail for longer than its lease.
func (f *riverFaults) replaceEnded() {
	f.t.Helper()
	for i, p := range f.workers {
		if p.waitFor(0) {
			lines := strings.Split(strings.TrimSpace(p.out.String()), "\n")
			f.t.Logf("worker %d ended with %d: %s", p.Process.Pid, p.code, lines[len(lines)-1])
			f.begin(i)
		}
	}
}

func (f *riverFaults) killAndMeasure(i int) {
	f.t.Helper()
	d := death{pid: f.workers[i].Process.Pid}
	require.NoError(f.t, f.db.Conn().QueryRowContext(f.t.Context(), "SELECT clock_timestamp()::text").Scan(&d.at))
	f.killed = append(f.killed, d)
	f.kill(i)
	waits := fmt.Sprintf(`SELECT count(*) FROM surfin_task t JOIN surfin_task_attempt a ON a.task_id = t.id
		WHERE a.worker LIKE '%%/%d/%%' AND a.state <> 'SUCCESS' AND t.state <> 'SUCCEEDED' AND NOT EXISTS (SELECT FROM surfin_task_attempt n
			WHERE n.task_id = a.task_id AND n.number > a.number)`, d.pid)
	require.Eventually(f.t, func() bool { return f.count(waits) == 0 }, 10*riverLease, 20*time.Millisecond, f.logs())
}

// freezeLeader stops the leading worker until another one leads, and its work
// is taken back; it resumes it after a further fault.
func (f *riverFaults) freezeLeader(further func()) {
	f.t.Helper()
	leads, epoch := f.leader(f.db, f.workers)
	leads.signal(syscall.SIGSTOP)
	held := fmt.Sprintf("SELECT count(*) FROM surfin_task WHERE state = 'RUNNING' AND worker LIKE '%%/%d/%%'", leads.Process.Pid)
	other := fmt.Sprintf("SELECT count(*) FROM surfin_leader WHERE epoch > %d", epoch)
	require.Eventually(f.t, func() bool { return f.count(held) == 0 && f.count(other) == 1 }, 4*riverLease, 20*time.Millisecond,
		"process %d leads though it is frozen\n%s", leads.Process.Pid, f.logs())
	further()
	leads.signal(syscall.SIGCONT)
	f.frozen++
}

func (f *riverFaults) crash() {
	f.t.Helper()
	other, err := pgx.Connect(f.t.Context(), f.cluster.URL())
	require.NoError(f.t, err)
	var pid int
	require.NoError(f.t, f.db.Conn().QueryRowContext(f.t.Context(), "SELECT pg_backend_pid()").Scan(&pid))
	require.NoError(f.t, syscall.Kill(pid, syscall.SIGKILL))
	// The server ends its other connections a moment later, and accepts new ones until then.
	require.Eventually(f.t, func() bool { return other.Ping(context.Background()) != nil }, time.Minute, 20*time.Millisecond)
	require.Eventually(f.t, func() bool {
		var one int
		return f.db.Conn().QueryRowContext(context.Background(), "SELECT 1").Scan(&one) == nil
	}, time.Minute, 20*time.Millisecond)
	f.crashes++
}

func (f *riverFaults) awaitEnd() {
	f.t.Helper()
	require.Eventually(f.t, func() bool {
		return f.count("SELECT count(*) FROM surfin_task WHERE state IN ('SUCCEEDED', 'FAILED', 'TIMED_OUT', 'CANCELED')") == f.n
	}, 5*time.Minute, 100*time.Millisecond, f.logs())
}

// finishJob restarts the job until it is complete: a crash of the database may fail a part.
func (f *riverFaults) finishJob(started *process) {
	f.t.Helper()
	var code int
	var out string
	f.waited.Do(func() { code, out = started.wait() })
	for tries := 0; tries < 10; tries++ {
		var newest []core.JobExecution
		require.Eventually(f.t, func() bool {
			var err error
			newest, err = f.repository.Executions(context.Background(), ports.ExecutionFilter{Limit: 1})
			return err == nil && (len(newest) == 0 || newest[0].Status.IsOver())
		}, 3*time.Minute, 100*time.Millisecond, f.logs())
		if len(newest) == 0 {
			code, out = f.run("run", "parts.yaml")
			continue
		}
		if newest[0].Status == core.StatusCompleted {
			return
		}
		code, out = f.run("restart", fmt.Sprint(newest[0].ID))
	}
	require.NoError(f.t, errors.New("the job does not end"), "%d\n%s\n%s", code, out, f.logs())
}

func (f *riverFaults) assertNothingLostOrDoubled() {
	f.t.Helper()
	for what, query := range map[string]string{
		"tasks that succeeded":       "SELECT count(*) FROM surfin_task WHERE state = 'SUCCEEDED'",
		"attempts that succeeded":    "SELECT count(*) FROM surfin_task_attempt WHERE state = 'SUCCESS'",
		"tasks with such an attempt": "SELECT count(DISTINCT task_id) FROM surfin_task_attempt WHERE state = 'SUCCESS'",
		"effects":                    "SELECT count(*) FROM effects",
	} {
		require.Equal(f.t, f.n, f.count(query), "%s\n%s", what, f.logs())
	}
	require.Zero(f.t, f.count("SELECT count(*) FROM surfin_task_attempt WHERE state = 'RUNNING'"))
	require.Zero(f.t, f.count(`SELECT count(*) FROM surfin_task t WHERE tries <> (SELECT count(*) FROM surfin_task_attempt a WHERE a.task_id = t.id)`), "the history has a gap")
	require.Zero(f.t, f.count(`SELECT count(*) FROM surfin_task_attempt a WHERE state = 'FAILED' AND NOT EXISTS
		(SELECT FROM surfin_task_decision d WHERE d.attempt_id = a.id)`), "an attempt failed, and nobody decided")
	require.Equal(f.t, 6400, f.count("SELECT count(*) FROM target"))
	require.Equal(f.t, 6400, f.count("SELECT count(DISTINCT id) FROM target"))
	logs := f.logs()
	answers := map[string]int{}
	for _, found := range regexp.MustCompile(`machine=task .*answer=(\w+)`).FindAllStringSubmatch(logs, -1) {
		answers[found[1]]++
	}
	require.Equal(f.t, f.n/100, f.frozen+len(f.killed)+f.crashes, "each fault happened")
	require.Positive(f.t, answers["duplicate"]+answers["rejected"], "deliveries came twice, and nobody was told")
	f.t.Logf("%d tasks, %d attempts, %d calls, %d taken back; answers: %v", f.n, f.count("SELECT count(*) FROM surfin_task_attempt"), f.count("SELECT count(*) FROM calls"),
		f.count("SELECT count(*) FROM surfin_task_decision WHERE trigger = 'lost_owner'"), answers)
	for _, d := range f.killed {
		f.assertTakenOver(d)
	}
}

func (f *riverFaults) assertTakenOver(d death) {
	f.t.Helper()
	var n int
	var back, again float64
	require.NoError(f.t, f.db.Conn().QueryRowContext(f.t.Context(), fmt.Sprintf(`SELECT count(*), COALESCE(max(extract(epoch FROM a.ended_at - '%[2]s')), 0)::float8,
		COALESCE(max(extract(epoch FROM (SELECT min(started_at) FROM surfin_task_attempt n WHERE n.task_id = a.task_id AND n.number = a.number + 1) - '%[2]s')), 0)::float8
		FROM surfin_task_attempt a WHERE worker LIKE '%%/%[1]d/%%' AND state = 'FAILED' AND ended_at > '%[2]s'`, d.pid, d.at)).Scan(&n, &back, &again))
	f.t.Logf("killed worker %d had %d tasks: the last was taken back after %.2f s, and ran elsewhere after %.2f s", d.pid, n, back, again)
	if os.Getenv("SURFIN_RIVER_TASKS") != "" { // the machine is busy with other tests
		require.Less(f.t, again, (riverLease + 2*time.Second).Seconds())
	}
}
