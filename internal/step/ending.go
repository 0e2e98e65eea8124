package step

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

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

func (a *attempt) completed() outcome {
	return outcome{status: core.StatusCompleted, exit: cmp.Or(a.run.Step.ExitCode, core.ExitCompleted)}
}

// outcomeOf returns the outcome of a failure. The step's own exit code counts if the step gave it to
// this failure, not to a success that did not commit.
func (a *attempt) outcomeOf(failure error) outcome {
	switch {
	case errors.Is(failure, ports.ErrLostCommit) && errors.Is(failure, ports.ErrNoReply) && a.isJudgedHere():
		return outcome{status: core.StatusFailed, exit: cmp.Or(a.exit, core.ExitFailed), message: failure.Error(), keep: true}
	case errors.Is(failure, ports.ErrUnknownOutcome):
		lost := errors.Is(failure, ports.ErrLostCommit)
		return outcome{status: core.StatusUnknown, exit: cmp.Or(a.exit, core.ExitUnknown), message: failure.Error(), settles: lost, keep: lost && a.isJudgedHere()}
	case errors.Is(failure, ports.ErrExpect):
		return outcome{status: core.StatusFailed, exit: core.ExitExpectFailed, message: failure.Error()}
	case errors.Is(failure, core.ErrStopped), a.run.Stopping() && errors.Is(failure, context.Canceled):
		return outcome{status: core.StatusStopped, exit: cmp.Or(a.exit, core.ExitStopped), message: "stopped on request"}
	}
	return outcome{status: core.StatusFailed, exit: cmp.Or(a.exit, core.ExitFailed), message: failure.Error()}
}

// isJudgedHere reports whether the record of the step is its checkpoint. Then the record of its end
// waits for the transaction that may still commit, and the row's position and counters are final with
// it: the step has failed as if its process had died then (rule C10).
func (a *attempt) isJudgedHere() bool {
	_, composite := a.step.(model.Composite)
	return !composite && a.run.Services.Checkpoints != nil && a.run.Services.Checkpoints.Database() == a.executor.database
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
		Counters: s.Counters, InHand: s.InHand, Gate: s.Gate, Context: s.Context, Out: s.Out,
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

// record writes the final status outside the step's transaction, even if the step's context has ended.
// A failure that finds the record COMPLETED by the attempt's own move is a success: it committed,
// although the commit was reported as failed (rule C10). Observers are notified of the end when it is
// committed (rule R7); the group notifies them of an end that it records later.
func (e *SimpleStepExecutor) record(ctx context.Context, kind string, run *model.StepRun, end *ending) error {
	if end.recorded {
		err := end.applyTo(run)
		e.ended(ctx, kind, run, end)
		return err
	}
	ctx = context.WithoutCancel(ctx)
	if run.Data.Group != nil {
		var later bool
		if ctx, later = e.inGroup(ctx, end); later {
			run.Deferred = &model.DeferredEnd{Ref: run.Ref, Name: run.Step.Name, Change: end.change}
			return end.applyTo(run)
		}
	}
	err := e.write(ctx, run, end)
	if found, mine := ports.FoundIn(err); mine && found.IsOver() && end.success != nil {
		err, end.outcome, end.promoted, end.err = nil, end.success.outcome, end.success.promoted, nil
	}
	if err != nil {
		e.observer.Observe(ctx, core.EndNotRecorded{
			Execution: run.Step.JobExecutionID, JobName: run.Step.JobName, Step: run.Step.Name, StepID: run.Step.ID, To: end.status, Err: err,
		})
		return errors.Join(err, end.err, end.applyTo(run))
	}
	err = end.applyTo(run)
	e.ended(ctx, kind, run, end)
	return err
}

// write writes the final status, again if the database cannot be reached (rule L9), but not in a
// transaction, which is lost with its connection.
func (e *SimpleStepExecutor) write(ctx context.Context, run *model.StepRun, end *ending) error {
	once := func(ctx context.Context) error {
		_, err := e.repository.EndStep(ctx, run.Ref, end.change)
		return err
	}
	if _, in := tx.From(ctx, e.database); !in {
		return run.Services.Lease.Record(ctx, once)
	}
	ctx, cancel := context.WithTimeout(ctx, recordTime)
	defer cancel()
	return once(ctx)
}

// ended notifies the observers of the end once the repository's transaction in ctx, such as a group's,
// is committed. If it is reported as not committed, the group records another end, or reports this one.
func (e *SimpleStepExecutor) ended(ctx context.Context, kind string, run *model.StepRun, end *ending) {
	ended := core.StepEnded{Step: *run.Step, Kind: kind, Err: end.err}
	tx.AtEnd(ctx, e.database, func(committed bool) {
		if !committed {
			run.Withheld = &ended
			return
		}
		e.observer.Observe(ctx, ended)
	})
}

// inGroup returns where to record the end of a step in a group (rule T6). An end that holds only if the
// group commits is recorded in its transaction, or after it; so is a failure, which would be rolled
// back with it. Work that is committed, or undone, independently of the group is recorded outside it if
// the database allows.
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
