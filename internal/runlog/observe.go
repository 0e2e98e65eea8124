package runlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/surfin-batch/surfin/internal/panics"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const (
	maxMessage = 16 << 10
	maxStack   = 32 << 10
)

// Enter implements core.Scope: lines that are logged with the context belong to the execution, and to the step.
func (l *Log) Enter(ctx context.Context, e core.Event) context.Context {
	l.Observe(ctx, e)
	if l.config.Limit <= 0 {
		return ctx
	}
	switch e := e.(type) {
	case core.JobStarted:
		return with(ctx, &origin{log: l, execution: e.Execution.ID})
	case core.StepStarted:
		name, part := parts(e.Step.Name)
		return with(ctx, &origin{log: l, execution: e.Step.JobExecutionID, stepExecution: e.Step.ID, step: name, part: part})
	}
	return ctx
}

// Observe implements core.Observer.
func (l *Log) Observe(ctx context.Context, e core.Event) {
	if l.config.Limit <= 0 || !isLogged(e) {
		return
	}
	from := core.LineOf(e)
	line, ok := l.lineOf(ctx, from)
	if !ok || from.Level < slog.LevelInfo && !isThinned(e) {
		return
	}
	details := l.details(e)
	l.mu.Lock()
	l.enter(e, line, details)
	l.mu.Unlock()
	if _, late := e.(core.ComponentLate); late {
		l.awaitStored(line.Execution)
	}
}

// isLogged returns false for events that have no line, without a look at them: chunks and moves of rows are many.
func isLogged(e core.Event) bool {
	switch e := e.(type) {
	case core.ChunkCommitted, core.LogLost, core.WorkerStarted, core.ServerStarted, core.DeciderMissing:
		return false
	case core.Transitioned:
		return e.Answer != core.Applied && !e.Race
	}
	return true
}

// isThinned reports the events below INFO that a log has.
func isThinned(e core.Event) bool {
	switch e.(type) {
	case core.ChunkRolledBack, core.Retried:
		return true
	}
	return false
}

// enter adds the line of an event, in the order of the log. The caller has l.mu.
func (l *Log) enter(e core.Event, line ports.LogLine, details []ports.LogLine) {
	b := l.book(line.Execution)
	s := b.scope(line.Step)
	switch e := e.(type) {
	case core.StepStarted:
		s.running++
		l.thin(b, s, line)
	case core.StepEnded:
		s.running--
		whole := line.Part == ""
		if whole || s.running <= 0 {
			l.release(b, s)
		}
		if whole && line.Level >= slog.LevelError {
			l.enqueue(b, line, true)
			l.append(b, details)
			l.hurry()
		} else if l.thin(b, s, line) {
			l.append(b, details)
		}
	case core.JobEnded:
		l.finish(b, line, details)
	case core.OwnerLost:
		l.finish(b, line, details)
	case core.EndNotRecorded:
		if e.Step == "" {
			l.finish(b, line, details)
			return
		}
		s.running--
		l.thin(b, s, line)
	default:
		if l.thin(b, s, line) {
			l.append(b, details)
		}
	}
}

// finish adds the last line of an execution here.
func (l *Log) finish(b *book, line ports.LogLine, details []ports.LogLine) {
	l.releaseAll(b)
	l.enqueue(b, line, true)
	l.append(b, details)
	b.ended = true
	l.hurry()
}

func (l *Log) append(b *book, details []ports.LogLine) {
	for _, d := range details {
		l.enqueue(b, d, true)
	}
}

// awaitStored waits, not for long, until the lines of the execution are stored.
func (l *Log) awaitStored(id core.JobExecutionID) {
	l.mu.Lock()
	l.hurry()
	l.mu.Unlock()
	for began := time.Now(); time.Since(began) < lateTime; time.Sleep(5 * time.Millisecond) {
		l.mu.Lock()
		b := l.books[id]
		stored := b == nil || len(b.queue) == 0 && b.flying == 0
		l.mu.Unlock()
		if stored {
			return
		}
	}
}

func (l *Log) newLine(level slog.Level, event, message string) ports.LogLine {
	return ports.LogLine{
		Process: l.process, Writer: l.writer, Level: level, At: time.Now().UTC(), Event: event, Message: cut(l.config.Mask(message), maxMessage),
	}
}

// lineOf returns the line of an event; ok is false if it belongs to no execution.
func (l *Log) lineOf(ctx context.Context, from core.Line) (line ports.LogLine, ok bool) {
	line = l.newLine(from.Level, from.Event, from.Message)
	values := l.newValues()
	for _, a := range from.Attrs {
		switch a.Key {
		case "job": // the log is of its execution
		case "execution":
			line.Execution = core.JobExecutionID(a.Value.Int64())
		case "step":
			line.Step, line.Part = parts(a.Value.String())
		case "step_execution":
			line.StepExecution = core.StepExecutionID(a.Value.Int64())
		default:
			values.add(a)
		}
	}
	if o := originOf(ctx); o != nil && o.log == sink(l) && (line.Execution == 0 || line.Execution == o.execution) {
		if line.Execution = o.execution; line.Step == "" && from.Event != "job.ended" {
			line.StepExecution, line.Step, line.Part = o.stepExecution, o.step, o.part
		}
	}
	line.Attributes = values.text()
	return line, line.Execution != 0
}

// details are further lines of a failure: its causes, and the stack of a panic.
func (l *Log) details(e core.Event) []ports.LogLine {
	id, step, stepID, known, err := core.JobExecutionID(0), "", core.StepExecutionID(0), "", error(nil)
	switch e := e.(type) {
	case core.StepEnded:
		id, step, stepID, known, err = e.Step.JobExecutionID, e.Step.Name, e.Step.ID, e.Step.Error, e.Err
		if e.Step.Status != core.StatusFailed && e.Step.Status != core.StatusUnknown {
			return nil
		}
	case core.JobEnded:
		id, known, err = e.Execution.ID, e.Execution.Error, e.Err
	case core.ListenerFailed:
		id, step, err = e.Execution, e.Step, e.Err
		known = fmt.Sprint(e.Err)
	case core.CloseFailed:
		id, step, err = e.Execution, e.Step, e.Err
		known = fmt.Sprint(e.Err)
	}
	if err == nil {
		return nil
	}
	o := &origin{log: l, execution: id, stepExecution: stepID}
	o.step, o.part = parts(step)
	var lines []ports.LogLine
	chain := &chain{mask: l.config.Mask, seen: l.config.Mask(known)}
	chain.walk(err)
	for _, c := range chain.causes {
		line := o.line(slog.LevelError, eventCause, c.text)
		values := l.newValues()
		values.add(slog.String("type", c.kind))
		line.Attributes = values.text()
		lines = append(lines, line)
	}
	var panicked *panics.PanicError
	if errors.As(err, &panicked) && len(panicked.Stack) > 0 {
		line := o.line(slog.LevelError, eventStack, "")
		line.Message = cut(l.config.Mask(panicked.Error()+"\n"+string(panicked.Stack)), maxStack)
		lines = append(lines, line)
	}
	return lines
}

func (l *Log) newValues() *values { return newValues(l.config.Mask) }

func (l *Log) add(id core.JobExecutionID, line ports.LogLine) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enqueue(l.book(id), line, false)
}
