package step

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// outcome is how a step ends.
type outcome struct {
	status        core.Status
	exit, message string
}

// ending is how an attempt is over.
type ending struct {
	outcome
	err      error           // why it failed or stopped; nil: it completed
	change   core.StepChange // what is recorded, or is to be
	endedAt  time.Time
	promoted map[string]any
	recorded bool    // in the step's transaction, and committed with it
	success  *ending // what had been recorded there, though the commit failed
	part     bool    // of the group's transaction
}

// completed is the outcome of work that succeeded.
func (a *attempt) completed() outcome {
	return outcome{status: core.StatusCompleted, exit: cmp.Or(a.run.Step.ExitCode, core.ExitCompleted)}
}

// outcomeOf is the outcome of a failure. An exit code of the step's own counts where
// the step gave it to this failure, not to a success that came to nothing.
func (a *attempt) outcomeOf(failure error) outcome {
	switch {
	case errors.Is(failure, core.ErrUnknownOutcome):
		return outcome{core.StatusUnknown, cmp.Or(a.exit, core.ExitUnknown), failure.Error()}
	case errors.Is(failure, core.ErrExpect):
		return outcome{core.StatusFailed, core.ExitExpectFailed, failure.Error()}
	case errors.Is(failure, core.ErrStopped), a.run.Stopping() && errors.Is(failure, context.Canceled):
		return outcome{core.StatusStopped, cmp.Or(a.exit, core.ExitStopped), "stopped on request"}
	}
	return outcome{core.StatusFailed, cmp.Or(a.exit, core.ExitFailed), failure.Error()}
}

// note adds what else went wrong to a failure. A stop in which something went wrong
// is a failure.
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

// seal makes the change of it.
// closed says that the attempt's goroutine has returned.
func (end *ending) seal(s *core.StepExecution, at time.Time, closed bool) {
	end.endedAt = at
	end.change = core.StepChange{
		To: end.status, ExitCode: end.exit, Error: end.message, Closed: closed,
		Counters: s.Counters, InHand: s.InHand, Gate: s.Gate, Context: s.Context, Out: s.Out,
	}
}

// fill writes the ending into the record, and what was promoted into the caller's
// view of the job.
func (end *ending) fill(run *core.StepRun) error {
	s := run.Step
	s.Status, s.ExitCode, s.Error, s.EndedAt = end.status, end.exit, end.message, end.endedAt
	if len(end.promoted) > 0 && run.Data.Job.Context == nil {
		run.Data.Job.Context = core.NewExecutionContext()
	}
	var errs []error
	for key, value := range end.promoted {
		errs = append(errs, run.Data.Job.Context.Put(key, value))
	}
	return errors.Join(errs...)
}

// record writes the final status outside of the step's transaction, even if the
// step's context has ended. A duplicate answer to a failure means that the success
// is committed after all, though the commit was reported as failed: the row decides
// (rule C10).
func (e *SimpleStepExecutor) record(ctx context.Context, run *core.StepRun, end *ending) error {
	if end.recorded {
		return end.fill(run)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	if run.Data.Group != nil {
		var later bool
		if ctx, later = e.inGroup(ctx, end); later {
			run.Deferred = &core.DeferredEnd{Ref: run.Ref, Name: run.Step.Name, Change: end.change}
			return end.fill(run)
		}
	}
	answer, err := e.repository.EndStep(ctx, run.Ref, end.change)
	if err != nil {
		return errors.Join(err, end.err, end.fill(run))
	}
	if answer == core.Duplicate && end.success != nil {
		end.outcome, end.promoted, end.err = end.success.outcome, end.success.promoted, nil
	}
	return end.fill(run)
}

// inGroup says where the end of a step in a group is recorded (rule T6). What holds
// only if the group commits is recorded in its transaction, or after it; so is a
// failure, which would be rolled back with it. Work that is committed, or undone,
// whatever becomes of the group, is recorded outside of it where the database
// allows.
func (e *SimpleStepExecutor) inGroup(ctx context.Context, end *ending) (where context.Context, later bool) {
	outside, ok := tx.Outside(ctx, e.database)
	if end.err != nil {
		return outside, end.part || end.success == nil || !ok
	}
	if !end.part {
		return outside, false
	}
	current, in := tx.From(ctx, e.database)
	return ctx, !in || current.ReadOnly()
}
