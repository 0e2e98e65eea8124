// Package slog makes structured log records of the events of running jobs: one record per event, with its
// stable name in the attribute `event`. docs/howto/observability.md has a table of them.
//
// It imports core and the standard library; module.go, which adds it to an application, imports fx, settings
// and internal/secret.
package slog

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// observer logs events. It is safe for concurrent use.
type observer struct {
	log *slog.Logger

	mu   sync.Mutex
	jobs map[core.JobExecutionID]*jobInHand
}

// jobInHand is an execution that runs in this process. Times are of this process's clock; times in records
// are also of the database's.
type jobInHand struct {
	began time.Time
	steps map[core.StepExecutionID]time.Time // when they began
	// told is true after a step has reported the error; the job does not repeat it.
	told bool
}

// New returns an observer that logs to log; nil means slog.Default().
func New(log *slog.Logger) core.Observer {
	if log == nil {
		log = slog.Default()
	}
	return &observer{log: log, jobs: map[core.JobExecutionID]*jobInHand{}}
}

// Observe logs the event.
func (o *observer) Observe(ctx context.Context, e core.Event) {
	var r record
	switch e := e.(type) {
	case core.JobStarted:
		o.change(e.Execution.ID, func(j *jobInHand) { j.began = time.Now() })
		r = begin("job.started", "job started")
		r.add(slog.String("job", e.Execution.JobName), execution(e.Execution.ID), slog.Int("attempt", e.Execution.Attempt), slog.Bool("restarted", e.Restarted))
	case core.JobEnded:
		r = o.jobEnded(e)
	case core.StepStarted:
		o.change(e.Step.JobExecutionID, func(j *jobInHand) { j.steps[e.Step.ID] = time.Now() })
		r = begin("step.started", "step started")
		r.step(e.Step.JobName, e.Step.JobExecutionID, e.Step.Name, e.Step.ID)
		r.text("kind", e.Kind)
		r.add(slog.Bool("restarted", e.Restarted))
	case core.StepPassed:
		r = begin("step.passed", "step passed: it completed before")
		r.text("job", e.Step.JobName)
		if e.Execution != 0 {
			r.add(execution(e.Execution))
		}
		r.add(slog.String("step", e.Step.Name), slog.Int64("step_execution", int64(e.Step.ID)),
			slog.Int64("completed_in", int64(e.Step.JobExecutionID)), slog.String("exit_code", e.Step.ExitCode))
	case core.StepEnded:
		r = o.stepEnded(e)
	case core.ChunkCommitted:
		r = begin("chunk.committed", "chunk committed").at(slog.LevelDebug)
		r.step(e.JobName, e.Execution, e.Step, e.StepID)
		r.add(seconds(e.Took))
		r.counters(e.Counters)
	case core.ChunkRolledBack:
		r = begin("chunk.rolled_back", "chunk rolled back").at(slog.LevelDebug)
		r.step(e.JobName, e.Execution, e.Step, e.StepID)
		r.err(e.Err)
	case core.Transitioned:
		r = transitioned(e)
	case core.OwnerLost:
		o.forget(e.Execution)
		r = rare(e)
	case core.ListenerFailed:
		r = begin("listener.failed", "a listener failed when it was called with an error").at(slog.LevelWarn)
		r.add(slog.String("job", e.JobName), execution(e.Execution), slog.String("step", e.Step))
		r.err(e.Err)
	case core.EndNotRecorded:
		if e.Step == "" {
			o.forget(e.Execution)
		}
		r = rare(e)
	default:
		r = rare(e)
	}
	if r.event != "" {
		o.log.LogAttrs(ctx, r.level, r.message, r.attrs...)
	}
}

// rare are the events that do not occur in most runs.
func rare(e core.Event) record {
	var r record
	switch e := e.(type) {
	case core.Decided:
		r = begin("decision.taken", "decision taken")
		r.add(slog.String("job", e.JobName), execution(e.Execution), slog.String("element", e.Element), slog.String("verdict", e.Verdict), slog.Bool("kept", e.Kept))
	case core.TasksSubmitted:
		r = begin("tasks.submitted", "tasks submitted")
		r.add(slog.String("job", e.JobName), execution(e.Execution), slog.String("step", e.Step), slog.Int64("group", e.Group), slog.String("handler", e.Handler), slog.Int("tasks", e.Tasks))
		if len(e.Warnings) > 0 {
			r = r.at(slog.LevelWarn)
			r.add(slog.String("warning", strings.Join(e.Warnings, "; ")))
		}
	case core.ElementSkipped:
		r = begin("element.skipped", "element skipped: its condition does not hold")
		r.add(slog.String("job", e.JobName), execution(e.Execution), slog.String("element", e.Element), slog.String("condition", e.Condition))
	case core.GateChecked:
		r = begin("gate.checked", "gate checked")
		if !e.Held {
			r = r.at(slog.LevelWarn)
		}
		r.add(slog.String("job", e.JobName), execution(e.Execution))
		r.text("step", e.Step)
		r.add(slog.String("gate", e.Gate), slog.Bool("held", e.Held))
	case core.StopAsked:
		r = begin("stop.asked", "stop asked for")
		r.add(execution(e.Execution))
	case core.StopFailed:
		r = begin("stop.failed", "a tasklet could not be stopped").at(slog.LevelWarn)
		r.add(execution(e.Execution), slog.String("step", e.Step))
		r.err(e.Err)
	case core.CloseFailed:
		r = begin("close.failed", "a component could not be closed").at(slog.LevelWarn)
		r.add(slog.String("job", e.JobName), execution(e.Execution), slog.String("step", e.Step))
		r.err(e.Err)
	case core.EndNotRecorded:
		r = begin("end.not_recorded", "an end could not be recorded").at(slog.LevelError)
		r.add(slog.String("job", e.JobName), execution(e.Execution))
		r.text("step", e.Step)
		r.add(slog.String("to", string(e.To)))
		r.err(e.Err)
	case core.EventDead:
		r = begin("event.dead", "an event was offered in vain for the last time").at(slog.LevelError)
		r.add(slog.String("machine", e.Machine), slog.String("topic", e.Topic), slog.Int64("id", e.ID), slog.Int64("subject", e.Subject), slog.Int("offers", e.Offers))
		r.err(e.Err)
	case core.ObserverFailed:
		r = begin("observer.failed", "an observer panicked").at(slog.LevelError)
		r.add(slog.String("observer", e.Observer), slog.String("of", e.Event))
		r.err(e.Err)
	default:
		return waiting(e)
	}
	return r
}

// waiting are the events about leases and about waiting work.
func waiting(e core.Event) record {
	var r record
	switch e := e.(type) {
	case core.OwnerLost:
		r = begin("owner.lost", "another process took the execution over").at(slog.LevelError)
		r.add(execution(e.Execution))
	case core.WorkerStarted:
		r = begin("worker.started", "a worker started")
		r.add(slog.String("worker", e.Worker))
	case core.ServerStarted:
		r = begin("server.started", "a server started")
		r.add(slog.String("address", e.Address))
	case core.HeartbeatFailed:
		r = begin("heartbeat.failed", "a heartbeat did not reach the database").at(slog.LevelWarn)
		r.add(execution(e.Execution))
		r.err(e.Err)
	case core.LaunchWaits:
		r = begin("launch.waits", "a launch waits")
		r.add(slog.String("job", e.JobName), execution(e.Execution))
		r.text("step", e.Step)
		r.text("reason", e.Reason)
	case core.DeciderMissing:
		r = begin("decider.missing", "tasks wait for a worker that has their decider, and none that is alive has it").at(slog.LevelWarn)
		r.add(slog.String("decider", e.Decider), slog.Int("tasks", e.Tasks))
	case core.ComponentLate:
		r = begin("component.late", "the lease is nearly over, and a component has not returned: another process may begin the same work beside it").at(slog.LevelError)
		if e.Task != 0 {
			r.add(slog.Int64("task", e.Task), slog.String("type", e.TaskType))
		} else {
			r.add(slog.String("job", e.JobName), execution(e.Execution))
		}
		r.text("step", e.Step)
		r.err(e.Err)
	}
	return r
}

func (o *observer) jobEnded(ended core.JobEnded) record {
	e := ended.Execution
	r := begin("job.ended", "job ended").at(levelOf(e.Status))
	r.add(slog.String("job", e.JobName), execution(e.ID), slog.Int("attempt", e.Attempt),
		slog.String("status", string(e.Status)), slog.String("exit_code", e.ExitCode))
	r.text("gate", e.Gate)
	j := o.forget(e.ID)
	r.add(seconds(since(j.began)))
	switch {
	case ended.Err != nil: // an error that no step has reported
		r.err(ended.Err)
	case !j.told:
		r.text("error", e.Error)
	}
	return r
}

func (o *observer) stepEnded(e core.StepEnded) record {
	s := e.Step
	r := begin("step.ended", "step ended").at(levelOf(s.Status))
	r.step(s.JobName, s.JobExecutionID, s.Name, s.ID)
	r.text("kind", e.Kind)
	r.add(slog.String("status", string(s.Status)), slog.String("exit_code", s.ExitCode))
	r.text("gate", s.Gate)
	var began time.Time
	o.change(s.JobExecutionID, func(j *jobInHand) {
		began = j.steps[s.ID]
		delete(j.steps, s.ID)
		j.told = j.told || r.level == slog.LevelError && s.Error != ""
	})
	r.add(seconds(since(began)))
	r.counters(s.Counters)
	if warnings := s.Warnings(); len(warnings) > 0 {
		if r.level < slog.LevelWarn {
			r = r.at(slog.LevelWarn)
		}
		r.text("warning", strings.Join(warnings, "; "))
	}
	r.text("error", s.Error)
	return r
}

// change changes the state of an execution.
func (o *observer) change(id core.JobExecutionID, f func(j *jobInHand)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	j := o.jobs[id]
	if j == nil {
		j = &jobInHand{steps: map[core.StepExecutionID]time.Time{}}
		o.jobs[id] = j
	}
	f(j)
}

// forget removes an execution that has ended, and returns its state.
func (o *observer) forget(id core.JobExecutionID) jobInHand {
	o.mu.Lock()
	defer o.mu.Unlock()
	j := o.jobs[id]
	delete(o.jobs, id)
	if j == nil {
		return jobInHand{}
	}
	return *j
}

func transitioned(e core.Transitioned) record {
	r := begin("transition", "transition").at(slog.LevelDebug)
	switch {
	case e.Answer == core.Applied, e.Race:
	case e.Answer == core.Duplicate, e.Early: // senders repeat themselves, and overtake one another
		r = r.at(slog.LevelInfo)
	default:
		r = r.at(slog.LevelError)
	}
	r.add(slog.String("machine", e.Machine))
	if e.Key == "" {
		r.add(slog.Int64("id", e.ID))
	}
	r.text("key", e.Key)
	r.add(slog.String("trigger", e.Trigger), slog.String("to", string(e.To)))
	r.text("current", string(e.Current))
	r.add(slog.String("result", string(e.Answer)))
	if e.Early {
		r.add(slog.Bool("early", true))
	}
	return r
}

// record is a log record in the making.
type record struct {
	event, message string
	level          slog.Level
	attrs          []slog.Attr
}

func begin(event, message string) record {
	return record{event: event, message: message, attrs: append(make([]slog.Attr, 0, 16), slog.String("event", event))}
}

func (r record) at(level slog.Level) record { r.level = level; return r }

func (r *record) add(attrs ...slog.Attr) { r.attrs = append(r.attrs, attrs...) }

func (r *record) text(key, value string) {
	if value != "" {
		r.add(slog.String(key, value))
	}
}

func (r *record) err(err error) {
	if err != nil {
		r.add(slog.String("error", err.Error()))
	}
}

func (r *record) step(job string, id core.JobExecutionID, step string, stepID core.StepExecutionID) {
	r.add(slog.String("job", job), execution(id), slog.String("step", step), slog.Int64("step_execution", int64(stepID)))
}

// counters adds those that are not zero.
func (r *record) counters(c core.Counters) {
	for _, n := range []struct {
		key   string
		value int64
	}{
		{"read", c.Read}, {"filtered", c.Filter}, {"written", c.Write}, {"skipped", c.Skips()},
		{"commits", c.Commit}, {"rollbacks", c.Rollback},
	} {
		if n.value != 0 {
			r.add(slog.Int64(n.key, n.value))
		}
	}
}

func execution(id core.JobExecutionID) slog.Attr { return slog.Int64("execution", int64(id)) }

func seconds(d time.Duration) slog.Attr { return slog.Float64("duration_seconds", d.Seconds()) }

// since is 0 for work that did not begin here.
func since(began time.Time) time.Duration {
	if began.IsZero() {
		return 0
	}
	return time.Since(began)
}

func levelOf(s core.Status) slog.Level {
	if s == core.StatusFailed || s == core.StatusUnknown {
		return slog.LevelError
	}
	return slog.LevelInfo
}
