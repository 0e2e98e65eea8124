package acceptance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb/pgcluster"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// A load in its own process, parts and a child job on a worker, and tasks, concurrently.
const (
	outageJob = `
job: outage
parameters: {n: {type: int}}
flow:
- split: all
  branches:
  - - step: load
      chunk:
        size: 2
        reader: {csv: {path: in.csv, item: {id: int}}}
        processor: [{map: {n: params.n, kind: "'load'"}}]
        writer: [{table: target}, {csv: "out-${params.n}.csv"}]
        retry: {limit: 20, backoff: {initial: 50ms, max: 500ms}}
  - - step: parts
      partition: {by: {range: {table: src, key: id, parts: 3}}, remote: true}
      chunk:
        size: 2
        reader: {query: {sql: "select id from src where id between ${part.min} and ${part.max}", key: [id], item: {id: int}}}
        processor: [{map: {n: params.n, kind: "'parts'"}}]
        writer: {table: target}
        retry: {limit: 20, backoff: {initial: 50ms, max: 500ms}}
  - - job: child
      file: child.yaml
      parameters: {n: "${params.n}"}
      remote: true
  - - step: tasks
      tasks:
        handler: shell
        items: [{script: "sleep 0.1"}, {script: "sleep 0.2"}, {script: "sleep 0.3"}, {script: "sleep 0.4"}, {script: "sleep 0.5"}]
- step: done
  tasklet: {sql: "insert into target values (0, ${params.n}, 'done')"}
  retry: 20
`
	outageChild = `
job: child
parameters: {n: {type: int}}
flow:
- step: load
  chunk:
    size: 2
    reader: {csv: {path: in.csv, item: {id: int}}}
    processor: [{map: {n: params.n, kind: "'child'"}}]
    writer: {table: target}
    retry: {limit: 20, backoff: {initial: 50ms, max: 500ms}}
`
	outageRows = 300
)

type outages struct {
	*scene
	cluster *pgcluster.Cluster
	db      tx.Database
	random  *rand.Rand
	worker  *process
}

// SURFIN_OUTAGES is the number of restarts (5; 100 in make soak).
func TestNothingIsUnknownOrLostThoughPostgreSQLIsRestarted(t *testing.T) {
	t.Parallel()
	o := newOutages(t)
	const perRun = 3
	left := envInt(t, "SURFIN_OUTAGES", 5)
	for n := 1; left > 0; n++ {
		p := o.start("run", "outage.yaml", fmt.Sprint("n=", n))
		for range min(left, perRun) {
			o.awaitMore(p, n)
			require.NoError(t, o.cluster.Outage(t.Context(), []string{"INT", "QUIT"}[o.random.IntN(2)], time.Duration(o.random.IntN(500))*time.Millisecond))
			left--
		}
		for tries := 1; ; tries++ {
			code, out := p.wait()
			if code == 0 {
				break
			}
			require.Less(t, tries, 5, out)
			t.Logf("run %d ended with %d: %s", n, code, firstError(out))
			o.assertEnded()
			p = o.start("run", "outage.yaml", fmt.Sprint("n=", n))
		}
		o.assertEnded()
		for _, kind := range []string{"load", "parts", "child"} {
			require.Equal(t, []int64{outageRows, outageRows}, o.ints(o.db, fmt.Sprintf("select count(*), count(distinct id) from target where n = %d and kind = '%s'", n, kind), 2), kind)
		}
		require.Equal(t, []int64{1}, o.ints(o.db, fmt.Sprintf("select count(*) from target where n = %d and kind = 'done'", n), 1))
		require.Len(t, strings.Split(o.read(fmt.Sprintf("out-%d.csv", n)), "\n"), outageRows+2)
	}
	require.False(t, o.worker.waitFor(0), "the worker lives: %s", o.worker.out.String())
}

func newOutages(t *testing.T) *outages {
	t.Helper()
	cluster, err := pgcluster.Start(t.Context(), "synchronous_commit=on") // else an immediate stop loses commits
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cluster.Stop()) })
	var rows strings.Builder
	rows.WriteString("id\n")
	for i := range outageRows {
		fmt.Fprintln(&rows, i+1)
	}
	s := newScene(t, cluster.URL(), map[string]string{"outage.yaml": outageJob, "child.yaml": outageChild, "in.csv": rows.String()})
	s.env = []string{"SURFIN_TASKS_SHELL=true", "SURFIN_LEASE=15s"}
	_, random := killsOf(t, 1, 1, 32)
	o := &outages{scene: s, cluster: cluster, random: random}
	var r *repository.Repository
	o.db, r = s.open()
	require.NoError(t, r.Migrate(t.Context()))
	for _, sql := range []string{
		"create table target (id int, n int, kind text)", fmt.Sprintf("create table src as select generate_series(1, %d) as id", outageRows),
	} {
		_, err := o.db.Conn().ExecContext(t.Context(), sql)
		require.NoError(t, err)
	}
	o.worker = s.start("worker", "--slots", "6")
	o.worker.await("waiting for work")
	return o
}

// awaitMore returns when the run has committed a random number of further rows, or has ended.
func (o *outages) awaitMore(p *process, n int) {
	o.t.Helper()
	want := o.rows(n) + o.random.IntN(outageRows/2)
	for o.rows(n) < want && !p.waitFor(5*time.Millisecond) {
	}
}

func (o *outages) rows(n int) (count int) {
	o.t.Helper()
	require.Eventually(o.t, func() bool {
		ctx, cancel := context.WithTimeout(o.t.Context(), 5*time.Second)
		defer cancel()
		return o.db.Conn().QueryRowContext(ctx, "select count(*) from target where n = $1", n).Scan(&count) == nil
	}, time.Minute, 10*time.Millisecond)
	return count
}

func (o *outages) assertEnded() {
	o.t.Helper()
	o.rows(0) // the connections of before the restart are found dead
	list, err := repository.New(o.db, repository.Options{}).Executions(o.t.Context(), ports.ExecutionFilter{Limit: 1000})
	require.NoError(o.t, err)
	for _, e := range list {
		if e.JobName == "outage" || e.Status == core.StatusUnknown {
			require.Contains(o.t, []core.Status{core.StatusCompleted, core.StatusFailed}, e.Status, "execution %d of %s: %s", e.ID, e.JobName, e.Error)
		}
	}
}

func firstError(out string) string {
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "surfin:") {
			return strings.TrimSpace(line)
		}
	}
	return out
}

func TestACommandThatWaitsRidesOutARestartOfPostgreSQL(t *testing.T) {
	t.Parallel()
	o := newOutages(t)
	o.write("slow.yaml", `
job: slow
parameters: {k: {type: int}}
flow:
- step: wait
  partition: {by: {count: 2}, remote: true}
  tasklet: {shell: {script: 'until [ -e "go-$K" ]; do sleep 0.05; done', env: {K: "${string(params.k)}"}}}
`)
	o.write("group.json", `{"type": "shell", "tasks": [{"payload": {"script": "until [ -e `+o.dir+`/go-1 ]; do sleep 0.05; done"}}]}`)
	parked := o.start("run", "slow.yaml", "k=1")
	code, out := o.run("tasks", "submit", "group.json")
	require.Zero(t, code, out)
	group := o.start("tasks", "wait", "1", "--timeout", "2m")
	stopped := o.start("run", "slow.yaml", "k=2")
	require.Eventually(t, func() bool { return o.count("status = 'PARKED'") == 2 }, time.Minute, 20*time.Millisecond)
	stop := o.start("stop", fmt.Sprint(o.newest()), "--wait", "2m")
	require.Eventually(t, func() bool { return o.count("status = 'STOPPING'") == 1 }, time.Minute, 20*time.Millisecond)
	for _, signal := range []string{"INT", "QUIT"} {
		require.NoError(t, o.cluster.Outage(t.Context(), signal, 300*time.Millisecond))
	}
	o.write("go-1", "")
	o.write("go-2", "")
	for _, p := range []*process{parked, group} {
		code, out := p.wait()
		require.Zero(t, code, out)
	}
	for _, p := range []*process{stop, stopped} {
		code, out := p.wait()
		require.Contains(t, []int{0, 3}, code, out)
	}
	require.False(t, o.worker.waitFor(0), "the worker lives: %s", o.worker.out.String())
	o.worker.signal(syscall.SIGTERM)
}

func (o *outages) count(where string) (n int64) {
	o.t.Helper()
	return o.ints(o.db, "select count(*) from surfin_job_execution where "+where, 1)[0]
}

func (o *outages) newest() int64 {
	o.t.Helper()
	return o.ints(o.db, "select max(id) from surfin_job_execution where job_name = 'slow'", 1)[0]
}
