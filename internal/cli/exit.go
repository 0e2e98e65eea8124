package cli

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

// The exit codes of every command.
const (
	// ExitCompleted means that the command succeeded; a job COMPLETED, with any exit code of its
	// own.
	ExitCompleted = 0
	// ExitFailed means that the job FAILED and can be restarted; or that something outside the
	// command line is wrong: the database cannot be reached, its schema is missing, an SQL
	// statement failed, the process lost its execution to another one; or that the command does not
	// apply to the status of the named execution (stop of an ended one, abandon of one that runs or
	// completed, restart of one that neither failed nor stopped), or there is no next instance. In
	// that last group nothing was changed.
	ExitFailed = 1
	// ExitUsage means that the command line, the settings, the job file or the parameters are
	// wrong. Nothing was run.
	ExitUsage = 2
	// ExitStopped means that the job STOPPED on request and can be restarted.
	ExitStopped = 3
	// ExitRefused means that a launch was refused: the instance is complete, is running, was
	// abandoned, ended with an unknown outcome, or may not be restarted. Nothing was run.
	ExitRefused = 4
	// ExitExpect means that the job FAILED because of a gate: an `expect` of a step or of the job
	// does not hold. Its exit code is EXPECT_FAILED.
	ExitExpect = 5
	// ExitLease means that the process ended itself. It could not renew the lease of an execution,
	// or of a part, and a component did not return before the lease was over (rule L9). Nothing
	// more is committed; the execution is taken over like one of a dead process.
	ExitLease = 6
)

func exitCodeHelp() string {
	return `  0  completed
  1  failed: the job (restart it), or the database that it needs; or the command
     does not apply to the status of the named execution, and nothing changed
  2  wrong usage, settings, job file or parameters; nothing was run
  3  stopped on request (restart it)
  4  refused: already complete, already running, or not restartable; nothing was run
  5  a gate failed: an expectation of the job does not hold (check it, then restart)
  6  the lease could not be renewed, and a component did not return: the process
     ended itself before another process may run the same work (restart it)
`
}

type exitError struct {
	code  int
	err   error
	hints []string
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func usage(err error, hints ...string) error {
	var known *exitError
	if errors.As(err, &known) {
		return err
	}
	return &exitError{code: ExitUsage, err: err, hints: hints}
}

func usagef(format string, args ...any) error { return usage(fmt.Errorf(format, args...)) }

func (env *environment) report(err error) int {
	if err == nil {
		return ExitCompleted
	}
	known := &exitError{code: ExitFailed, err: err}
	if !errors.As(err, &known) {
		known = &exitError{code: operator.ExitCode(err), err: err, hints: env.hints(err)}
	}
	if env.logsJSON() {
		env.logError(known.err, known.hints)
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

func (env *environment) hints(err error) []string {
	if errors.Is(err, core.ErrSchemaMissing) {
		return []string{"create or update it:  " + env.command("migrate")}
	}
	return nil
}

// splitJoined returns the parts of a joined error: each gets its own line.
func splitJoined(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error }) // the outermost only
	if !ok || err.Error() != errors.Join(joined.Unwrap()...).Error() {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, splitJoined(e)...)
	}
	return all
}

// message returns the error on one line; errors that draw their location in a file keep their
// lines.
func message(err error) string {
	var problems jobfile.Problems
	var setting *settings.Error
	if errors.As(err, &problems) || errors.As(err, &setting) {
		return err.Error()
	}
	return oneLine(err.Error())
}

// oneLine joins the lines of a text: by a semicolon if a line ends like a sentence, so that the
// causes of a joined error can be distinguished.
func oneLine(text string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.Join(strings.Fields(line), " ")
		if line == "" {
			continue
		}
		if b.Len() > 0 {
			last, _ := utf8.DecodeLastRuneInString(b.String())
			if (unicode.IsLetter(last) || unicode.IsDigit(last) || last == ')') && line[0] != ')' {
				b.WriteByte(';')
			}
			b.WriteByte(' ')
		}
		b.WriteString(line)
	}
	return b.String()
}

// reportPanic reports a panic of the command line itself, or of code called outside an execution.
// The stack is shown on request.
func (env *environment) reportPanic(value any, stack []byte) int {
	err := fmt.Errorf("internal error: %v", value)
	if env.logsJSON() {
		env.logError(err, []string{string(stack)})
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
