package prometheus

import "github.com/surfin-batch/surfin/pkg/batch/core"

// Counters exist before the first event (rule OP2): increase() does not see a counter that appears with its
// first event.
func (m *Metrics) beginAtZero() {
	for _, trigger := range triggers() {
		m.counters[transitions].WithLabelValues("job execution", trigger, string(core.Rejected))
		m.counters[transitions].WithLabelValues("step execution", trigger, string(core.Rejected))
	}
	for _, trigger := range []string{"take over", "recover"} {
		m.counters[transitions].WithLabelValues("job execution", trigger, string(core.Applied))
	}
	m.perJob("") // without a job: the heartbeats of a worker
}

func triggers() []string {
	return []string{
		"launch", "take over", "change job", "request stop", "start step", "begin step", "end step", "abandon", "recover", "park", "resume",
		"assign", "release", "settle",
	}
}

func (m *Metrics) jobKnown(job string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.know(job)
}

func (m *Metrics) know(job string) {
	if m.known[job] {
		return
	}
	m.known[job] = true
	for _, restarted := range []string{"false", "true"} {
		m.counters[jobStarts].WithLabelValues(job, restarted)
	}
	for _, status := range []core.Status{core.StatusCompleted, core.StatusFailed, core.StatusStopped, core.StatusUnknown} {
		m.counters[jobExecutions].WithLabelValues(job, string(status), m.exitCode(string(status)))
	}
	m.perJob(job)
}

func (m *Metrics) perJob(job string) {
	for _, name := range []string{stopsAsked, ownersLost, heartbeats} {
		m.counters[name].WithLabelValues(job)
	}
}
