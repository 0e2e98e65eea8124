package cli

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/panics"
	"github.com/surfin-batch/surfin/internal/runlog"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

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

func (env *environment) observer() core.Observer { return env.newEventLog(nil) }

func (env *environment) newEventLog(bars *bars) *eventLog {
	l := newEventLog(env.log, bars, env.now)
	l.json = env.json
	return l
}

func newEventLog(log *slog.Logger, bars *bars, now func() time.Time) *eventLog {
	return &eventLog{log: log, bars: bars, now: now,
		running: map[core.StepExecutionID]*stepProgress{}, parts: map[core.StepExecutionID]*partsProgress{}, names: map[core.JobExecutionID]string{}}
}

func (l *eventLog) Observe(ctx context.Context, e core.Event) {
	switch e := e.(type) {
	case core.JobStarted:
		l.jobStarted(e)
	case core.StepStarted:
		if l.stepStarted(ctx, e) {
			return
		}
	case core.StepPassed:
		l.stepPassed(e)
	case core.StepEnded:
		l.stepEnded(ctx, e)
		return
	case core.ChunkCommitted:
		l.chunkCommitted(ctx, e)
		return
	case core.ChunkRolledBack:
		l.recordStack(e.Err)
	}
	line, shown := core.LineOf(e), shownAttrs(e, l.json)
	if shown == "" {
		return
	}
	line.Level = l.level(e, line.Level)
	l.print(ctx, line, pick(line, shown)...)
	switch e := e.(type) {
	case core.TasksSubmitted:
		for _, warning := range e.Warnings {
			line.Level, line.Message = slog.LevelWarn, warning
			l.print(ctx, line, pick(line, "step group")...)
		}
	case core.JobEnded:
		l.mu.Lock()
		delete(l.names, e.Execution.ID)
		l.mu.Unlock()
	}
}

// shownAttrs returns the attributes that the log shows, in order; "key=name"
// renames. It is empty if the command reports the event itself.
func shownAttrs(e core.Event, json bool) string {
	switch e := e.(type) {
	case core.JobStarted:
		return "job execution attempt"
	case core.JobEnded:
		if !json {
			return "job execution status"
		}
		return "job execution status exit_code attempt duration_seconds error"
	case core.StepStarted:
		return "step"
	case core.StepPassed:
		if json { // its execution is the one that passes the step
			return "step completed_in"
		}
		return "step completed_in=execution"
	case core.ChunkRolledBack, core.CloseFailed, core.ListenerFailed:
		return "step error"
	case core.Retried:
		return "step attempt error"
	case core.LogLost:
		return "execution lines error"
	case core.Decided:
		return "element verdict"
	case core.TasksSubmitted:
		return "step group handler tasks"
	case core.ElementSkipped:
		return "element condition=when"
	case core.GateChecked:
		if e.Step == "" {
			return "job gate"
		}
		return "step gate"
	case core.StopAsked, core.OwnerLost:
		return "execution"
	case core.StopFailed:
		return "execution step error"
	case core.Transitioned:
		return "machine id key to current result=answer trigger"
	case core.EndNotRecorded:
		return "execution step to error"
	case core.EventDead:
		return "machine topic id subject offers error"
	case core.ObserverFailed:
		return "observer of=event error"
	case core.HeartbeatFailed:
		if e.Execution == 0 { // a worker's
			return "error"
		}
		return "execution error"
	case core.SeriesNotStored:
		return "execution error"
	case core.LaunchWaits:
		return "reason"
	case core.DeciderMissing:
		return "decider tasks"
	}
	return ""
}

func (l *eventLog) level(e core.Event, level slog.Level) slog.Level {
	switch e := e.(type) {
	case core.JobEnded: // people read the summary or the error, which follows
		if !l.json {
			return slog.LevelDebug
		}
	case core.TasksSubmitted: // each of its warnings has its own line
		return slog.LevelInfo
	case core.GateChecked:
		if e.Held {
			return slog.LevelDebug
		}
	case core.Transitioned:
		if level == slog.LevelError {
			return slog.LevelWarn
		}
		return slog.LevelDebug
	case core.EndNotRecorded:
		if errors.Is(e.Err, core.ErrLostOwner) { // OwnerLost reports it in one sentence
			return slog.LevelDebug
		}
	}
	return level
}

func pick(line core.Line, keys string) []slog.Attr {
	var attrs []slog.Attr
	for key := range strings.FieldsSeq(keys) {
		key, name, renamed := strings.Cut(key, "=")
		i := slices.IndexFunc(line.Attrs, func(a slog.Attr) bool { return a.Key == key })
		if i < 0 {
			continue
		}
		a := line.Attrs[i]
		if renamed {
			a.Key = name
		}
		if key == "error" || key == "reason" {
			a.Value = slog.StringValue(humanize.OneLine(a.Value.String()))
		}
		attrs = append(attrs, a)
	}
	return attrs
}

func (l *eventLog) print(ctx context.Context, line core.Line, attrs ...slog.Attr) {
	if l.json {
		for _, a := range l.subject(line) {
			if !slices.ContainsFunc(attrs, func(b slog.Attr) bool { return a.Key == b.Key }) {
				attrs = append(attrs, a)
			}
		}
	}
	l.log.LogAttrs(runlog.Without(ctx), line.Level, line.Message, attrs...)
}

func (l *eventLog) subject(line core.Line) []slog.Attr {
	subject := pick(line, "job execution step")
	subject = slices.DeleteFunc(subject, func(a slog.Attr) bool {
		return a.Value.Equal(slog.StringValue("")) || a.Value.Equal(slog.Int64Value(0))
	})
	if i := slices.IndexFunc(subject, func(a slog.Attr) bool { return a.Key == "execution" }); i == 0 {
		l.mu.Lock()
		defer l.mu.Unlock()
		if name := l.names[core.JobExecutionID(subject[0].Value.Int64())]; name != "" {
			return slices.Insert(subject, 0, slog.String("job", name))
		}
	}
	return subject
}

func (l *eventLog) jobStarted(e core.JobStarted) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.job == "" {
		l.job = e.Execution.JobName
	}
	l.names[e.Execution.ID] = e.Execution.JobName
}

func (l *eventLog) stepStarted(ctx context.Context, e core.StepStarted) bool {
	if l.partStarted(e.Step) {
		line := core.LineOf(e)
		line.Level, line.Message = slog.LevelDebug, "partition started"
		l.print(ctx, line, pick(line, "step=partition")...)
		return true
	}
	now := l.now()
	l.mu.Lock()
	l.running[e.Step.ID] = &stepProgress{name: e.Step.Name, loggedAt: now, rate: rateMeter{at: now}}
	l.mu.Unlock()
	if l.bars != nil {
		l.bars.add(e.Step.ID, e.Step.Name, now)
	}
	return false
}

func (l *eventLog) stepPassed(e core.StepPassed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Step.JobName == l.job || l.job == "" {
		l.passed = append(l.passed, e.Step)
	}
}

func (l *eventLog) stepEnded(ctx context.Context, e core.StepEnded) {
	l.recordStack(e.Err)
	line, c := core.LineOf(e), e.Step.Counters
	work := []slog.Attr{slog.Int64("read", c.Read), slog.Int64("written", c.Write)}
	if is, warns := l.partEnded(e.Step); is {
		line.Level, line.Message = slog.LevelDebug, "partition ended"
		if warns {
			line.Level = slog.LevelWarn
		}
		l.print(ctx, line, slices.Concat(pick(line, "step=partition status"), work, pick(line, "error"))...)
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
	attrs := pick(line, "step status")
	if c != (core.Counters{}) {
		attrs = append(attrs, work...)
	}
	if parts != nil {
		attrs = append(attrs, slog.String("partitions", wording.StatusCounts(parts.ended)))
	}
	if line.Level == slog.LevelError {
		attrs = append(attrs, pick(line, "error")...)
	} else {
		attrs = append(attrs, pick(line, "warning")...)
	}
	l.print(ctx, line, attrs...)
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
	due := l.bars == nil && now.Sub(s.loggedAt) >= logInterval
	if due {
		s.loggedAt = now
	}
	l.mu.Unlock()
	if l.bars != nil {
		l.bars.update(e.StepID, e.Counters, perSecond)
	}
	if due {
		line := core.LineOf(e)
		line.Level, line.Message = slog.LevelInfo, "committed"
		l.print(ctx, line, slog.String("step", s.name), slog.Int64("read", e.Counters.Read), slog.Int64("written", e.Counters.Write),
			slog.Int64("skipped", e.Counters.Skips()), slog.Int64("rows_per_second", int64(perSecond)))
	}
}

func (l *eventLog) recordStack(err error) {
	var p *panics.PanicError
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
