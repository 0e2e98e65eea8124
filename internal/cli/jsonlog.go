package cli

import (
	"errors"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/jobfile"
)

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
