package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func (env *environment) report(err error) int {
	if err == nil {
		return ExitCompleted
	}
	known := &exitError{code: ExitFailed, err: err}
	if !errors.As(err, &known) {
		known = &exitError{code: operator.ExitCode(err), err: err}
		if errors.Is(err, core.ErrSchemaMissing) {
			known.hints = []string{"create or update it:  " + env.command("migrate")}
		}
	}
	if env.logsJSON() {
		logError(env.err, known.err, known.hints)
		return known.code
	}
	var b strings.Builder
	for _, e := range splitJoined(known.err) {
		b.WriteString(env.err.paint(errorStyle(), env.app.Name+":") + " " + message(e) + "\n")
	}
	for _, h := range known.hints {
		b.WriteString("  " + h + "\n")
	}
	env.writeError(b.String())
	return known.code
}

func (env *environment) reportPanic(value any, stack []byte) int {
	err := fmt.Errorf("internal error: %v", value)
	if env.logsJSON() {
		logError(env.err, err, []string{string(stack)})
		return ExitFailed
	}
	code := env.report(err)
	if env.debug {
		env.writeError(string(stack))
	} else {
		env.writeError("  show the stack:  add --debug\n")
	}
	return code
}

func (env *environment) writeError(text string) {
	_, _ = env.err.Write([]byte(text)) //nolint:errcheck // the error output is the last place to report at
}

func wantsJSON(args, environ []string) bool {
	if i := slices.Index(args, "--log-format"); i >= 0 && i+1 < len(args) {
		return args[i+1] == "json"
	}
	if i := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--log-format=") }); i >= 0 {
		return args[i] == "--log-format=json"
	}
	return slices.Contains(environ, "SURFIN_LOG_FORMAT=json")
}

func (env *environment) logsJSON() bool {
	if env.log == nil && !env.json {
		s, err := env.loadSettings()
		env.json = err == nil && s.Log.Format == formatJSON // an error is reported by the command, or does not concern it
	}
	return env.json
}

func logError(w io.Writer, err error, hints []string) {
	log := newLogger(w, "info", "json")
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
