package step

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// recordTime bounds the final update of a step, which is written even if the step's context has ended.
const recordTime = 30 * time.Second

// outcome is how a step ends.
type outcome struct {
	status        core.Status
	exit, message string
	// settles and keep are Settles and KeepCommitted of ports.StepChange.
	settles, keep bool
}

// ending is the end of an attempt.
type ending struct {
	outcome
	err      error            // why it failed or stopped; nil if it completed
	change   ports.StepChange // recorded, or to be recorded
	endedAt  time.Time
	promoted map[string]any
	recorded bool    // in the step's transaction, and committed with it
	success  *ending // recorded there before the commit failed
	part     bool    // of the group's transaction
}

// note adds another error to a failure. A stop with an error is a failure.
func (end *ending) note(err error) {
	if err == nil {
		return
	}
	end.err = fmt.Errorf("%w (%w)", end.err, err)
	end.message = end.err.Error()
	if end.status != core.StatusStopped {
		return
	}
	end.status = core.StatusFailed
	if end.exit == core.ExitStopped {
		end.exit = core.ExitFailed
	}
}

// keepStorable leaves out an exit code, results or a context that the record of a failure cannot hold,
// and notes the reason if that is not the failure itself.
func (end *ending) keepStorable(s *core.StepExecution) {
	if err := core.CheckExitCode(end.exit); err != nil {
		end.exit = exitOf(end.status)
		end.noteOnce(err)
	}
	s.ExitCode = end.exit
	end.noteOnce(plainResults(s))
	if err := contextFits(s); err != nil {
		s.Context = nil
		end.noteOnce(err)
	}
}

func (end *ending) noteOnce(err error) {
	if err != nil && !strings.Contains(end.err.Error(), err.Error()) {
		end.note(err)
	}
}

// toChange makes the recorded change. closed means that the attempt's goroutine has returned.
func (end *ending) toChange(s *core.StepExecution, at time.Time, closed bool) {
	end.endedAt = at
	end.change = ports.StepChange{
		To: end.status, ExitCode: end.exit, Error: end.message, Settles: end.settles, KeepCommitted: end.keep, Closed: closed,
		Counters: s.Counters, InHand: s.InHand, Gate: s.Gate, Context: s.Context, Out: s.Out, Part: s.Manager != 0,
	}
}

// applyTo writes the ending into the record, and the promoted values into the caller's view of the job.
func (end *ending) applyTo(run *model.StepRun) error {
	s := run.Step
	s.Status, s.ExitCode, s.Error, s.Settles, s.EndedAt = end.status, end.exit, end.message, end.settles, end.endedAt
	if len(end.promoted) > 0 && run.Data.Job.Context == nil {
		run.Data.Job.Context = core.NewExecutionContext()
	}
	var errs []error
	for key, value := range end.promoted {
		errs = append(errs, run.Data.Job.Context.Put(key, value))
	}
	return errors.Join(errs...)
}

// plainResults converts the results to the values that a restart would read. Those that cannot be
// stored are left out, with the reason.
func plainResults(s *core.StepExecution) (err error) {
	s.Out, err = core.Results(s.Out).Plain()
	return err
}

// contextFits reports a context that is too large to be stored.
func contextFits(s *core.StepExecution) error {
	if s.Context == nil {
		return nil
	}
	_, err := s.Context.Encode()
	return err
}

// exitOf is the default exit code of an ended status.
func exitOf(s core.Status) string {
	switch s {
	case core.StatusStopped:
		return core.ExitStopped
	case core.StatusUnknown:
		return core.ExitUnknown
	case core.StatusCompleted:
		return core.ExitCompleted
	case core.StatusStarting, core.StatusStarted, core.StatusParked, core.StatusStopping, core.StatusFailed, core.StatusAbandoned:
	}
	return core.ExitFailed
}
