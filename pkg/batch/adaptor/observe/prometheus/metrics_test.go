package prometheus_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/observe/prometheus"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

type series map[string]float64

func scrape(t *testing.T, address string) series {
	t.Helper()
	response, err := http.Get("http://" + address + "/metrics")
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	all, err := parser.TextToMetricFamilies(response.Body)
	require.NoError(t, err)
	return flatten(all)
}

func readText(t *testing.T, path string) series {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	all, err := parser.TextToMetricFamilies(f)
	require.NoError(t, err)
	return flatten(all)
}

func flatten(all map[string]*dto.MetricFamily) series {
	s := series{}
	for name, f := range all {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			key := "{" + strings.Join(labels, ",") + "}"
			switch {
			case m.GetCounter() != nil:
				s[name+key] = m.GetCounter().GetValue()
			case m.GetGauge() != nil:
				s[name+key] = m.GetGauge().GetValue()
			case m.GetHistogram() != nil:
				s[name+"_count"+key] = float64(m.GetHistogram().GetSampleCount())
				s[name+"_sum"+key] = m.GetHistogram().GetSampleSum()
			}
		}
	}
	return s
}

func (s series) sum(name string, labels ...string) float64 {
	var total float64
	for key, value := range s {
		if strings.HasPrefix(key, name+"{") && !slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(key, l) }) {
			total += value
		}
	}
	return total
}

func (s series) agrees(t *testing.T, job, step string, c core.Counters) {
	t.Helper()
	of := []string{fmt.Sprintf("job_name=%q", job), fmt.Sprintf("step=%q", step)}
	for name, want := range map[string]int64{
		"surfin_items_read_total": c.Read, "surfin_items_written_total": c.Write, "surfin_items_filtered_total": c.Filter,
		"surfin_commits_total": c.Commit, "surfin_rollbacks_total": c.Rollback,
	} {
		require.EqualValues(t, want, s.sum(name, of...), name)
	}
	for phase, want := range map[string]int64{"read": c.ReadSkip, "process": c.ProcessSkip, "write": c.WriteSkip} {
		require.EqualValues(t, want, s.sum("surfin_items_skipped_total", append(of, fmt.Sprintf("phase=%q", phase))...), phase)
	}
}

const loadJob = `
job: load
flow:
- step: create
  tasklet: {sql: "create table ids (id bigint primary key)"}
- step: load
  chunk:
    size: 2
    reader: {csv: {path: in.csv, item: {id: int}}}
    processor: {filter: item.id != 3}
    writer: {table: ids}
    skip: {limit: 10, errors: [parse, constraint]}
`

func exporterOf(t *testing.T, c prometheus.ExporterConfig) *prometheus.Exporter {
	t.Helper()
	e, err := prometheus.NewExporter(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close(context.Background())) })
	return e
}

func TestAScrapeOfARunningJobAgreesWithTheRepository(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		exporter := exporterOf(t, prometheus.ExporterConfig{Listen: "127.0.0.1:0"})
		faults := batchtest.Fault{Step: "load", Phase: core.PhaseWrite, Calls: []int{3}, Do: func() {
			s := scrape(t, exporter.Address())
			require.EqualValues(t, 1, s[`surfin_jobs_running{job_name="load"}`])
			require.EqualValues(t, 1, s.sum("surfin_steps_running"), "%v", s)
			require.InDelta(t, time.Now().Unix(), s[`surfin_job_running_since_timestamp_seconds{job_name="load"}`], 60)
			require.EqualValues(t, 4, s.sum("surfin_items_read_total"), "two chunks are committed")
			require.Zero(t, s.sum("surfin_job_executions_total"))
		}}
		e := batchtest.New(t, batchtest.On(url), batchtest.With(batch.Observe(exporter)), batchtest.WithFaults(faults))
		require.Empty(t, exporter.Address(), "nothing listens before the first job")
		e.File("in.csv", "id\n1\n2\nx\n3\n4\n4\n5\n")
		r := e.Job(e.File("job.yaml", loadJob)).Completed()

		s := scrape(t, exporter.Address())
		load := r.Step("load").Counters
		require.EqualValues(t, 1, load.ReadSkip)
		require.EqualValues(t, 1, load.WriteSkip)
		require.EqualValues(t, 1, load.Filter)
		require.NotZero(t, load.Rollback)
		s.agrees(t, "load", "load", load)
		s.agrees(t, "load", "create", r.Step("create").Counters)
		require.EqualValues(t, 1, s[`surfin_job_executions_total{exit_code="COMPLETED",job_name="load",status="COMPLETED"}`])
		require.EqualValues(t, 2, s.sum("surfin_step_executions_total", `status="COMPLETED"`))
		require.EqualValues(t, 1, s[`surfin_job_duration_seconds_count{job_name="load",status="COMPLETED"}`])
		require.EqualValues(t, 2, s.sum("surfin_step_duration_seconds_count"))
		require.NotZero(t, s.sum("surfin_chunk_duration_seconds_count"))
		require.Zero(t, s.sum("surfin_jobs_running"))
		require.Zero(t, s.sum("surfin_steps_running"))
		require.NotContains(t, s, `surfin_job_running_since_timestamp_seconds{job_name="load"}`)
		require.InDelta(t, time.Now().Unix(), s[`surfin_job_last_completed_timestamp_seconds{job_name="load"}`], 60)
		require.NotZero(t, s.sum("surfin_transitions_total", `result="applied"`))
		require.Zero(t, s.sum("surfin_transitions_total", `result="rejected"`))
	})
}

func TestCountsAreExactOverAFailureAndItsRestart(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		exporter := exporterOf(t, prometheus.ExporterConfig{Listen: "127.0.0.1:0"})
		e := batchtest.New(t, batchtest.On(url), batchtest.With(batch.Observe(exporter)),
			batchtest.WithFaults(batchtest.Fault{Step: "load", Phase: core.PhaseWrite, Calls: []int{3}, Err: errors.New("disk full")}))
		e.File("in.csv", "id\n1\n2\n3\n4\n5\n6\n7\n")
		job := e.File("job.yaml", `
job: load
flow:
- step: create
  tasklet: {sql: "create table ids (id bigint primary key)"}
- step: load
  chunk:
    size: 2
    reader: {csv: {path: in.csv, item: {id: int}}}
    processor: {filter: item.id != 3}
    writer: {table: ids}
`)
		first := e.Job(job).Failed("disk full")
		s := scrape(t, exporter.Address())
		s.agrees(t, "load", "load", first.Step("load").Counters)
		require.EqualValues(t, 1, s.sum("surfin_job_executions_total", `status="FAILED"`, `exit_code="FAILED"`))
		require.NotContains(t, s, `surfin_job_last_completed_timestamp_seconds{job_name="load"}`)

		second := e.Job(job).Completed()
		s = scrape(t, exporter.Address())
		s.agrees(t, "load", "load", first.Step("load").Counters.Add(second.Step("load").Counters))
		require.EqualValues(t, 6, s.sum("surfin_items_written_total"), "every item once")
		require.EqualValues(t, 1, s[`surfin_job_starts_total{job_name="load",restarted="true"}`])
		require.EqualValues(t, 2, s.sum("surfin_job_executions_total"))
		require.EqualValues(t, 3, s.sum("surfin_step_executions_total"), "the restart passes the step that completed")
	})
}

func TestRefusedAndRepeatedTransitionsAreCounted(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		exporter := exporterOf(t, prometheus.ExporterConfig{Listen: "127.0.0.1:0"})
		e := batchtest.New(t, batchtest.On(url), batchtest.With(batch.Observe(exporter)))
		r := e.Job(e.File("job.yaml", "job: one\nflow:\n- step: a\n  tasklet: {sql: select 1}\n")).Completed()
		ref := ports.JobRef{ID: r.Execution.ID, Owner: r.Execution.Owner, Epoch: r.Execution.Epoch}
		_, err := e.Repository().ChangeJob(t.Context(), ref, ports.JobChange{To: core.StatusCompleted})
		require.NoError(t, err)
		ref.Epoch++
		_, err = e.Repository().ChangeJob(t.Context(), ref, ports.JobChange{To: core.StatusFailed})
		require.ErrorIs(t, err, core.ErrLostOwner)
		s := scrape(t, exporter.Address())
		require.EqualValues(t, 1, s.sum("surfin_transitions_total", `result="duplicate"`, `machine="job execution"`))
		require.EqualValues(t, 1, s.sum("surfin_transitions_total", `result="rejected"`, `machine="job execution"`))
	})
}

func TestALostRaceIsNoDuplicate(t *testing.T) {
	t.Parallel()
	m := prometheus.New()
	for _, answer := range []core.Answer{core.Applied, core.Duplicate, core.Rejected} {
		tell(m, core.Transitioned{Machine: "task", Trigger: "claim", Answer: answer, Race: true})
	}
	s := gather(t, m)
	require.EqualValues(t, 1, s.sum("surfin_transitions_total", `result="applied"`))
	require.EqualValues(t, 2, s.sum("surfin_transitions_total", `result="raced"`))
	require.EqualValues(t, 3, s.sum("surfin_transitions_total"))
}

func TestPartitionsAreOneSeriesAndCountedOnce(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"partition", ""} {
		m := prometheus.New()
		job := core.JobExecution{ID: 1, JobName: "j"}
		step := func(id int64, name string, c core.Counters) core.StepExecution {
			return core.StepExecution{ID: core.StepExecutionID(id), JobExecutionID: 1, JobName: "j", Name: name, Status: core.StatusCompleted, ExitCode: "COMPLETED", Counters: c}
		}
		all := core.Counters{Read: 30, Write: 30, Commit: 3}
		tell(m, core.JobStarted{Execution: job},
			core.StepStarted{Step: step(1, "load", core.Counters{}), Kind: kind},
			core.StepStarted{Step: step(2, "load:a", core.Counters{}), Kind: "chunk"},
			core.StepStarted{Step: step(3, "load:b", core.Counters{}), Kind: "chunk"},
			core.ChunkCommitted{StepID: 2, Counters: core.Counters{Read: 10, Write: 10, Commit: 1}},
			core.StepEnded{Step: step(2, "load:a", core.Counters{Read: 10, Write: 10, Commit: 1}), Kind: "chunk"},
			core.StepEnded{Step: step(3, "load:b", core.Counters{Read: 20, Write: 20, Commit: 2}), Kind: "chunk"},
			core.StepEnded{Step: step(1, "load", all), Kind: kind},
			core.JobEnded{Execution: job})
		s := gather(t, m)
		s.agrees(t, "j", "load", all)
		require.EqualValues(t, 2, s.sum("surfin_step_executions_total", `kind="chunk"`))
		require.EqualValues(t, 1, s.sum("surfin_step_executions_total", fmt.Sprintf("kind=%q", kind)))
		for key := range s {
			require.NotContains(t, key, "load:", "partitions must not multiply the series")
		}
	}
}

func TestEventsOutsideOfJobsAreCounted(t *testing.T) {
	t.Parallel()
	m := prometheus.New()
	tell(m, core.JobStarted{Execution: core.JobExecution{ID: 7, JobName: "j"}},
		core.StepStarted{Step: core.StepExecution{ID: 9, JobExecutionID: 7, JobName: "j", Name: "s"}, Kind: "chunk"},
		core.GateChecked{Execution: 7, JobName: "j", Step: "s", Gate: "read > 0", Held: false},
		core.StopAsked{Execution: 7},
		core.HeartbeatFailed{Execution: 7, Err: errors.New("gone")},
		core.OwnerLost{Execution: 7},
		core.StepEnded{Step: core.StepExecution{ID: 9}}) // too late to count
	s := gather(t, m)
	require.EqualValues(t, 1, s[`surfin_gates_total{held="false",job_name="j",step="s"}`])
	require.EqualValues(t, 1, s[`surfin_stops_asked_total{job_name="j"}`])
	require.EqualValues(t, 1, s[`surfin_heartbeat_failures_total{job_name="j"}`])
	require.EqualValues(t, 1, s[`surfin_owners_lost_total{job_name="j"}`])
	require.Zero(t, s.sum("surfin_jobs_running"))
	require.Zero(t, s.sum("surfin_steps_running"))
	require.Zero(t, s.sum("surfin_step_executions_total"))
}

func TestFreeTextsDoNotMakeSeriesWithoutEnd(t *testing.T) {
	t.Parallel()
	m := prometheus.New()
	for i := range 500 {
		j := core.JobExecution{ID: core.JobExecutionID(i), JobName: "j", Status: core.StatusCompleted, ExitCode: fmt.Sprint("code ", i)}
		tell(m, core.JobStarted{Execution: j}, core.JobEnded{Execution: j})
	}
	count := 0
	for key := range gather(t, m) {
		if strings.HasPrefix(key, "surfin_job_executions_total{") {
			count++
		}
	}
	require.Equal(t, 101, count)
	require.EqualValues(t, 404, gather(t, m).sum("surfin_job_executions_total", `exit_code="other"`))
}

func TestItemsAreTheSumOfWhatStepsReported(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m, n := prometheus.New(), rapid.IntRange(1, 4).Draw(t, "steps")
		last := map[core.StepExecutionID]core.Counters{}
		tell(m, core.JobStarted{Execution: core.JobExecution{ID: 1, JobName: "j"}})
		for i := range n {
			s := core.StepExecution{ID: core.StepExecutionID(i), JobExecutionID: 1, JobName: "j", Name: "s"}
			last[s.ID] = s.Counters
			tell(m, core.StepStarted{Step: s, Kind: "chunk"})
		}
		for range rapid.IntRange(0, 30).Draw(t, "events") {
			id := core.StepExecutionID(rapid.IntRange(0, n-1).Draw(t, "step"))
			add := core.Counters{Read: int64(rapid.IntRange(0, 9).Draw(t, "read")), WriteSkip: int64(rapid.IntRange(0, 2).Draw(t, "skips")), Commit: 1}
			last[id] = last[id].Add(add)
			if rapid.IntRange(0, 9).Draw(t, "end") == 0 {
				tell(m, core.StepEnded{Step: core.StepExecution{ID: id, JobExecutionID: 1, Counters: last[id]}})
				tell(m, core.StepStarted{Step: core.StepExecution{ID: id + 100, JobExecutionID: 1, JobName: "j", Name: "s"}, Kind: "chunk"})
				last[id+100] = core.Counters{}
				tell(m, core.StepStarted{Step: core.StepExecution{ID: id, JobExecutionID: 1, JobName: "j", Name: "s", Counters: last[id]}, Kind: "chunk"})
				continue
			}
			tell(m, core.ChunkCommitted{StepID: id, Counters: last[id]})
		}
		var want core.Counters
		for _, c := range last {
			want = want.Add(c)
		}
		families, err := gatherAll(m)
		if err != nil {
			t.Fatal(err)
		}
		s := flatten(families)
		if s.sum("surfin_items_read_total") != float64(want.Read) || s.sum("surfin_items_skipped_total") != float64(want.WriteSkip) || s.sum("surfin_commits_total") != float64(want.Commit) {
			t.Fatalf("metrics %v, want %+v", s, want)
		}
	})
}

func tell(o core.Observer, events ...core.Event) {
	for _, e := range events {
		o.Observe(context.Background(), e)
	}
}

func gather(t *testing.T, m *prometheus.Metrics) series {
	t.Helper()
	all, err := gatherAll(m)
	require.NoError(t, err)
	return flatten(all)
}

func gatherAll(m client.Collector) (map[string]*dto.MetricFamily, error) {
	r := client.NewPedanticRegistry()
	if err := r.Register(m); err != nil {
		return nil, err
	}
	list, err := r.Gather()
	all := map[string]*dto.MetricFamily{}
	for _, f := range list {
		all[f.GetName()] = f
	}
	return all, err
}

func TestTheCatalogIsWhatIsExported(t *testing.T) {
	t.Parallel()
	m := everything()
	all, err := gatherAll(m)
	require.NoError(t, err)
	for _, e := range prometheus.Catalog() {
		f := all[e.Name]
		require.NotNil(t, f, e.Name)
		require.Equal(t, string(e.Type), strings.ToLower(f.GetType().String()), e.Name)
		require.Equal(t, e.Help, f.GetHelp())
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		require.ElementsMatch(t, e.Labels, labels, e.Name)
		delete(all, e.Name)
	}
	require.Empty(t, slices.Collect(maps.Keys(all)))
}

func everything() *prometheus.Metrics {
	m := prometheus.New()
	m.ReadFigures(func(context.Context) (core.Figures, error) {
		one, now := map[string]int64{"x": 1}, time.Now()
		return core.Figures{
			At: now, Completed: map[string]time.Time{"j": now}, Open: []core.OpenFigure{{JobName: "j", Status: core.StatusParked, Count: 1, Since: now}},
			Tasks: one, Parts: one, DeadEvents: one, Workers: 1, Schedules: []core.ScheduleFigure{{JobName: "j", Next: now}},
		}, nil
	})
	job := core.JobExecution{ID: 1, JobName: "j", Status: core.StatusCompleted, ExitCode: "COMPLETED"}
	step := core.StepExecution{ID: 1, JobExecutionID: 1, JobName: "j", Name: "s", Status: core.StatusCompleted, ExitCode: "COMPLETED"}
	tell(m, core.JobStarted{Execution: job}, core.StepStarted{Step: step, Kind: "chunk"})
	step.Counters = core.Counters{Read: 6, Filter: 1, Write: 2, ReadSkip: 1, ProcessSkip: 1, WriteSkip: 1, Commit: 1, Rollback: 1}
	tell(m, core.ChunkCommitted{StepID: 1, Counters: step.Counters, Took: time.Second},
		core.GateChecked{Execution: 1, JobName: "j", Step: "s", Held: true}, core.StopAsked{Execution: 1},
		core.HeartbeatFailed{Execution: 1, Err: errors.New("x")},
		core.Transitioned{Machine: "job execution", Trigger: "change job", Answer: core.Applied}, core.EventDead{Machine: "order", Topic: "payments"}, core.DeciderMissing{Decider: "d"},
		core.StepEnded{Step: step, Kind: "chunk"}, core.JobEnded{Execution: job},
		core.JobStarted{Execution: core.JobExecution{ID: 2, JobName: "j"}}, core.OwnerLost{Execution: 2},
		core.JobStarted{Execution: core.JobExecution{ID: 3, JobName: "j"}})
	return m
}
