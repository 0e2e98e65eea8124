package acceptance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

// SURFIN_BULK_RESTARTS is the number of restarts.
func TestABulkRestartsEachExecutionOnceThoughWorkersAreKilled(t *testing.T) {
	t.Parallel()
	n := envInt(t, "SURFIN_BULK_RESTARTS", 60)
	s := newScene(t, testdb.Postgres(t), map[string]string{
		"load.yaml": "job: load\nparameters: {n: {type: int}}\nflow:\n- step: load\n  tasklet: {sql: \"insert into ran values (${params.n})\"}\n",
	})
	s.env = []string{"SURFIN_LEASE=4s", "SURFIN_HEARTBEAT=500ms"}
	code, out := s.run("migrate")
	require.Zero(t, code, out)
	code, out = s.run("backfill", "load.yaml", fmt.Sprintf("n=1..%d", n), "--parallel", "4")
	require.Equal(t, 1, code, out)
	for _, twice := range []string{"1", "2"} { // their first attempts are refused: they are not the newest
		code, out = s.run("restart", twice)
		require.Equal(t, 1, code, out)
	}
	f := &taskFaults{scene: s, n: n, workers: make([]*process, 3)}
	f.db, _ = s.open()
	_, err := f.db.Conn().ExecContext(t.Context(), "CREATE TABLE ran (n int PRIMARY KEY)")
	require.NoError(t, err)

	out = s.said("bulk", "restart", "--job", "load", "--status", "FAILED", "--dry-run")
	require.Contains(t, out, fmt.Sprintf("%d executions, 2 refusals", n+2))
	require.Equal(t, 2, strings.Count(out, "a later execution of the instance exists"), out)
	code, out = s.run("bulk", "restart", "--job", "load", "--status", "FAILED", "--expect", fmt.Sprint(n))
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
