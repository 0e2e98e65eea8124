package acceptance

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

// failedLoads is a scene with n failed executions of the job load: its table is missing.
func failedLoads(t *testing.T, url string, n int) *scene {
	t.Helper()
	s := newScene(t, url, map[string]string{
		"load.yaml": "job: load\nparameters: {n: {type: int}}\nflow:\n- step: load\n  tasklet: {sql: \"insert into ran values (${params.n})\"}\n",
	})
	s.env = []string{"SURFIN_LEASE=4s", "SURFIN_HEARTBEAT=500ms"}
	code, out := s.run("migrate")
	require.Zero(t, code, out)
	code, out = s.run("backfill", "load.yaml", fmt.Sprintf("n=1..%d", n), "--parallel", "4")
	require.Equal(t, 1, code, out)
	return s
}

func (f *taskFaults) canRun() {
	f.t.Helper()
	_, err := f.db.Conn().ExecContext(f.t.Context(), "CREATE TABLE ran (n int PRIMARY KEY)")
	require.NoError(f.t, err)
}

// The server works as well. It is killed while it is asked, and twice in the work.
func TestABulkStartsEachOnceThoughItsServerIsKilled(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		n := envInt(t, "SURFIN_BULK_RESTARTS", 40)
		s := failedLoads(t, url, n)
		s.env = append(s.env, "SURFIN_API_OPERATOR_TOKENS_ADA="+serveToken)
		f := &taskFaults{scene: s, n: n}
		f.db, _ = s.open()
		f.canRun()
		serve := func() *served { return s.serve("--worker", "--jobs", "load.yaml") }
		ask := func(server *served) int {
			status, _ := server.post("/v1/bulk", "all", fmt.Sprintf(`{"act": "restart", "filter": {"job": "load", "statuses": ["FAILED"]}, "expect": %d}`, n))
			return status
		}
		server := serve()
		go ask(server)
		time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond)
		for _, done := range []int{0, n / 4, n / 2} {
			f.awaitDone(done)
			server.signal(syscall.SIGKILL)
			server.wait()
			server = serve()
			require.Equal(t, http.StatusOK, ask(server))
		}
		code, out := s.run("tasks", "wait", "1", "--timeout", "10m")
		require.Zero(t, code, "%s\n%s", out, server.out.String())
		require.Equal(t, 1, f.count("SELECT count(*) FROM surfin_task_group"))
		require.Equal(t, n, f.count("SELECT count(*) FROM ran"))
		const launches = " FROM surfin_audit WHERE verb = 'restart' AND detail LIKE '%: group 1: restart of % executions%'"
		require.Equal(t, n, f.count("SELECT count(*)"+launches))
		require.Equal(t, n, f.count("SELECT count(DISTINCT job_execution_id)"+launches))
	})
}

// SURFIN_BULK_RESTARTS is the number of restarts.
func TestABulkRestartsEachExecutionOnceThoughWorkersAreKilled(t *testing.T) {
	t.Parallel()
	n := envInt(t, "SURFIN_BULK_RESTARTS", 60)
	s := failedLoads(t, testdb.Postgres(t), n)
	for _, twice := range []string{"1", "2"} { // their first attempts are refused: they are not the newest
		code, out := s.run("restart", twice)
		require.Equal(t, 1, code, out)
	}
	f := &taskFaults{scene: s, n: n, workers: make([]*process, 3)}
	f.db, _ = s.open()
	f.canRun()

	out := s.said("bulk", "restart", "--job", "load", "--status", "FAILED", "--dry-run")
	require.Contains(t, out, fmt.Sprintf("%d executions, 2 refusals", n+2))
	require.Equal(t, 2, strings.Count(out, "a later execution of the instance exists"), out)
	code, out := s.run("bulk", "restart", "--job", "load", "--status", "FAILED", "--expect", fmt.Sprint(n))
	require.NotZero(t, code)
	require.Contains(t, out, fmt.Sprintf("%d executions are selected now, and %d were expected", n+2, n))
	code, out = s.run("bulk", "restart", "--job", "load", "--status", "FAILED", "--expect", fmt.Sprint(n+2), "--reason", "the table is there", "--as", "ada")
	require.Zero(t, code, out)
	require.Contains(t, out, "no worker is alive")

	for i := range f.workers {
		f.begin(i)
	}
	for i := range f.workers {
		f.awaitDone(n * (i + 1) / 5)
		f.kill(i)
	}
	code, out = f.run("tasks", "wait", "1", "--timeout", "10m")
	require.Equal(t, 1, code, "two are refused: %s\n%s", out, f.logs())
	require.Equal(t, n, f.count("SELECT count(*) FROM surfin_task WHERE state = 'SUCCEEDED'"))
	require.Equal(t, 2, f.count("SELECT count(*) FROM surfin_task_attempt WHERE outcome LIKE '%has changed since%'"))
	require.Equal(t, n, f.count("SELECT count(*) FROM ran"))
	const launches = " FROM surfin_audit WHERE verb = 'restart' AND person LIKE 'ada (%' AND detail LIKE '%: group 1: restart of % executions: the table is there'"
	require.Equal(t, n, f.count("SELECT count(*)"+launches), "each is restarted once by its operator")
	require.Equal(t, n, f.count("SELECT count(DISTINCT job_execution_id)"+launches))
	t.Logf("%d restarts, %d executions of tasks", n, f.count("SELECT count(*) FROM surfin_job_execution WHERE task_id IS NOT NULL"))
}

// SURFIN_BACKFILL_DAYS is the number of days.
func TestAWeekIsBackFilledByWorkersThatAreKilled(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		n := envInt(t, "SURFIN_BACKFILL_DAYS", 12)
		last := time.Date(2028, 2, 22, 0, 0, 0, 0, time.UTC).AddDate(0, 0, n-1).Format(time.DateOnly) // over the leap day
		s := newScene(t, url, map[string]string{
			"load.yaml": "job: load\nparameters: {day: {type: date}}\nflow:\n- step: book\n  tasklet: {sql: \"insert into booked values (${params.day})\"}\n" +
				"- step: wait\n  tasklet: {shell: {script: \"sleep 0.3\"}}\n- step: check\n  tasklet: {sql: \"insert into checked select ${params.day} from gate\"}\n",
		})
		s.env = []string{"SURFIN_LEASE=4s", "SURFIN_HEARTBEAT=500ms", "TZ=Europe/Berlin"}
		code, out := s.run("migrate")
		require.Zero(t, code, out)
		f := &taskFaults{scene: s, n: n - 2, slots: "4", workers: make([]*process, 2)}
		f.db, _ = s.open()
		for _, text := range []string{"CREATE TABLE booked (day varchar(10) PRIMARY KEY)", "CREATE TABLE checked (day varchar(10) PRIMARY KEY)", "CREATE TABLE gate (n int)", "INSERT INTO gate VALUES (1)"} {
			_, err := f.db.Conn().ExecContext(t.Context(), text)
			require.NoError(t, err)
		}
		code, out = s.run("backfill", "load.yaml", "day=2028-02-23..2028-02-24")
		require.Zero(t, code, out)
		_, err := f.db.Conn().ExecContext(t.Context(), "ALTER TABLE gate RENAME TO closed")
		require.NoError(t, err)
		code, out = s.run("run", "load.yaml", "day=2028-02-26")
		require.Equal(t, 1, code, out)
		_, err = f.db.Conn().ExecContext(t.Context(), "ALTER TABLE closed RENAME TO gate")
		require.NoError(t, err)

		days := "day=2028-02-22.." + last
		out = s.said("backfill", "load.yaml", days, "--as-tasks", "--dry-run")
		require.Contains(t, out, fmt.Sprintf("%d values, %d to run", n, n-2))
		require.Contains(t, out, "resume execution 3")
		require.Contains(t, out, "2028-02-29")
		out = s.said("backfill", "load.yaml", days, "--as-tasks", "--expect", fmt.Sprint(n-2), "--parallel", "3", "--reason", "late files", "--as", "ada")
		require.Contains(t, out, fmt.Sprintf("%d tasks", n-2))

		f.begin(0)
		f.begin(1)
		over := make(chan int)
		stop := make(chan struct{})
		go func() { // no more than three are begun at any time
			most := 0
			for {
				most = max(most, f.count("SELECT count(*) FROM surfin_task WHERE state IN ('PENDING', 'ASSIGNED', 'RUNNING', 'RETRY_SCHEDULED', 'ORPHANED')"))
				select {
				case <-stop:
					over <- most
					return
				case <-time.After(20 * time.Millisecond):
				}
			}
		}()
		f.awaitDone(n / 4)
		f.kill(0)
		f.awaitDone(n / 2)
		f.kill(1)
		code, out = f.run("tasks", "wait", "1", "--timeout", "5m")
		close(stop)
		most := <-over
		require.Zero(t, code, "%s\n%s", out, f.logs())
		require.Equal(t, 3, most)
		require.Equal(t, n, f.count("SELECT count(*) FROM checked"))
		require.Equal(t, n, f.count("SELECT count(*) FROM booked"))
		require.Equal(t, n-2, f.count("SELECT count(*) FROM surfin_audit WHERE person LIKE 'ada (%' AND verb IN ('run', 'restart') AND detail LIKE '%: group 1: back-fill of load by day from %: late files'"))
		out = s.said("days", "load", "--from", "2028-02-22", "--to", last)
		require.Contains(t, out, fmt.Sprintf("%d values: %d complete, 0 not complete, 0 never run", n, n))
	})
}
