package conformance_test

import (
	"errors"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

var errDecider = errors.New("the scenario says ERROR")

var errListener = errors.New("the scenario says that the listener throws")

// errConfig is a definition that was refused before anything ran.
var errConfig = errors.New("the definition is not valid")

// reasons are the words for the refusal of a launch or the failure of an execution, recognized by the types
// of errors.
func reasons() map[string]func(err error) bool {
	isErr := func(target error) func(error) bool {
		return func(err error) bool { return errors.Is(err, target) }
	}
	return map[string]func(err error) bool{
		"none":                      func(err error) bool { return err == nil },
		"instance_already_complete": is[*ports.InstanceCompleteError],
		"already_running":           is[*ports.AlreadyRunningError],
		"unknown_status":            isErr(ports.ErrUnknownStatus),
		"not_restartable":           isErr(ports.ErrNotRestartable),
		"not_most_recent":           isErr(ports.ErrNotMostRecent),
		"abandoned":                 isErr(ports.ErrAbandoned),
		"no_such_job":               isErr(ports.ErrNoSuchJob),
		"illegal_state":             isErr(ports.ErrIllegalState),
		"start_limit_exceeded":      isErr(ports.ErrStartLimit),
		"invalid_params":            is[*ports.ParameterError],
		"config_invalid":            isErr(errConfig),
		"no_incrementer":            isErr(ports.ErrNoIncrementer),
		"missing_key":               isErr(ports.ErrMissingKey),
		"decider_error":             isErr(errDecider),
		"no_matching_transition":    isErr(ports.ErrNoTransition),
		"interrupted":               isErr(core.ErrStopped),
		"not_found":                 isErr(core.ErrNotFound),
		"no_such_execution":         isErr(core.ErrNotFound),
		"repository_failed":         isErr(errRepository),
		"listener_failed":           isErr(errListener),
	}
}
