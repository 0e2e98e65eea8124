package prometheus

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	client "github.com/prometheus/client_golang/prometheus"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Metrics is a core.Observer and a Collector of Prometheus, safe for concurrent use.
//
// If it observes an application, it also reads the history (rule OP1): then a Collect may query the
// database, for at most 3 seconds.
type Metrics struct {
	instruments
	history history

	mu        sync.Mutex
	known     map[string]bool
	jobs      map[core.JobExecutionID]*runningJob
	steps     map[core.StepExecutionID]*runningStep
	exitCodes map[string]bool
}

type runningJob struct {
	name  string
	since time.Time
}

type runningStep struct {
	execution       core.JobExecutionID
	job, step, kind string
	since           time.Time
	// its counters are the sum of other steps' counters
	sums bool
	// the part of its counters that has been taken over
	counted core.Counters
}

// New returns empty metrics.
func New() *Metrics {
	m := &Metrics{
		instruments: newInstruments(), known: map[string]bool{},
		jobs: map[core.JobExecutionID]*runningJob{}, steps: map[core.StepExecutionID]*runningStep{},
		exitCodes: map[string]bool{},
	}
	m.history = history{descs: m.instruments.history, known: m.jobKnown}
	m.beginAtZero()
	return m
}

// ReadFigures implements core.FiguresReader.
func (m *Metrics) ReadFigures(read func(context.Context) (core.Figures, error)) {
	m.history.read = read
}

// Describe implements the client's Collector.
func (m *Metrics) Describe(to chan<- *client.Desc) {
	counts{m}.Describe(to)
	for _, d := range m.history.descs {
		to <- d
	}
}

// Collect implements the client's Collector.
func (m *Metrics) Collect(to chan<- client.Metric) {
	m.history.collect(to)
	counts{m}.Collect(to)
}

type counts struct{ *Metrics }

// Describe implements the client's Collector.
func (m counts) Describe(to chan<- *client.Desc) {
	for _, c := range m.all {
		c.Describe(to)
	}
	to <- m.since
}

// Collect implements the client's Collector.
func (m counts) Collect(to chan<- client.Metric) {
	for _, c := range m.all {
		c.Collect(to)
	}
	oldest := map[string]time.Time{}
	m.mu.Lock()
	for _, j := range m.jobs {
		if at, ok := oldest[j.name]; !ok || j.since.Before(at) {
			oldest[j.name] = j.since
		}
	}
	m.mu.Unlock()
	for job, at := range oldest {
		to <- client.MustNewConstMetric(m.since, client.GaugeValue, unix(at), job)
	}
}

// Observe counts the event.
func (m *Metrics) Observe(_ context.Context, e core.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch e := e.(type) {
	case core.JobStarted:
		m.jobStarted(e)
	case core.JobEnded:
		m.jobEnded(e.Execution)
	case core.StepStarted:
		m.stepStarted(e)
	case core.StepEnded:
		m.stepEnded(e)
	case core.ChunkCommitted:
		if s := m.steps[e.StepID]; s != nil {
			m.advance(s, e.Counters)
			m.histograms[chunkDuration].WithLabelValues(s.job, s.step).Observe(e.Took.Seconds())
		}
	case core.GateChecked:
		m.count(gates, 1, e.JobName, stepLabel(e.Step), strconv.FormatBool(e.Held))
	case core.StopAsked:
		m.count(stopsAsked, 1, m.jobName(e.Execution))
	case core.Transitioned:
		m.count(transitions, 1, e.Machine, e.Trigger, resultOf(e))
	case core.EventDead:
		m.count(eventsDead, 1, e.Machine, e.Topic)
	case core.DeciderMissing:
		m.count(decidersMissing, 1, e.Decider)
	case core.OwnerLost:
		m.count(ownersLost, 1, m.jobName(e.Execution))
		m.forget(e.Execution)
	case core.HeartbeatFailed:
		m.count(heartbeats, 1, m.jobName(e.Execution))
	case core.EndNotRecorded:
		if e.Step == "" {
			m.forget(e.Execution)
		}
	case core.StepPassed, core.ChunkRolledBack, core.Retried, core.LogLost, core.Decided, core.ElementSkipped, core.StopFailed, core.CloseFailed, core.ListenerFailed, core.ObserverFailed,
		core.ComponentLate, core.LaunchWaits, core.TasksSubmitted, core.WorkerStarted, core.ServerStarted, core.SeriesNotStored:
	}
}

func (m *Metrics) jobStarted(e core.JobStarted) {
	name := e.Execution.JobName
	m.know(name)
	m.jobs[e.Execution.ID] = &runningJob{name: name, since: time.Now()}
	m.count(jobStarts, 1, name, strconv.FormatBool(e.Restarted))
	m.gauges[jobsRunning].WithLabelValues(name).Inc()
}

func (m *Metrics) jobEnded(e core.JobExecution) {
	j := m.jobs[e.ID]
	if j == nil {
		return
	}
	m.count(jobExecutions, 1, j.name, string(e.Status), m.exitCode(e.ExitCode))
	m.histograms[jobDuration].WithLabelValues(j.name, string(e.Status)).Observe(time.Since(j.since).Seconds())
	if e.Status == core.StatusCompleted {
		m.gauges[jobCompleted].WithLabelValues(j.name).Set(unix(time.Now()))
	}
	m.forget(e.ID)
}

func (m *Metrics) forget(id core.JobExecutionID) {
	for step, s := range m.steps {
		if s.execution == id {
			m.gauges[stepsRunning].WithLabelValues(s.job, s.step, s.kind).Dec()
			delete(m.steps, step)
		}
	}
	if j := m.jobs[id]; j != nil {
		m.gauges[jobsRunning].WithLabelValues(j.name).Dec()
		delete(m.jobs, id)
	}
}

func (m *Metrics) stepStarted(e core.StepStarted) {
	name := stepLabel(e.Step.Name)
	if name != e.Step.Name {
		for _, s := range m.steps { // counts of its partitions are not counted again
			if s.execution == e.Step.JobExecutionID && s.step == name && s.kind != "chunk" && s.kind != "tasklet" {
				s.sums = true
			}
		}
	}
	m.steps[e.Step.ID] = &runningStep{
		execution: e.Step.JobExecutionID, job: e.Step.JobName, step: name, kind: e.Kind, since: time.Now(),
		sums: isSum(e.Kind), counted: e.Step.Counters,
	}
	m.gauges[stepsRunning].WithLabelValues(e.Step.JobName, name, e.Kind).Inc()
}

func isSum(kind string) bool { return kind == "partition" || kind == "job" || kind == "flow" }

func (m *Metrics) stepEnded(e core.StepEnded) {
	s := m.steps[e.Step.ID]
	if s == nil {
		return
	}
	m.advance(s, e.Step.Counters)
	m.count(stepExecutions, 1, s.job, s.step, s.kind, string(e.Step.Status), m.exitCode(e.Step.ExitCode))
	m.histograms[stepDuration].WithLabelValues(s.job, s.step, s.kind).Observe(time.Since(s.since).Seconds())
	m.gauges[stepsRunning].WithLabelValues(s.job, s.step, s.kind).Dec()
	delete(m.steps, e.Step.ID)
}

// The counters of a step belong to one attempt, so a restart counts nothing twice.
func (m *Metrics) advance(s *runningStep, c core.Counters) {
	if s.sums {
		return
	}
	was := s.counted
	s.counted = c
	m.count(itemsRead, c.Read-was.Read, s.job, s.step)
	m.count(itemsWritten, c.Write-was.Write, s.job, s.step)
	m.count(itemsFiltered, c.Filter-was.Filter, s.job, s.step)
	m.count(itemsSkipped, c.ReadSkip-was.ReadSkip, s.job, s.step, string(core.PhaseRead))
	m.count(itemsSkipped, c.ProcessSkip-was.ProcessSkip, s.job, s.step, string(core.PhaseProcess))
	m.count(itemsSkipped, c.WriteSkip-was.WriteSkip, s.job, s.step, string(core.PhaseWrite))
	m.count(commits, c.Commit-was.Commit, s.job, s.step)
	m.count(rollbacks, c.Rollback-was.Rollback, s.job, s.step)
}

// An exit code is a free text.
const maxExitCodes = 100

func (m *Metrics) exitCode(code string) string {
	if m.exitCodes[code] {
		return code
	}
	if len(code) > 64 || len(m.exitCodes) >= maxExitCodes {
		return "other"
	}
	m.exitCodes[code] = true
	return code
}

func (m *Metrics) jobName(id core.JobExecutionID) string {
	if j := m.jobs[id]; j != nil {
		return j.name
	}
	return ""
}

// one series for all partitions
func stepLabel(name string) string {
	name, _, _ = strings.Cut(name, ":")
	return name
}

func unix(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// A race that another process won is expected, so it must not look like a fault to the alerts.
func resultOf(e core.Transitioned) string {
	if e.Race && e.Answer != core.Applied {
		return "raced"
	}
	return string(e.Answer)
}
