package prometheus_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/observe/prometheus"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const partsJob = `
job: parts
flow:
- step: load
  partition: {by: {files: "in-*.csv"}, workers: 2}
  chunk:
    size: 2
    reader: {csv: {path: "${part.path}", item: {id: int}}}
    writer: {table: ids}
  expect: written == 7
- job: child
  file: child.yaml
`

const childJob = `
job: child
flow:
- step: copy
  chunk:
    reader: {csv: {path: in-a.csv, item: {id: int}}}
    writer: {table: {name: copies, create: true}}
`

// leaves are the counters of the steps that did the work themselves: without the step above its partitions
// and the step that runs a job.
func leaves(r *batchtest.Run, step string) (sum core.Counters) {
	for _, s := range r.Steps {
		if strings.HasPrefix(s.Name, step+":") {
			sum = sum.Add(s.Counters)
		}
	}
	return sum
}

func TestPartitionsAndChildJobsOfARealJobAreCountedOnce(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		exporter := exporterOf(t, prometheus.ExporterConfig{Listen: "127.0.0.1:0"})
		e := batchtest.New(t, batchtest.On(url), batchtest.With(batch.Observe(exporter)))
		e.Exec("create table ids (id bigint primary key)")
		e.Exec("insert into ids values (7)")
		e.File("in-a.csv", "id\n1\n2\n3\n")
		e.File("in-b.csv", "id\n4\n5\n6\n7\n")
		e.File("child.yaml", childJob)
		job := e.File("job.yaml", partsJob)
		first := e.Job(job).Failed("load")
		s := scrape(t, exporter.Address())
		s.agrees(t, "parts", "load", leaves(first, "load"))

		e.Exec("delete from ids where id = 7")
		second := e.Job(job).Completed()
		s = scrape(t, exporter.Address())
		s.agrees(t, "parts", "load", leaves(first, "load").Add(leaves(second, "load")))
		require.EqualValues(t, 7, s.sum("surfin_items_written_total", `step="load"`), "every item once")
		require.EqualValues(t, 3, s.sum("surfin_items_read_total", `job_name="child"`, `step="copy"`))
		require.Zero(t, s.sum("surfin_items_read_total", `step="child"`), "the child's own steps have counted them")
		require.EqualValues(t, 2, s.sum("surfin_step_executions_total", `step="load"`, `kind="partition"`))
		require.EqualValues(t, 3, s.sum("surfin_step_executions_total", `step="load"`, `kind="chunk"`), "two partitions, and the one that failed again")
		require.EqualValues(t, 1, s.sum("surfin_job_executions_total", `job_name="child"`, `status="COMPLETED"`))
		require.EqualValues(t, 1, s.sum("surfin_gates_total", `step="load"`, `held="true"`))
		require.Zero(t, s.sum("surfin_steps_running"))
		require.Zero(t, s.sum("surfin_jobs_running"))
		require.Zero(t, s.sum("surfin_transitions_total", `result="rejected"`))
		for key := range s {
			require.NotContains(t, key, "load:")
		}
	})
}

func TestATakeOverFromADeadProcessIsSeen(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		exporter := exporterOf(t, prometheus.ExporterConfig{Listen: "127.0.0.1:0"})
		e := batchtest.New(t, batchtest.On(url), batchtest.With(batch.Observe(exporter)))
		_, err := e.Repository().Launch(t.Context(), ports.LaunchRequest{
			JobName: "one", Restartable: true, Owner: core.Owner{Host: "elsewhere", Nonce: "x"}, Lease: time.Microsecond,
		})
		require.NoError(t, err)
		e.Job(e.File("job.yaml", "job: one\nflow:\n- step: a\n  tasklet: {sql: select 1}\n")).Completed()
		s := scrape(t, exporter.Address())
		require.EqualValues(t, 1, s[`surfin_transitions_total{machine="job execution",result="applied",trigger="take over"}`])
		require.EqualValues(t, 1, s[`surfin_job_starts_total{job_name="one",restarted="true"}`])
	})
}
