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
	exit   int // of the command
	named  int // its exit code if the refusal names the execution; 0 means exit
	status int // of HTTP
}

func reasons() []reasonRow {
	const conflict, wrong = http.StatusConflict, http.StatusUnprocessableEntity
	return []reasonRow{
		{refusal.Moved, exitFailed, 0, conflict},
		{refusal.Complete, exitRefused, exitFailed, conflict},
		{refusal.Running, exitRefused, 0, conflict},
		{refusal.Exclusive, exitRefused, 0, conflict},
		{refusal.Unknown, exitRefused, exitFailed, conflict},
		{refusal.NotRestartable, exitRefused, 0, conflict},
		{refusal.Abandoned, exitRefused, exitFailed, conflict},
		{refusal.NotNewest, exitRefused, 0, conflict},
		{refusal.IllegalState, exitRefused, exitFailed, conflict},
		{refusal.Changed, exitUsage, 0, conflict},
		{refusal.File, exitUsage, 0, conflict},
		{refusal.Parameters, exitUsage, 0, wrong},
		{refusal.Schema, exitFailed, 0, http.StatusServiceUnavailable},
		{refusal.From, exitUsage, 0, conflict},
		{refusal.NotFound, exitUsage, 0, http.StatusNotFound},
		{refusal.NoSuchJob, exitUsage, 0, http.StatusNotFound},
		{refusal.Over, exitFailed, 0, conflict},
		{refusal.NoIncrementer, exitFailed, 0, conflict},
		{refusal.StartLimit, exitRefused, 0, conflict},
		{refusal.Redrive, exitUsage, 0, conflict},
		{refusal.NothingSkipped, exitRefused, 0, conflict},
		{refusal.WhichStep, exitUsage, 0, conflict},
		{refusal.Items, exitUsage, 0, conflict},
		{refusal.KeyReused, exitRefused, 0, wrong},
		{refusal.Invalid, exitUsage, 0, wrong},
		{refusal.UnknownType, exitUsage, 0, wrong},
		{refusal.OtherSubmission, exitRefused, 0, conflict},
	}
}

func isA[T error](err error) bool {
	_, is := errors.AsType[T](err)
	return is
}

// reasonOf returns the reason of a launch's error: the first that fits. It is called for each row of a list.
func reasonOf(err error) Reason {
	switch {
	case err == nil:
		return ""
	case isA[*ports.MovedError](err):
		return refusal.Moved
	case isA[*ports.InstanceCompleteError](err):
		return refusal.Complete
	case isA[*ports.AlreadyRunningError](err):
		return refusal.Running
	case isA[*ports.ExclusiveError](err):
		return refusal.Exclusive
	case errors.Is(err, ports.ErrUnknownStatus):
		return refusal.Unknown
	case errors.Is(err, ports.ErrNotRestartable):
		return refusal.NotRestartable
	case errors.Is(err, ports.ErrAbandoned):
		return refusal.Abandoned
	case errors.Is(err, ports.ErrNotMostRecent):
		return refusal.NotNewest
	case errors.Is(err, ports.ErrIllegalState), errors.Is(err, ports.ErrUnreadable):
		return refusal.IllegalState
	case isA[*jobfile.ChangedError](err):
		return refusal.Changed
	case isA[jobfile.Problems](err):
		return refusal.File
	case isA[*ports.ParameterError](err), isA[*ports.FormerInstanceError](err):
		return refusal.Parameters
	case errors.Is(err, core.ErrSchemaMissing):
		return refusal.Schema
	case errors.Is(err, journal.ErrNotFrom):
		return refusal.From
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
	newest := ports.NewestAttempt{Execution: *last}
	refused := reasonOf(newest.Refusal(restartable))
	return !slices.Contains([]Reason{refusal.Complete, refusal.Abandoned, refusal.NotRestartable}, refused)
}
