package cli

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type subject struct {
	job       string
	execution core.JobExecutionID
	step      string
}

type subjectKey struct{}

// subjectHandler adds to each record the job, the execution and the step of its event. Lines for
// people have them only if they differ from the previous line.
type subjectHandler struct{ slog.Handler }

func (h subjectHandler) Handle(ctx context.Context, r slog.Record) error {
	s, _ := ctx.Value(subjectKey{}).(subject)
	has := map[string]bool{}
	r.Attrs(func(a slog.Attr) bool { has[a.Key] = true; return true })
	add := func(a slog.Attr, known bool) {
		if known && !has[a.Key] {
			r.AddAttrs(a)
		}
	}
	r = r.Clone()
	add(slog.String("job", s.job), s.job != "")
	add(slog.Int64("execution", int64(s.execution)), s.execution != 0)
	add(slog.String("step", s.step), s.step != "")
	return h.Handler.Handle(ctx, r)
}

func (h subjectHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return subjectHandler{h.Handler.WithAttrs(attrs)}
}

func (h subjectHandler) WithGroup(name string) slog.Handler {
	return subjectHandler{h.Handler.WithGroup(name)}
}

// about returns ctx with the subject of an event. If the event lacks the name of the job, it is the
// one from the job's start.
func (l *eventLog) about(ctx context.Context, e core.Event) context.Context {
	s := subjectOf(e)
	l.mu.Lock()
	switch e := e.(type) {
	case core.JobStarted:
		l.names[e.Execution.ID] = e.Execution.JobName
	case core.JobEnded:
		delete(l.names, e.Execution.ID)
	}
	if s.job == "" {
		s.job = l.names[s.execution]
	}
	l.mu.Unlock()
	return context.WithValue(ctx, subjectKey{}, s)
}

func subjectOf(e core.Event) subject {
	switch e := e.(type) {
	case core.JobStarted:
		return subject{e.Execution.JobName, e.Execution.ID, ""}
	case core.JobEnded:
		return subject{e.Execution.JobName, e.Execution.ID, ""}
	case core.StepStarted:
		return subject{e.Step.JobName, e.Step.JobExecutionID, e.Step.Name}
	case core.StepPassed:
		return subject{e.Step.JobName, e.Execution, e.Step.Name}
	case core.StepEnded:
		return subject{e.Step.JobName, e.Step.JobExecutionID, e.Step.Name}
	case core.ChunkCommitted:
		return subject{e.JobName, e.Execution, e.Step}
	case core.ChunkRolledBack:
		return subject{e.JobName, e.Execution, e.Step}
	case core.Decided:
		return subject{e.JobName, e.Execution, ""}
	case core.TasksSubmitted:
		return subject{e.JobName, e.Execution, e.Step}
	case core.ElementSkipped:
		return subject{e.JobName, e.Execution, ""}
	case core.GateChecked:
		return subject{e.JobName, e.Execution, e.Step}
	case core.CloseFailed:
		return subject{e.JobName, e.Execution, e.Step}
	case core.ListenerFailed:
		return subject{e.JobName, e.Execution, e.Step}
	case core.EndNotRecorded:
		return subject{e.JobName, e.Execution, e.Step}
	case core.StopAsked:
		return subject{execution: e.Execution}
	case core.StopFailed:
		return subject{execution: e.Execution, step: e.Step}
	case core.OwnerLost:
		return subject{execution: e.Execution}
	case core.HeartbeatFailed:
		return subject{execution: e.Execution}
	case core.LaunchWaits:
		return subject{e.JobName, e.Execution, e.Step}
	case core.ComponentLate:
		return subject{execution: e.Execution, step: e.Step}
	}
	return subject{}
}

// jobEnded logs the end of a job. Lines for people leave it to the following summary or error.
func (l *eventLog) jobEnded(ctx context.Context, e core.JobEnded) {
	x := e.Execution
	attrs := []any{"job", x.JobName, "execution", int64(x.ID), "status", string(x.Status)}
	if !l.json {
		l.log.DebugContext(ctx, "job ended", attrs...)
		return
	}
	level := slog.LevelInfo
	attrs = append(attrs, "exit_code", x.ExitCode, "attempt", x.Attempt)
	if !x.StartedAt.IsZero() && x.EndedAt.After(x.StartedAt) {
		attrs = append(attrs, "duration_seconds", x.EndedAt.Sub(x.StartedAt).Seconds())
	}
	if x.Status == core.StatusFailed || x.Status == core.StatusUnknown {
		level, attrs = slog.LevelError, append(attrs, "error", oneLine(x.Error))
	}
	l.log.Log(ctx, level, "job ended", attrs...)
}

// wantsJSON reports whether the log is JSON according to the command line and the environment,
// before the settings are read.
func wantsJSON(args, environ []string) bool {
	if i := slices.Index(args, "--log-format"); i >= 0 && i+1 < len(args) {
		return args[i+1] == "json"
	}
	if i := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--log-format=") }); i >= 0 {
		return args[i] == "--log-format=json"
	}
	return slices.Contains(environ, "SURFIN_LOG_FORMAT=json")
}

// logsJSON reports whether the log is JSON, also if the command failed before it read the settings.
func (env *environment) logsJSON() bool {
	if env.log == nil && !env.json {
		s, err := env.loadSettings()
		env.json = err == nil && s.Log.Format == formatJSON // an error is reported by the command, or does not concern it
	}
	return env.json
}

// logError logs an error as records: one for each joined error and each problem of a file.
func (env *environment) logError(err error, hints []string) {
	log := newLogger(env.err, "info", "json")
	for _, e := range splitJoined(err) {
		var problems jobfile.Problems
		if !errors.As(e, &problems) {
			attrs := []any{}
			if len(hints) > 0 {
				attrs = append(attrs, "hints", hints)
			}
			log.Error(message(e), attrs...)
			continue
		}
		for _, p := range problems {
			log.Error(p.Msg, "file", p.File, "line", p.Line, "column", p.Col, "hint", p.Hint)
		}
	}
}
