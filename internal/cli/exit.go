package cli

import (
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

// The exit codes of every command.
const (
	// ExitCompleted: success; a job COMPLETED, with any exit code of its own.
	ExitCompleted = 0
	// ExitFailed: the job FAILED and can be restarted; something outside the
	// command line is wrong (database, schema, SQL, a lost execution); or the
	// execution's status does not allow the command, or there is no next
	// instance, and nothing was changed.
	ExitFailed = 1
	// ExitUsage: the command line, settings, job file or parameters are wrong.
	// Nothing was run.
	ExitUsage = 2
	// ExitStopped: the job STOPPED on request and can be restarted.
	ExitStopped = 3
	// ExitRefused: the instance is complete, running, abandoned, unknown, or
	// not restartable. Nothing was run.
	ExitRefused = 4
	// ExitExpect: an `expect` does not hold; its exit code is EXPECT_FAILED.
	ExitExpect = 5
	// ExitLease: the process ended itself, since it could not renew a lease,
	// and a component did not return (rule L9). Nothing more is committed; the
	// execution is taken over like one of a dead process.
	ExitLease = 6
)

func exitCodeHelp() string {
	return `  0  completed
  1  failed: the job (restart it), or a database that it needs; or the status of
     the named execution does not allow the command, and nothing changed
  2  wrong usage, settings, job file or parameters; nothing was run
  3  stopped on request (restart it)
  4  refused: already complete, already running, or not restartable; nothing was run
  5  a gate failed: an expectation of the job does not hold (check, then restart it)
  6  the lease could not be renewed, and a component did not return: the process
     ended itself before another one could run the same work (restart it)
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

// Errors that draw their location in a file keep their lines.
func message(err error) string {
	var problems jobfile.Problems
	var setting *settings.Error
	if errors.As(err, &problems) || errors.As(err, &setting) {
		return err.Error()
	}
	return humanize.OneLine(err.Error())
}
