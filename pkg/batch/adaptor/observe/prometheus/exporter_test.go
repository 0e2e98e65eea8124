package prometheus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/observe/prometheus"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

func TestTheTextFileAddsUpAttemptsOfSeveralProcesses(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		dir := t.TempDir()
		path, job := filepath.Join(dir, "surfin.prom"), filepath.Join(dir, "job.yaml")
		require.NoError(t, os.WriteFile(filepath.Join(dir, "in.csv"), []byte("id\n1\n2\nx\n3\n4\n4\n5\n"), 0o600))
		require.NoError(t, os.WriteFile(job, []byte(loadJob), 0o600))
		var sum core.Counters
		attempt := func(faults ...batchtest.Fault) *batchtest.Run {
			exporter, err := prometheus.NewExporter(prometheus.ExporterConfig{Textfile: path})
			require.NoError(t, err)
			e := batchtest.New(t, batchtest.On(url), batchtest.With(batch.Observe(exporter)), batchtest.WithFaults(faults...))
			r := e.Job(job)
			require.NoError(t, exporter.Close(context.Background()))
			require.NoError(t, exporter.Close(context.Background()), "a second Close does nothing")
			sum = sum.Add(r.Step("load").Counters)
			return r
		}
		attempt(batchtest.Fault{Step: "load", Phase: core.PhaseWrite, Calls: []int{2}, Err: errors.New("disk full")}).Failed("disk full")
		readText(t, path).agrees(t, "load", "load", sum)
		attempt().Completed()
		s := readText(t, path)
		s.agrees(t, "load", "load", sum)
		require.EqualValues(t, 2, s.sum("surfin_job_executions_total"))
		require.EqualValues(t, 2, s.sum("surfin_job_duration_seconds_count"))
		require.EqualValues(t, 1, s.sum("surfin_job_starts_total", `restarted="true"`))
		require.InDelta(t, time.Now().Unix(), s[`surfin_job_last_completed_timestamp_seconds{job_name="load"}`], 60)
		for key := range s {
			require.NotContains(t, key, "running", "what runs is not known when nobody runs")
		}
	})
}

func TestTheTextFileIsWrittenWhileAJobRuns(t *testing.T) {
	t.Parallel()
	for every, events := range map[time.Duration][]core.Event{
		time.Hour:        {core.JobStarted{Execution: core.JobExecution{ID: 1, JobName: "j"}}},
		time.Millisecond: {core.JobStarted{Execution: core.JobExecution{ID: 1, JobName: "j"}}, core.StopAsked{Execution: 1}},
	} {
		path := filepath.Join(t.TempDir(), "surfin.prom")
		tell(exporterOf(t, prometheus.ExporterConfig{Textfile: path, Every: every}), events...)
		require.Eventually(t, func() bool {
			data, err := os.ReadFile(path)
			return err == nil && strings.Contains(string(data), "surfin_job_starts_total{") &&
				strings.Contains(string(data), "surfin_stops_asked_total{job_name=\"j\"} 1") == (len(events) == 2)
		}, 30*time.Second, time.Millisecond)
	}
}

const writerVariable = "SURFIN_TEST_TEXTFILE"

func TestWriteTextfile(t *testing.T) {
	path := os.Getenv(writerVariable)
	if path == "" {
		t.Skip("it is a process of another test")
	}
	m, registry := prometheus.New(), client.NewRegistry()
	require.NoError(t, registry.Register(m))
	file := prometheus.NewTextfile(path, registry)
	for i := range 50 {
		j := core.JobExecution{ID: core.JobExecutionID(i), JobName: "j", Status: core.StatusCompleted}
		tell(m, core.JobStarted{Execution: j}, core.JobEnded{Execution: j})
		require.NoError(t, file.Write())
	}
}

func TestProcessesAtOnceLoseNoCounts(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "surfin.prom")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestWriteTextfile$")
			cmd.Env = append(os.Environ(), writerVariable+"="+path)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	all.Wait()
	s := readText(t, path)
	require.EqualValues(t, 200, s[`surfin_job_executions_total{exit_code="",job_name="j",status="COMPLETED"}`])
	require.EqualValues(t, 200, s[`surfin_job_duration_seconds_count{job_name="j",status="COMPLETED"}`])
}

func TestTheTextFileIsTheSumOfAllWriters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	round := 0
	rapid.Check(t, func(t *rapid.T) {
		round++
		path := filepath.Join(dir, strconv.Itoa(round)+".prom")
		type writer struct {
			counter   client.Counter
			histogram client.Histogram
			file      *prometheus.Textfile
		}
		begin := func() *writer {
			w := &writer{client.NewCounter(client.CounterOpts{Name: "surfin_a_total", Help: "a"}),
				client.NewHistogram(client.HistogramOpts{Name: "surfin_h", Help: "h", Buckets: []float64{1, 10}}), nil}
			r := client.NewRegistry()
			r.MustRegister(w.counter, w.histogram)
			w.file = prometheus.NewTextfile(path, r)
			return w
		}
		writers := []*writer{begin(), begin()}
		var count, observed, sum float64
		write := func(w *writer) {
			if err := w.file.Write(); err != nil {
				t.Fatal(err)
			}
		}
		for range rapid.IntRange(1, 20).Draw(t, "acts") {
			i := rapid.IntRange(0, 1).Draw(t, "writer")
			switch rapid.IntRange(0, 3).Draw(t, "act") {
			case 0:
				n := float64(rapid.IntRange(0, 100).Draw(t, "n"))
				writers[i].counter.Add(n)
				count += n
			case 1:
				n := float64(rapid.IntRange(0, 20).Draw(t, "n"))
				writers[i].histogram.Observe(n)
				observed, sum = observed+1, sum+n
			case 2:
				write(writers[i])
			case 3:
				write(writers[i])
				writers[i] = begin()
			}
		}
		write(writers[0])
		write(writers[1])
		write(writers[1]) // nothing new
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			fmt.Sprintf("surfin_a_total %v\n", count), fmt.Sprintf("surfin_h_count %v\n", observed),
			fmt.Sprintf("surfin_h_sum %v\n", sum), fmt.Sprintf("surfin_h_bucket{le=\"+Inf\"} %v\n", observed),
		} {
			if !strings.Contains(string(data), want) {
				t.Fatalf("%s should have %s", data, want)
			}
		}
	})
}

func TestAFileOfSomebodyElseIsLeftAlone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"node_load1 3\n", "dear diary\n"} {
		path := filepath.Join(t.TempDir(), "other.prom")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		var log bytes.Buffer
		e, err := prometheus.NewExporter(prometheus.ExporterConfig{Textfile: path, Log: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		tell(e, core.JobStarted{Execution: core.JobExecution{ID: 1, JobName: "j"}})
		require.NoError(t, e.Close(t.Context()), "the job is over, and what it did stands")
		require.Contains(t, log.String(), "left unchanged")
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, text, string(data))
	}
}

func TestABucketOfAnotherVersionBeginsAnew(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "surfin.prom")
	require.NoError(t, os.WriteFile(path, []byte("# TYPE surfin_h histogram\nsurfin_h_bucket{le=\"5\"} 2\nsurfin_h_bucket{le=\"+Inf\"} 3\nsurfin_h_sum 9\nsurfin_h_count 3\n# TYPE surfin_old_total counter\nsurfin_old_total 4\n"), 0o600))
	h := client.NewHistogram(client.HistogramOpts{Name: "surfin_h", Help: "h", Buckets: []float64{1, 10}})
	h.Observe(math.Pi)
	r := client.NewRegistry()
	r.MustRegister(h)
	require.NoError(t, prometheus.NewTextfile(path, r).Write())
	s := readText(t, path)
	require.EqualValues(t, 1, s["surfin_h_count{}"])
	require.EqualValues(t, 4, s["surfin_old_total{}"], "what another version counted stays")
}

func TestAJobRunsThoughItsPortIsTaken(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	var log bytes.Buffer
	exporter := exporterOf(t, prometheus.ExporterConfig{Listen: taken.Addr().String(), Log: slog.New(slog.NewTextHandler(&log, nil))})
	e := batchtest.New(t, batchtest.With(batch.Observe(exporter)))
	e.Job(e.File("job.yaml", "job: one\nflow:\n- step: a\n  tasklet: {sql: select 1}\n")).Completed()
	require.Contains(t, log.String(), "address already in use")
	require.Empty(t, exporter.Address())
}

func TestTheModuleServesWhatTheSettingsSay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := settings.Load(settings.Source{Dir: dir, Environ: []string{
		"SURFIN_METRICS_LISTEN=127.0.0.1:0", "SURFIN_METRICS_TEXTFILE=surfin.prom", "SURFIN_METRICS_EVERY=1h"}})
	require.NoError(t, err)
	job := filepath.Join(dir, "job.yaml")
	require.NoError(t, os.WriteFile(job, []byte("job: one\nflow:\n- step: a\n  tasklet: {sql: select 1}\n"), 0o600))
	app, err := batch.New(t.Context(), s, prometheus.Module())
	require.NoError(t, err)
	_, err = app.Run(t.Context(), batch.RunRequest{File: job})
	require.NoError(t, err)
	require.NoError(t, app.Close(t.Context()))
	require.EqualValues(t, 1, readText(t, filepath.Join(dir, "surfin.prom")).sum("surfin_job_executions_total"))
}

func TestWithoutSettingsTheModuleDoesNothing(t *testing.T) {
	var list []core.Observer
	type found struct {
		fx.In
		List []core.Observer `group:"surfin.observers"`
	}
	before := goleak.IgnoreCurrent()
	app := fx.New(fx.NopLogger, fx.Supply(settings.Settings{}), prometheus.Module(), fx.Invoke(func(f found) { list = f.List }))
	require.NoError(t, app.Start(t.Context()))
	require.Empty(t, list)
	goleak.VerifyNone(t, before)
	require.NoError(t, app.Stop(t.Context()))
}

func TestNothingIsLeftBehindByAnExporter(t *testing.T) {
	before := goleak.IgnoreCurrent()
	dir := t.TempDir()
	e, err := prometheus.NewExporter(prometheus.ExporterConfig{Listen: "127.0.0.1:0", Textfile: filepath.Join(dir, "surfin.prom")})
	require.NoError(t, err)
	goleak.VerifyNone(t, before)
	tell(e, core.JobStarted{Execution: core.JobExecution{ID: 1, JobName: "j"}})
	scrape(t, e.Address())
	require.NoError(t, e.Close(t.Context()))
	tell(e, core.JobStarted{Execution: core.JobExecution{ID: 2, JobName: "j"}})
	http.DefaultClient.CloseIdleConnections()
	goleak.VerifyNone(t, before)
}

func TestAWorkerOffersMetricsFromItsStartOn(t *testing.T) {
	t.Parallel()
	e := exporterOf(t, prometheus.ExporterConfig{Listen: "127.0.0.1:0"})
	e.Observe(t.Context(), core.Transitioned{Machine: "task", Move: "cancel", Answer: core.Applied})
	require.Empty(t, e.Address(), "a command that cancels does not work")
	e.Observe(t.Context(), core.WorkerStarted{Worker: "w"})
	require.EqualValues(t, 1, scrape(t, e.Address()).sum("surfin_transitions_total", `result="applied"`))
}
