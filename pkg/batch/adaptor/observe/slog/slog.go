// Package slog makes one structured log record per event of a job, with its stable name in the attribute
// `event`. docs/reference/events.md has a table.
//
// It imports core, internal/runlog and the standard library; module.go imports fx, settings and internal/secret.
package slog

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/internal/runlog"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type observer struct {
	log *slog.Logger

	mu   sync.Mutex
	jobs map[core.JobExecutionID]*running
}

// Times are of this process's clock; times in records are also of the database's.
type running struct {
	began time.Time
	steps map[core.StepExecutionID]time.Time
	// A step has reported the error; the job does not repeat it.
	reported bool
}

// New returns an observer that logs to log; nil means slog.Default().
func New(log *slog.Logger) core.Observer {
	if log == nil {
		log = slog.Default()
	}
	return &observer{log: log, jobs: map[core.JobExecutionID]*running{}}
}

// Observe logs the event.
func (o *observer) Observe(ctx context.Context, e core.Event) {
	line := core.LineOf(e)
	switch e := e.(type) {
	case core.JobStarted:
		o.change(e.Execution.ID, func(j *running) { j.began = time.Now() })
	case core.StepStarted:
		o.change(e.Step.JobExecutionID, func(j *running) { j.steps[e.Step.ID] = time.Now() })
	case core.StepEnded:
		var began time.Time
		o.change(e.Step.JobExecutionID, func(j *running) {
			began = j.steps[e.Step.ID]
			delete(j.steps, e.Step.ID)
			j.reported = j.reported || line.Level == slog.LevelError && e.Step.Error != ""
		})
		took(line.Attrs, began)
	case core.JobEnded:
		j := o.forget(e.Execution.ID)
		took(line.Attrs, j.began)
		if j.reported && e.Err == nil {
			line.Attrs = slices.DeleteFunc(line.Attrs, func(a slog.Attr) bool { return a.Key == "error" })
		}
	case core.OwnerLost:
		o.forget(e.Execution)
	case core.EndNotRecorded:
		if e.Step == "" {
			o.forget(e.Execution)
		}
	}
	o.log.LogAttrs(runlog.Without(ctx), line.Level, line.Message, slices.Insert(line.Attrs, 0, slog.String("event", line.Event))...)
}

func (o *observer) change(id core.JobExecutionID, f func(j *running)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	j := o.jobs[id]
	if j == nil {
		j = &running{steps: map[core.StepExecutionID]time.Time{}}
		o.jobs[id] = j
	}
	f(j)
}

func (o *observer) forget(id core.JobExecutionID) running {
	o.mu.Lock()
	defer o.mu.Unlock()
	j := o.jobs[id]
	delete(o.jobs, id)
	if j == nil {
		return running{}
	}
	return *j
}

// 0 if the work did not begin here
func took(attrs []slog.Attr, began time.Time) {
	var d time.Duration
	if !began.IsZero() {
		d = time.Since(began)
	}
	if i := slices.IndexFunc(attrs, func(a slog.Attr) bool { return a.Key == "duration_seconds" }); i >= 0 {
		attrs[i].Value = slog.Float64Value(d.Seconds())
	}
}
