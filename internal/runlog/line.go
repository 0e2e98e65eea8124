package runlog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/panics"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const (
	maxMessage = 16 << 10
	maxStack   = 32 << 10
	maxValue   = 8 << 10
	maxValues  = 100
	maxCauses  = 20
)

// The events of lines that are no events of the engine.
const (
	eventCause   = "cause"
	eventStack   = "panic.stack"
	eventLog     = "log"
	eventOutput  = "output"
	eventThinned = "log.thinned"
	eventBound   = "log.bound"
	eventLost    = "log.lost"
)

// origin is the work that a context belongs to.
type origin struct {
	log           *Log
	execution     core.JobExecutionID
	stepExecution core.StepExecutionID
	step, part    string
}

type originKey struct{}

func with(ctx context.Context, o *origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// Without returns a context whose records are no part of an execution's log: those of an observer, which would be
// there twice.
func Without(ctx context.Context) context.Context {
	if originOf(ctx) == nil {
		return ctx
	}
	return with(ctx, nil)
}

func originOf(ctx context.Context) *origin {
	o, _ := ctx.Value(originKey{}).(*origin) //nolint:errcheck // nil is an answer
	return o
}

// parts splits the recorded name of a step into the names of the step and of its part.
func parts(name string) (step, part string) {
	step, part, _ = strings.Cut(name, ":")
	return step, part
}

func (o *origin) line(level slog.Level, event, message string) ports.LogLine {
	line := o.log.newLine(level, event, message)
	line.Execution, line.StepExecution, line.Step, line.Part = o.execution, o.stepExecution, o.step, o.part
	return line
}

func (l *Log) newLine(level slog.Level, event, message string) ports.LogLine {
	return ports.LogLine{
		Process: l.process, Writer: l.writer, Level: level, At: time.Now().UTC(), Event: event, Message: cut(l.config.Mask(message), maxMessage),
	}
}

// lineOf returns the line of an event; ok is false if it belongs to no execution.
func (l *Log) lineOf(ctx context.Context, from core.Line) (line ports.LogLine, ok bool) {
	line = l.newLine(from.Level, from.Event, from.Message)
	values := newValues(l.config.Mask)
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
	if o := originOf(ctx); o != nil && o.log == l && (line.Execution == 0 || line.Execution == o.execution) {
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
		values := newValues(l.config.Mask)
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

type cause struct{ text, kind string }

// chain is an error with its causes, the first one first. A cause with the text of the one before is left out.
type chain struct {
	mask   func(string) string
	seen   string
	causes []cause
}

func (c *chain) walk(err error) {
	if err == nil || len(c.causes) >= maxCauses {
		return
	}
	if text := c.mask(err.Error()); text != c.seen && text != "" {
		c.causes = append(c.causes, cause{cut(text, maxValue), fmt.Sprintf("%T", err)})
		c.seen = text
	}
	switch wrapped := err.(type) { //nolint:errorlint // each error of the chain is visited
	case interface{ Unwrap() error }:
		c.walk(wrapped.Unwrap())
	case interface{ Unwrap() []error }:
		for _, one := range wrapped.Unwrap() {
			c.walk(one)
		}
	}
}

// values encodes attributes as a JSON object.
type values struct {
	mask func(string) string
	buf  bytes.Buffer
	n    int
}

func newValues(mask func(string) string) *values { return &values{mask: mask} }

func (v *values) add(a slog.Attr) {
	value := a.Value.Resolve()
	if value.Kind() == slog.KindGroup && a.Key == "" {
		for _, inner := range value.Group() {
			v.add(inner)
		}
		return
	}
	if v.n++; a.Key == "" || v.n > maxValues {
		return
	}
	v.separate()
	v.buf.Write(quoted(a.Key))
	v.buf.WriteByte(':')
	v.buf.Write(v.encode(value))
}

func (v *values) separate() {
	if v.buf.Len() == 0 {
		v.buf.WriteByte('{')
		return
	}
	v.buf.WriteByte(',')
}

func (v *values) encode(value slog.Value) []byte {
	switch value.Kind() {
	case slog.KindGroup:
		inner := newValues(v.mask)
		for _, a := range value.Group() {
			inner.add(a)
		}
		if inner.buf.Len() == 0 {
			return []byte("{}")
		}
		return []byte(inner.text())
	case slog.KindBool, slog.KindInt64, slog.KindUint64, slog.KindFloat64, slog.KindTime:
		if text, err := json.Marshal(value.Any()); err == nil {
			return text
		}
	case slog.KindAny:
		switch value.Any().(type) {
		case error, fmt.Stringer:
		default:
			text, err := json.Marshal(value.Any())
			if masked := v.mask(string(text)); err == nil && len(masked) <= maxValue && json.Valid([]byte(masked)) {
				return []byte(masked)
			}
		}
	case slog.KindString, slog.KindDuration, slog.KindLogValuer:
	}
	return quoted(cut(v.mask(value.String()), maxValue))
}

func quoted(text string) []byte {
	b, err := json.Marshal(text)
	if err != nil { // cannot happen
		return []byte(`""`)
	}
	return b
}

func (v *values) text() string {
	if v.buf.Len() == 0 {
		return ""
	}
	return v.buf.String() + "}"
}

// cut shortens a text, which is masked.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}
