package prometheus

import (
	"context"
	"log/slog"
	"sync"
	"time"

	client "github.com/prometheus/client_golang/prometheus"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const (
	// Many scrapes query the database no more often than one.
	figuresTime = 15 * time.Second
	// The end of an outage is seen soon.
	failureTime = 2 * time.Second
	// Prometheus waits for 10 seconds.
	readTimeout = 3 * time.Second
)

// history has the metrics of the database (rule OP1).
type history struct {
	read  func(context.Context) (core.Figures, error)
	known func(job string)
	descs map[string]*client.Desc

	mu      sync.Mutex
	asked   time.Time
	figures core.Figures
	failed  error
}

func (h *history) current() (core.Figures, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	use := figuresTime
	if h.failed != nil {
		use = failureTime
	}
	if !h.asked.IsZero() && time.Since(h.asked) < use {
		return h.figures, h.failed
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	figures, err := h.read(ctx)
	if err != nil && h.failed == nil {
		slog.WarnContext(ctx, "metrics: the history cannot be read", "error", err.Error())
	}
	h.figures, h.failed, h.asked = figures, err, time.Now()
	return figures, err
}

// The metrics of an unreadable history are absent, except for historyUp.
func (h *history) collect(to chan<- client.Metric) {
	if h.read == nil {
		return
	}
	f, err := h.current()
	up := 1.0
	if err != nil {
		up = 0
	}
	send := func(name string, value float64, labels ...string) {
		to <- client.MustNewConstMetric(h.descs[name], client.GaugeValue, value, labels...)
	}
	send(historyUp, up)
	if err != nil {
		return
	}
	for job, at := range f.Completed {
		h.known(job)
		send(historyCompleted, unix(at), job)
	}
	for _, o := range f.Open {
		h.known(o.JobName)
		send(historyOpen, float64(o.Count), o.JobName, string(o.Status))
		send(historyOldest, unix(o.Since), o.JobName, string(o.Status))
	}
	for _, s := range f.Schedules {
		h.known(s.JobName)
		send(historyLate, s.Late.Seconds(), s.JobName)
		if !s.Next.IsZero() {
			send(historyNext, unix(s.Next), s.JobName)
		}
	}
	for name, counts := range map[string]map[string]int64{historyTasks: f.Tasks, historyParts: f.Parts, historyDead: f.DeadEvents} {
		for label, n := range counts {
			send(name, float64(n), label)
		}
	}
	send(historyWorkers, float64(f.Workers))
}
