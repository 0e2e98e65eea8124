package walk

import (
	"fmt"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Result is the result of an element or a flow.
type Result struct {
	Outcome core.Outcome
	// Unknown is the name of the element with an outcome that a plan does not know; empty means that
	// Outcome is known.
	Unknown string
	// Refused means that a plan reached a step that would be refused: the path ends there.
	Refused bool
	// Recorded means that the visit is a step execution, which holds its end.
	Recorded bool
}

// Known is the result of an element that ended with the outcome.
func Known(out core.Outcome) Result { return Result{Outcome: out} }

// Stopped is the result of an element that ended because of a stop request.
func Stopped(message string) Result {
	return Known(core.Outcome{Status: core.StatusStopped, ExitCode: core.ExitStopped, Message: message})
}

// Failed is the outcome of a flow that ended with an error.
func Failed(failure error) core.Outcome {
	return core.Outcome{Status: core.StatusFailed, ExitCode: core.ExitFailed, Message: failure.Error()}
}

func completed(exit string) Result {
	return Known(core.Outcome{Status: core.StatusCompleted, ExitCode: exit})
}

// IsStopped reports whether the element certainly ended STOPPED.
func (r Result) IsStopped() bool { return r.Unknown == "" && r.Outcome.Status == core.StatusStopped }

func (r Result) follow(at model.Element) (model.Target, bool) {
	return model.Next(at.Edges(), r.Outcome.Status, r.Outcome.ExitCode)
}

// Worst returns the result that decides for parallel branches.
func Worst(branches []Result) Result {
	r := branches[0]
	for _, b := range branches[1:] {
		if r.Unknown == "" {
			r.Unknown = b.Unknown
		}
		r.Outcome, r.Refused = model.Worse(r.Outcome, b.Outcome), r.Refused || b.Refused
	}
	return r
}

// StartLimitError refuses a step that was attempted as often as its start limit allows;
// core.ErrStartLimit is in its chain.
type StartLimitError struct {
	Step            string
	Attempts, Limit int
}

// Error names the step, its attempts and its limit.
func (e *StartLimitError) Error() string {
	return fmt.Sprintf("step %s was attempted %d times, its start_limit is %d: %v", e.Step, e.Attempts, e.Limit, core.ErrStartLimit)
}

// Unwrap returns core.ErrStartLimit.
func (e *StartLimitError) Unwrap() error { return core.ErrStartLimit }
