package operator

import (
	"errors"
	"net/http"
	"slices"

	"github.com/surfin-batch/surfin/internal/job/journal"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const (
	exitFailed  = 1 // the act is not for the status of the named execution, or the database is not ready
	exitUsage   = 2 // the request is wrong
	exitRefused = 4 // the launch was refused
)

type reasonRow struct {
	reason Reason
	is     func(error) bool // an error of a launch that has the reason; may be nil
	exit   int              // of the command
	named  int              // its exit code if the refusal names the execution; 0 means exit
	status int              // of HTTP
}

// An error has the first reason that fits.
func reasons() []reasonRow {
	const conflict, wrong = http.StatusConflict, http.StatusUnprocessableEntity
	return []reasonRow{
		{refusal.Moved, asError[*ports.MovedError], exitFailed, 0, conflict},
		{refusal.Complete, asError[*ports.InstanceCompleteError], exitRefused, exitFailed, conflict},
		{refusal.Running, asError[*ports.AlreadyRunningError], exitRefused, 0, conflict},
		{refusal.Exclusive, asError[*ports.ExclusiveError], exitRefused, 0, conflict},
		{refusal.Unknown, isError(ports.ErrUnknownStatus), exitRefused, exitFailed, conflict},
		{refusal.NotRestartable, isError(ports.ErrNotRestartable), exitRefused, 0, conflict},
		{refusal.Abandoned, isError(ports.ErrAbandoned), exitRefused, exitFailed, conflict},
		{refusal.NotNewest, isError(ports.ErrNotMostRecent), exitRefused, 0, conflict},
		{refusal.IllegalState, func(err error) bool {
			return errors.Is(err, ports.ErrIllegalState) || errors.Is(err, ports.ErrUnreadable)
		}, exitRefused, exitFailed, conflict},
		{refusal.Changed, asError[*jobfile.ChangedError], exitUsage, 0, conflict},
		{refusal.File, asError[jobfile.Problems], exitUsage, 0, conflict},
		{refusal.Parameters, asError[*ports.ParameterError], exitUsage, 0, wrong},
		{refusal.Parameters, asError[*ports.FormerInstanceError], exitUsage, 0, wrong},
		{refusal.Schema, isError(core.ErrSchemaMissing), exitFailed, 0, http.StatusServiceUnavailable},
		{refusal.From, isError(journal.ErrNotFrom), exitUsage, 0, conflict},
		{refusal.NotFound, nil, exitUsage, 0, http.StatusNotFound},
		{refusal.NoSuchJob, nil, exitUsage, 0, http.StatusNotFound},
		{refusal.Over, nil, exitFailed, 0, conflict},
		{refusal.NoIncrementer, nil, exitFailed, 0, conflict},
		{refusal.StartLimit, nil, exitRefused, 0, conflict},
		{refusal.Redrive, nil, exitUsage, 0, conflict},
		{refusal.NothingSkipped, nil, exitRefused, 0, conflict},
		{refusal.WhichStep, nil, exitUsage, 0, conflict},
		{refusal.Items, nil, exitUsage, 0, conflict},
		{refusal.KeyReused, nil, exitRefused, 0, wrong},
		{refusal.Invalid, nil, exitUsage, 0, wrong},
		{refusal.UnknownType, nil, exitUsage, 0, wrong},
		{refusal.OtherSubmission, nil, exitRefused, 0, conflict},
	}
}

func asError[T error](err error) bool { return errors.As(err, new(T)) }

func isError(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func reasonOf(err error) Reason {
	for _, r := range reasons() {
		if r.is != nil && r.is(err) {
			return r.reason
		}
	}
	return ""
}

func rowOf(of Reason) reasonRow {
	all := reasons()
	return all[slices.IndexFunc(all, func(r reasonRow) bool { return r.reason == of })]
}

// HTTPStatus returns the status of the answer to a refused request.
func HTTPStatus(of Reason) int { return rowOf(of).status }

// ExitCode returns the exit code of the command for an error.
func ExitCode(err error) int {
	of := reasonOf(err)
	if r, refused := errors.AsType[*Refusal](err); refused {
		of = r.Reason
		if named := rowOf(of).named; r.Execution != 0 && named != 0 {
			return named
		}
	}
	switch {
	case of != "":
		return rowOf(of).exit
	case errors.Is(err, ports.ErrNoSuchJob):
		return exitUsage
	}
	return exitFailed
}

// The repository may still refuse it, if the instance runs or its outcome is
// unknown.
func continues(last *core.JobExecution, restartable bool) bool {
	refused := reasonOf(ports.NewestAttempt{Execution: *last}.Refusal(restartable))
	return !slices.Contains([]Reason{refusal.Complete, refusal.Abandoned, refusal.NotRestartable}, refused)
}
