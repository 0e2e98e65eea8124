package operator

import (
	"errors"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// reasonOf returns the reason of a refused launch; empty for any other error.
func reasonOf(err error) Reason {
	switch {
	case errors.As(err, new(*core.InstanceCompleteError)):
		return ReasonComplete
	case errors.As(err, new(*core.AlreadyRunningError)):
		return ReasonRunning
	case errors.As(err, new(*core.ExclusiveError)):
		return ReasonExclusive
	case errors.Is(err, core.ErrUnknownStatus):
		return ReasonUnknown
	case errors.Is(err, core.ErrNotRestartable):
		return ReasonNotRestartable
	case errors.Is(err, core.ErrAbandoned):
		return ReasonAbandoned
	case errors.Is(err, core.ErrNotMostRecent):
		return ReasonNotNewest
	case errors.Is(err, core.ErrIllegalState):
		return ReasonIllegalState
	case errors.As(err, new(*jobfile.ChangedError)):
		return ReasonChanged
	case errors.As(err, new(jobfile.Problems)):
		return ReasonFile
	case errors.As(err, new(*core.ParameterError)), errors.As(err, new(*core.FormerInstanceError)):
		return ReasonParameters
	case errors.Is(err, core.ErrSchemaMissing):
		return ReasonSchema
	case errors.Is(err, job.ErrNotFrom):
		return ReasonFrom
	}
	return ""
}
