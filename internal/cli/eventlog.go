package cli

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

// logInterval is the time between two log lines of one step, and rateInterval between
// two measurements of its rate.
const (
	logInterval  = 5 * time.Second
	rateInterval = 500 * time.Millisecond
)

// eventLog is a core.Observer that logs the events of a running job, and draws progress bars if
// there is a terminal.
type eventLog struct {
	log  *slog.Logger
	bars *bars // if nil, log lines show the progress
	now  func() time.Time
	json bool // the log is for programs

	mu      sync.Mutex
	job     string // the requested job, not one inside it
	running map[core.StepExecutionID]*stepProgress
	parts   map[core.StepExecutionID]*partsProgress // of running partitions
	names   map[core.JobExecutionID]string          // of running jobs
	passed  []core.StepExecution
	stacks  [][]byte
}

// stepProgress is a running step; its partitions count as the step.
type stepProgress struct {
	name     string
	rate     rateMeter
	loggedAt time.Time
	parts    *partsProgress // nil if it has none so far
}

func newEventLog(log *slog.Logger, bars *bars, now func() time.Time) *eventLog {
	return &eventLog{log: log, bars: bars, now: now,
		running: map[core.StepExecutionID]*stepProgress{}, parts: map[core.StepExecutionID]*partsProgress{}, names: map[core.JobExecutionID]string{}}
}

// Observe logs the event.
func (l *eventLog) Observe(ctx context.Context, e core.Event) {
	ctx = l.about(ctx, e)
	switch e := e.(type) {
	case core.JobStarted:
		l.jobStarted(ctx, e)
	case core.JobEnded:
		l.jobEnded(ctx, e)
	case core.StepStarted:
		l.stepStarted(ctx, e)
	case core.StepPassed:
		l.stepPassed(ctx, e)
	case core.StepEnded:
		l.stepEnded(ctx, e)
	case core.ChunkCommitted:
		l.chunkCommitted(ctx, e)
	case core.ChunkRolledBack:
		l.recordStack(e.Err)
		l.log.DebugContext(ctx, "chunk rolled back", "step", e.Step, "error", oneLine(e.Err.Error()))
	case core.Decided:
		l.decided(ctx, e)
	case core.TasksSubmitted:
		l.tasksSubmitted(ctx, e)
	case core.ElementSkipped:
		l.elementSkipped(ctx, e)
	case core.GateChecked:
		l.gateChecked(ctx, e)
	case core.StopAsked:
		l.log.InfoContext(ctx, "a stop was asked for: stopping once the chunk in hand is committed", "execution", int64(e.Execution))
	case core.StopFailed:
		l.log.WarnContext(ctx, "a tasklet cannot be stopped: it is waited for", "execution", int64(e.Execution), "step", e.Step, "error", oneLine(e.Err.Error()))
	case core.CloseFailed:
		l.log.WarnContext(ctx, "a component did its work, and could not be closed", "step", e.Step, "error", oneLine(e.Err.Error()))
	case core.ListenerFailed:
		l.log.WarnContext(ctx, "a listener failed when it was called with an error", "step", e.Step, "error", oneLine(e.Err.Error()))
	case core.Transitioned:
		l.transitioned(ctx, e)
	case core.OwnerLost:
		l.log.ErrorContext(ctx, "another process took the execution over: this one stops and commits nothing more", "execution", int64(e.Execution))
	case core.EndNotRecorded:
		level := slog.LevelError
		if errors.Is(e.Err, core.ErrLostOwner) { // OwnerLost reports it in one sentence
			level = slog.LevelDebug
		}
		l.log.Log(ctx, level, "an end could not be recorded", "execution", int64(e.Execution), "step", e.Step, "to", string(e.To), "error", oneLine(e.Err.Error()))
	case core.EventDead:
		l.log.ErrorContext(ctx, "an event was offered in vain for the last time", "machine", e.Machine, "topic", e.Topic, "id", e.ID,
			"subject", e.Subject, "offers", e.Offers, "error", oneLine(e.Err.Error()))
	case core.ObserverFailed:
		l.log.ErrorContext(ctx, "an observer panicked", "observer", e.Observer, "event", e.Event, "error", oneLine(e.Err.Error()))
	case core.HeartbeatFailed:
		args := []any{"error", oneLine(e.Err.Error())}
		if e.Execution != 0 { // 0 for a worker's tasks
			args = append([]any{"execution", int64(e.Execution)}, args...)
		}
		l.log.WarnContext(ctx, "a heartbeat did not reach the database", args...)
	case core.WorkerStarted, core.ServerStarted: // the command reports it itself
	case core.LaunchWaits:
		l.log.InfoContext(ctx, "waiting to launch job "+e.JobName, "reason", oneLine(e.Reason))
	case core.DeciderMissing:
		l.log.WarnContext(ctx, "tasks wait for a worker that has their decider, and none that is alive has it", "decider", e.Decider, "tasks", e.Tasks)
	case core.ComponentLate: // the process ends with an error that reports it
	}
}

func (l *eventLog) jobStarted(ctx context.Context, e core.JobStarted) {
	l.mu.Lock()
	if l.job == "" {
		l.job = e.Execution.JobName
	}
	l.mu.Unlock()
	verb := "job started"
	if e.Restarted {
		verb = "job restarted"
	}
	l.log.InfoContext(ctx, verb, "job", e.Execution.JobName, "execution", int64(e.Execution.ID), "attempt", e.Execution.Attempt)
}

func (l *eventLog) stepStarted(ctx context.Context, e core.StepStarted) {
	if l.partStarted(ctx, e.Step) {
		return
	}
	now := l.now()
	l.mu.Lock()
	s := &stepProgress{name: e.Step.Name, loggedAt: now, rate: rateMeter{at: now}}
	l.running[e.Step.ID] = s
	l.mu.Unlock()
	if l.bars != nil {
		l.bars.add(e.Step.ID, e.Step.Name, now)
	}
	verb := "step started"
	if e.Restarted {
		verb = "step resumed"
	}
	l.log.InfoContext(ctx, verb, "step", e.Step.Name)
}

func (l *eventLog) stepPassed(ctx context.Context, e core.StepPassed) {
	l.mu.Lock()
	if e.Step.JobName == l.job || l.job == "" {
		l.passed = append(l.passed, e.Step)
	}
	l.mu.Unlock()
	by := "execution"
	if l.json {
		by = "completed_in" // execution is the one that passes it
	}
	l.log.InfoContext(ctx, "step passed: it completed before", "step", e.Step.Name, by, int64(e.Step.JobExecutionID))
}

func (l *eventLog) stepEnded(ctx context.Context, e core.StepEnded) {
	l.recordStack(e.Err)
	if l.partEnded(ctx, e.Step) {
		return
	}
	l.mu.Lock()
	var parts *partsProgress
	if s, ok := l.running[e.Step.ID]; ok {
		parts = s.parts
	}
	delete(l.running, e.Step.ID)
	l.mu.Unlock()
	if l.bars != nil {
		l.bars.remove(e.Step.ID)
	}
	attrs := []any{"step", e.Step.Name, "status", string(e.Step.Status)}
	if c := e.Step.Counters; c != (core.Counters{}) {
		attrs = append(attrs, "read", c.Read, "written", c.Write)
	}
	if parts != nil {
		attrs = append(attrs, "partitions", statusCounts(parts.ended))
	}
	if e.Step.Status == core.StatusFailed || e.Step.Status == core.StatusUnknown {
		l.log.ErrorContext(ctx, "step ended", append(attrs, "error", oneLine(e.Step.Error))...)
		return
	}
	if warnings := e.Step.Warnings(); len(warnings) > 0 {
		l.log.WarnContext(ctx, "step ended", append(attrs, "warning", strings.Join(warnings, "; "))...)
		return
	}
	l.log.InfoContext(ctx, "step ended", attrs...)
}

func (l *eventLog) chunkCommitted(ctx context.Context, e core.ChunkCommitted) {
	now := l.now()
	l.mu.Lock()
	if parts, ok := l.parts[e.StepID]; ok {
		parts.add(e.StepID, e.Counters)
		e.StepID, e.Counters = parts.step, parts.total
	}
	s, ok := l.running[e.StepID]
	if !ok {
		l.mu.Unlock()
		return
	}
	perSecond := s.rate.measure(now, e.Counters.Rows())
	tell := l.bars == nil && now.Sub(s.loggedAt) >= logInterval
	if tell {
		s.loggedAt = now
	}
	l.mu.Unlock()
	if l.bars != nil {
		l.bars.update(e.StepID, e.Counters, perSecond)
	}
	if tell {
		l.log.InfoContext(ctx, "committed", "step", s.name, "read", e.Counters.Read, "written", e.Counters.Write,
			"skipped", e.Counters.Skips(), "rows_per_second", int64(perSecond))
	}
}

func (l *eventLog) transitioned(ctx context.Context, e core.Transitioned) {
	level := slog.LevelDebug
	if e.Answer == core.Rejected && !e.Race && !e.Early {
		level = slog.LevelWarn
	}
	row := slog.Int64("id", e.ID)
	if e.Key != "" {
		row = slog.String("key", e.Key)
	}
	l.log.Log(ctx, level, "transition", "machine", e.Machine, row, "to", string(e.To),
		"current", string(e.Current), "answer", string(e.Answer), "trigger", e.Trigger)
}

// recordStack stores the stack of a component that panicked, for --debug.
func (l *eventLog) recordStack(err error) {
	var p *exception.PanicError
	if !errors.As(err, &p) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, known := range l.stacks {
		if string(known) == string(p.Stack) {
			return
		}
	}
	l.stacks = append(l.stacks, p.Stack)
}

// rateMeter measures rows per second: since the start at first, then over the last
// half second or more.
type rateMeter struct {
	at     time.Time
	rows   int64
	last   float64
	moving bool
}

func (s *rateMeter) measure(now time.Time, rows int64) float64 {
	took := now.Sub(s.at)
	if took <= 0 || s.moving && took < rateInterval {
		return s.last
	}
	s.last = float64(rows-s.rows) / took.Seconds()
	if took >= rateInterval {
		s.at, s.rows, s.moving = now, rows, true
	}
	return s.last
}

// observer returns the observer of commands that run nothing. It only logs failures.
func (env *environment) observer() core.Observer { return env.newEventLog(nil) }

func (env *environment) newEventLog(bars *bars) *eventLog {
	l := newEventLog(env.log, bars, env.now)
	l.json = env.json
	return l
}
