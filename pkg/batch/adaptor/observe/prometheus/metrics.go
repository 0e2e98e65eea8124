// Package prometheus counts what happens while jobs run, for Prometheus.
//
// [Metrics] is a core.Observer and a Collector: an application that has a registry
// registers it there. An [Exporter] offers the metrics of a process that has none:
// by HTTP while it lives, and in a text file that outlives it. [Catalog] lists the
// metrics; docs/howto/observability.md shows the same table.
//
// The package imports core and the client library of Prometheus; module.go adds it
// to an application.
package prometheus

import (
	"fmt"
	"strings"

	client "github.com/prometheus/client_golang/prometheus"
)

// Type is the type of a metric.
type Type string

// The types of metrics.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// Entry describes a metric.
type Entry struct {
	Name   string
	Type   Type
	Labels []string
	Help   string
}

// The names of the metrics.
const (
	transitions    = "surfin_transitions_total"
	jobStarts      = "surfin_job_starts_total"
	jobExecutions  = "surfin_job_executions_total"
	jobDuration    = "surfin_job_duration_seconds"
	jobsRunning    = "surfin_jobs_running"
	jobSince       = "surfin_job_running_since_timestamp_seconds"
	jobCompleted   = "surfin_job_last_completed_timestamp_seconds"
	stepExecutions = "surfin_step_executions_total"
	stepDuration   = "surfin_step_duration_seconds"
	stepsRunning   = "surfin_steps_running"
	itemsRead      = "surfin_items_read_total"
	itemsWritten   = "surfin_items_written_total"
	itemsFiltered  = "surfin_items_filtered_total"
	itemsSkipped   = "surfin_items_skipped_total"
	commits        = "surfin_commits_total"
	rollbacks      = "surfin_rollbacks_total"
	chunkDuration  = "surfin_chunk_duration_seconds"
	gates          = "surfin_gates_total"
	stopsAsked     = "surfin_stops_asked_total"
	ownersLost     = "surfin_owners_lost_total"
	heartbeats     = "surfin_heartbeat_failures_total"
)

// Catalog lists all metrics. The label job_name is not called job, because
// Prometheus gives that label to every target. The label step is the step's name
// without the partition, and kind is "chunk", "tasklet", "partition", "job" or
// "flow".
func Catalog() []Entry {
	job, step, kind := []string{"job_name"}, []string{"job_name", "step"}, []string{"job_name", "step", "kind"}
	return []Entry{
		{transitions, Counter, []string{"machine", "trigger", "result"}, "Guarded changes of status, by their answer: applied, duplicate or rejected."},
		{jobStarts, Counter, []string{"job_name", "restarted"}, "Job executions that began; restarted is true for an instance's second and following."},
		{jobExecutions, Counter, []string{"job_name", "status", "exit_code"}, "Job executions that ended."},
		{jobDuration, Histogram, []string{"job_name", "status"}, "Time from start to end of a job execution."},
		{jobsRunning, Gauge, job, "Job executions that run in this process."},
		{jobSince, Gauge, job, "When the oldest execution of the job that runs in this process began; absent if none does."},
		{jobCompleted, Gauge, job, "When an execution of the job was COMPLETED last."},
		{stepExecutions, Counter, []string{"job_name", "step", "kind", "status", "exit_code"}, "Step executions that ended, each partition one of them."},
		{stepDuration, Histogram, kind, "Time from start to end of a step execution."},
		{stepsRunning, Gauge, kind, "Step executions that run in this process."},
		{itemsRead, Counter, step, "Items read, as the repository counts them."},
		{itemsWritten, Counter, step, "Items written, as the repository counts them."},
		{itemsFiltered, Counter, step, "Items filtered, as the repository counts them."},
		{itemsSkipped, Counter, []string{"job_name", "step", "phase"}, "Items skipped, as the repository counts them; phase is read, process or write."},
		{commits, Counter, step, "Chunks committed."},
		{rollbacks, Counter, step, "Chunks, or parts of them, rolled back."},
		{chunkDuration, Histogram, step, "Time that a committed chunk took, from its first read on."},
		{gates, Counter, []string{"job_name", "step", "held"}, "Gates checked (expect); step is empty for that of a job."},
		{stopsAsked, Counter, job, "Requests to stop that reached this process."},
		{ownersLost, Counter, job, "Executions of this process that another one took over."},
		{heartbeats, Counter, job, "Heartbeats that did not reach the database."},
	}
}

// workBuckets are for jobs and steps: tenths of a second to a day.
func workBuckets() []float64 {
	return []float64{0.1, 0.5, 1, 5, 15, 60, 300, 900, 1800, 3600, 7200, 14400, 28800, 86400}
}

// chunkBuckets are for chunks: milliseconds to minutes.
func chunkBuckets() []float64 {
	return []float64{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}
}

// instruments are the metrics themselves, by name.
type instruments struct {
	counters   map[string]*client.CounterVec
	gauges     map[string]*client.GaugeVec
	histograms map[string]*client.HistogramVec
	since      *client.Desc
	all        []client.Collector
}

func newInstruments() instruments {
	i := instruments{
		counters: map[string]*client.CounterVec{}, gauges: map[string]*client.GaugeVec{},
		histograms: map[string]*client.HistogramVec{},
	}
	for _, e := range Catalog() {
		switch {
		case e.Name == jobSince: // made when it is asked for
			i.since = client.NewDesc(e.Name, e.Help, e.Labels, nil)
		case e.Type == Counter:
			i.counters[e.Name] = client.NewCounterVec(client.CounterOpts{Name: e.Name, Help: e.Help}, e.Labels)
			i.all = append(i.all, i.counters[e.Name])
		case e.Type == Gauge:
			i.gauges[e.Name] = client.NewGaugeVec(client.GaugeOpts{Name: e.Name, Help: e.Help}, e.Labels)
			i.all = append(i.all, i.gauges[e.Name])
		case e.Type == Histogram:
			buckets := workBuckets()
			if e.Name == chunkDuration {
				buckets = chunkBuckets()
			}
			i.histograms[e.Name] = client.NewHistogramVec(client.HistogramOpts{Name: e.Name, Help: e.Help, Buckets: buckets}, e.Labels)
			i.all = append(i.all, i.histograms[e.Name])
		}
	}
	return i
}

func (i instruments) count(name string, n int64, labels ...string) {
	if n > 0 {
		i.counters[name].WithLabelValues(labels...).Add(float64(n))
	}
}

// Table is the catalog as a table of Markdown.
func Table() string {
	var b strings.Builder
	b.WriteString("| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, e := range Catalog() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", e.Name, e.Type, strings.Join(e.Labels, ", "), e.Help)
	}
	return b.String()
}
