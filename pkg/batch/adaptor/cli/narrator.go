package cli

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

// newsEvery is the time between two log lines, or two measurements of the
// speed, of one step.
const (
	newsEvery  = 5 * time.Second
	speedEvery = 500 * time.Millisecond
)

// narrator tells the operator what happens while a job runs: log lines, and
// progress bars where there is a terminal. It is a core.Observer.
type narrator struct {
	log  *slog.Logger
	bars *bars // nil: log lines tell the progress
	now  func() time.Time

	mu      sync.Mutex
	job     string // the job that was asked for: those inside of it tell of theirs
	running map[core.StepExecutionID]*stepProgress
	parts   map[core.StepExecutionID]*partsProgress // of partitions that run
	passed  []core.StepExecution
	stacks  [][]byte
}

// stepProgress is a step that runs; its partitions count as the step.
type stepProgress struct {
	name     string
	speed    speed
	lastNews time.Time
	parts    *partsProgress // nil: it has none so far
}

func newNarrator(log *slog.Logger, bars *bars, now func() time.Time) *narrator {
	return &narrator{log: log, bars: bars, now: now,
		running: map[core.StepExecutionID]*stepProgress{}, parts: map[core.StepExecutionID]*partsProgress{}}
}

// Observe tells of the event.
func (n *narrator) Observe(ctx context.Context, e core.Event) {
	switch e := e.(type) {
	case core.JobStarted:
		n.jobStarted(ctx, e)
	case core.JobEnded:
		n.log.DebugContext(ctx, "job ended", "job", e.Execution.JobName, "execution", int64(e.Execution.ID), "status", string(e.Execution.Status))
	case core.StepStarted:
		n.stepStarted(ctx, e)
	case core.StepPassed:
		n.stepPassed(ctx, e)
	case core.StepEnded:
		n.stepEnded(ctx, e)
	case core.ChunkCommitted:
		n.chunkCommitted(ctx, e)
	case core.ChunkRolledBack:
		n.keepStack(e.Err)
		n.log.DebugContext(ctx, "chunk rolled back", "step", e.Step, "error", oneLine(e.Err.Error()))
	case core.Decided:
		n.decided(ctx, e)
	case core.ElementSkipped:
		n.elementSkipped(ctx, e)
	case core.GateChecked:
		n.gateChecked(ctx, e)
	case core.StopAsked:
		n.log.InfoContext(ctx, "a stop was asked for: stopping once the chunk in hand is committed", "execution", int64(e.Execution))
	case core.StopFailed:
		n.log.WarnContext(ctx, "a tasklet cannot be stopped: it is waited for", "execution", int64(e.Execution), "step", e.Step, "error", oneLine(e.Err.Error()))
	case core.CloseFailed:
		n.log.WarnContext(ctx, "a component did its work, and could not be closed", "step", e.Step, "error", oneLine(e.Err.Error()))
	case core.Transitioned:
		n.transitioned(ctx, e)
	case core.OwnerLost:
		n.log.ErrorContext(ctx, "another process took the execution over: this one stops and commits nothing more", "execution", int64(e.Execution))
	case core.EndNotRecorded:
		n.log.ErrorContext(ctx, "an end could not be recorded", "execution", int64(e.Execution), "step", e.Step, "to", string(e.To), "error", oneLine(e.Err.Error()))
	case core.ObserverFailed:
		n.log.ErrorContext(ctx, "an observer panicked", "observer", e.Observer, "event", e.Event, "error", oneLine(e.Err.Error()))
	case core.HeartbeatFailed:
		n.log.WarnContext(ctx, "a heartbeat did not reach the database", "execution", int64(e.Execution), "error", oneLine(e.Err.Error()))
	}
}

func (n *narrator) jobStarted(ctx context.Context, e core.JobStarted) {
	n.mu.Lock()
	if n.job == "" {
		n.job = e.Execution.JobName
	}
	n.mu.Unlock()
	verb := "job started"
	if e.Restarted {
		verb = "job restarted"
	}
	n.log.InfoContext(ctx, verb, "job", e.Execution.JobName, "execution", int64(e.Execution.ID), "attempt", e.Execution.Attempt)
}

func (n *narrator) stepStarted(ctx context.Context, e core.StepStarted) {
	if n.partStarted(ctx, e.Step) {
		return
	}
	now := n.now()
	n.mu.Lock()
	s := &stepProgress{name: e.Step.Name, lastNews: now, speed: speed{at: now}}
	n.running[e.Step.ID] = s
	n.mu.Unlock()
	if n.bars != nil {
		n.bars.add(e.Step.ID, e.Step.Name, now)
	}
	verb := "step started"
	if e.Restarted {
		verb = "step resumed"
	}
	n.log.InfoContext(ctx, verb, "step", e.Step.Name)
}

func (n *narrator) stepPassed(ctx context.Context, e core.StepPassed) {
	n.mu.Lock()
	if e.Step.JobName == n.job || n.job == "" {
		n.passed = append(n.passed, e.Step)
	}
	n.mu.Unlock()
	n.log.InfoContext(ctx, "step passed: it completed before", "step", e.Step.Name, "execution", int64(e.Step.JobExecutionID))
}

func (n *narrator) stepEnded(ctx context.Context, e core.StepEnded) {
	n.keepStack(e.Err)
	if n.partEnded(ctx, e.Step) {
		return
	}
	n.mu.Lock()
	var parts *partsProgress
	if s, ok := n.running[e.Step.ID]; ok {
		parts = s.parts
	}
	delete(n.running, e.Step.ID)
	n.mu.Unlock()
	if n.bars != nil {
		n.bars.remove(e.Step.ID)
	}
	attrs := []any{"step", e.Step.Name, "status", string(e.Step.Status)}
	if c := e.Step.Counters; c != (core.Counters{}) {
		attrs = append(attrs, "read", c.Read, "written", c.Write)
	}
	if parts != nil {
		attrs = append(attrs, "partitions", statusCounts(parts.ended))
	}
	if e.Step.Status == core.StatusFailed || e.Step.Status == core.StatusUnknown {
		n.log.ErrorContext(ctx, "step ended", append(attrs, "error", oneLine(e.Step.Error))...)
		return
	}
	n.log.InfoContext(ctx, "step ended", attrs...)
}

func (n *narrator) chunkCommitted(ctx context.Context, e core.ChunkCommitted) {
	now := n.now()
	n.mu.Lock()
	if parts, ok := n.parts[e.StepID]; ok {
		parts.add(e.StepID, e.Counters)
		e.StepID, e.Counters = parts.step, parts.total
	}
	s, ok := n.running[e.StepID]
	if !ok {
		n.mu.Unlock()
		return
	}
	perSecond := s.speed.measure(now, rowsOf(e.Counters))
	tell := n.bars == nil && now.Sub(s.lastNews) >= newsEvery
	if tell {
		s.lastNews = now
	}
	n.mu.Unlock()
	if n.bars != nil {
		n.bars.update(e.StepID, e.Counters, perSecond)
	}
	if tell {
		n.log.InfoContext(ctx, "committed", "step", s.name, "read", e.Counters.Read, "written", e.Counters.Write,
			"skipped", e.Counters.Skips(), "rows_per_second", int64(perSecond))
	}
}

func (n *narrator) transitioned(ctx context.Context, e core.Transitioned) {
	level := slog.LevelDebug
	if e.Answer == core.Rejected {
		level = slog.LevelWarn
	}
	n.log.Log(ctx, level, "transition", "machine", e.Machine, "id", e.ID, "to", string(e.To),
		"current", string(e.Current), "answer", string(e.Answer), "trigger", e.Trigger)
}

// keepStack remembers where a component panicked, for --debug.
func (n *narrator) keepStack(err error) {
	var p *exception.PanicError
	if !errors.As(err, &p) {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, known := range n.stacks {
		if string(known) == string(p.Stack) {
			return
		}
	}
	n.stacks = append(n.stacks, p.Stack)
}

// rowsOf is the number of rows that a step's speed is about: those read, or
// written by a step that reads none.
func rowsOf(c core.Counters) int64 {
	if c.Read == 0 {
		return c.Write
	}
	return c.Read
}

// speed measures rows per second: since the start at first, then over the last
// half second or more.
type speed struct {
	at     time.Time
	rows   int64
	last   float64
	moving bool
}

func (s *speed) measure(now time.Time, rows int64) float64 {
	took := now.Sub(s.at)
	if took <= 0 || s.moving && took < speedEvery {
		return s.last
	}
	s.last = float64(rows-s.rows) / took.Seconds()
	if took >= speedEvery {
		s.at, s.rows, s.moving = now, rows, true
	}
	return s.last
}

// quiet is the observer of commands that run nothing: it logs what is odd.
func (p *program) quiet() core.Observer { return newNarrator(p.log, nil, p.now) }
