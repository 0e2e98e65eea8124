// Package prometheus counts the events of running jobs for Prometheus.
//
// [Metrics] is a core.Observer and a Collector. An [Exporter] offers the metrics of a process without a
// registry: by HTTP while it lives, and in a text file that outlives it.
//
// It imports core and the client library of Prometheus; module.go imports fx and settings.
package prometheus

import (
	"strings"

	client "github.com/prometheus/client_golang/prometheus"
)

type metricType string

const (
	counter   metricType = "counter"
	gauge     metricType = "gauge"
	histogram metricType = "histogram"
)

type entry struct {
	Name   string
	Type   metricType
	Labels []string
	Help   string
}

const (
	transitions     = "surfin_transitions_total"
	jobStarts       = "surfin_job_starts_total"
	jobExecutions   = "surfin_job_executions_total"
	jobDuration     = "surfin_job_duration_seconds"
	jobsRunning     = "surfin_jobs_running"
	jobSince        = "surfin_job_running_since_timestamp_seconds"
	jobCompleted    = "surfin_job_last_completed_timestamp_seconds"
	stepExecutions  = "surfin_step_executions_total"
	stepDuration    = "surfin_step_duration_seconds"
	stepsRunning    = "surfin_steps_running"
	itemsRead       = "surfin_items_read_total"
	itemsWritten    = "surfin_items_written_total"
	itemsFiltered   = "surfin_items_filtered_total"
	itemsSkipped    = "surfin_items_skipped_total"
	commits         = "surfin_commits_total"
	rollbacks       = "surfin_rollbacks_total"
	chunkDuration   = "surfin_chunk_duration_seconds"
	gates           = "surfin_gates_total"
	stopsAsked      = "surfin_stops_asked_total"
	ownersLost      = "surfin_owners_lost_total"
	heartbeats      = "surfin_heartbeat_failures_total"
	eventsDead      = "surfin_events_dead_total"
	decidersMissing = "surfin_deciders_missing_total"

	historyUp        = "surfin_history_up"
	historyCompleted = "surfin_history_last_completed_timestamp_seconds"
	historyOpen      = "surfin_history_executions"
	historyOldest    = "surfin_history_oldest_execution_timestamp_seconds"
	historyNext      = "surfin_history_next_due_timestamp_seconds"
	historyLate      = "surfin_history_late_seconds"
	historyTasks     = "surfin_history_tasks_waiting"
	historyParts     = "surfin_history_parts_waiting"
	historyDead      = "surfin_history_events_dead"
	historyWorkers   = "surfin_history_workers"
)

// The label job_name is not called job, because Prometheus gives that label to every target. The label step
// is the step's name without the partition.
func catalog() []entry {
	job, step, kind := []string{"job_name"}, []string{"job_name", "step"}, []string{"job_name", "step", "kind"}
	return []entry{
		{transitions, counter, []string{"machine", "trigger", "result"}, "Guarded changes of status, by result: applied, duplicate or rejected; raced if another process won a move that several try."},
		{jobStarts, counter, []string{"job_name", "restarted"}, "Job executions that started; restarted is true for the second and later ones of an instance."},
		{jobExecutions, counter, []string{"job_name", "status", "exit_code"}, "Job executions that ended."},
		{jobDuration, histogram, []string{"job_name", "status"}, "Time from start to end of a job execution."},
		{jobsRunning, gauge, job, "Job executions running in this process."},
		{jobSince, gauge, job, "Start of the oldest execution of the job that is running in this process; absent if there is none."},
		{jobCompleted, gauge, job, "Last time an execution of the job was COMPLETED."},
		{stepExecutions, counter, []string{"job_name", "step", "kind", "status", "exit_code"}, "Step executions that ended; each partition counts as one."},
		{stepDuration, histogram, kind, "Time from start to end of a step execution."},
		{stepsRunning, gauge, kind, "Step executions running in this process."},
		{itemsRead, counter, step, "Items read, as the repository counts them."},
		{itemsWritten, counter, step, "Items written, as the repository counts them."},
		{itemsFiltered, counter, step, "Items filtered, as the repository counts them."},
		{itemsSkipped, counter, []string{"job_name", "step", "phase"}, "Items skipped, as the repository counts them; phase is read, process or write."},
		{commits, counter, step, "Chunks committed."},
		{rollbacks, counter, step, "Chunks, or parts of them, rolled back."},
		{chunkDuration, histogram, step, "Duration of a committed chunk, from its first read."},
		{gates, counter, []string{"job_name", "step", "held"}, "Gates checked (expect); step is empty for a job's gate."},
		{stopsAsked, counter, job, "Requests to stop that reached this process."},
		{ownersLost, counter, job, "Executions of this process that another process took over."},
		{heartbeats, counter, job, "Heartbeats that did not reach the database."},
		{eventsDead, counter, []string{"machine", "topic"}, "Events of the inbox that became dead: their last attempt failed."},
		{decidersMissing, counter, []string{"decider"}, "Polls of the leader, one per minute, that found tasks without a live worker for their decider."},
		{historyUp, gauge, nil, "1 if the history could be read; with 0 the other metrics of the history are absent."},
		{historyCompleted, gauge, job, "Last time an execution of the job was COMPLETED, in any process; redrives do not count."},
		{historyOpen, gauge, []string{"job_name", "status"}, "Executions that are not over (STARTING, STARTED, STOPPING, PARKED) or are UNKNOWN."},
		{historyOldest, gauge, []string{"job_name", "status"}, "Launch time of the oldest of these executions."},
		{historyNext, gauge, job, "Next time at which the registered job is due."},
		{historyLate, gauge, job, "How long a scheduled run of the registered job has been due without starting; 0 if none is late."},
		{historyTasks, gauge, []string{"type"}, "Tasks that are ready for a worker and not taken yet."},
		{historyParts, gauge, job, "Partitions that are ready for a worker and not taken yet."},
		{historyDead, gauge, []string{"topic"}, "Events of the inbox that are dead, until they are revived or deleted."},
		{historyWorkers, gauge, nil, "Workers that are alive."},
	}
}

func workBuckets() []float64 {
	return []float64{0.1, 0.5, 1, 5, 15, 60, 300, 900, 1800, 3600, 7200, 14400, 28800, 86400}
}

func chunkBuckets() []float64 {
	return []float64{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}
}

type instruments struct {
	counters   map[string]*client.CounterVec
	gauges     map[string]*client.GaugeVec
	histograms map[string]*client.HistogramVec
	since      *client.Desc
	history    map[string]*client.Desc
	all        []client.Collector
}

func newInstruments() instruments {
	i := instruments{
		counters: map[string]*client.CounterVec{}, gauges: map[string]*client.GaugeVec{},
		histograms: map[string]*client.HistogramVec{}, history: map[string]*client.Desc{},
	}
	for _, e := range catalog() {
		switch {
		case e.Name == jobSince:
			i.since = client.NewDesc(e.Name, e.Help, e.Labels, nil)
		case strings.HasPrefix(e.Name, "surfin_history_"):
			i.history[e.Name] = client.NewDesc(e.Name, e.Help, e.Labels, nil)
		case e.Type == counter:
			i.counters[e.Name] = client.NewCounterVec(client.CounterOpts{Name: e.Name, Help: e.Help}, e.Labels)
			i.all = append(i.all, i.counters[e.Name])
		case e.Type == gauge:
			i.gauges[e.Name] = client.NewGaugeVec(client.GaugeOpts{Name: e.Name, Help: e.Help}, e.Labels)
			i.all = append(i.all, i.gauges[e.Name])
		case e.Type == histogram:
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
