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

type outcome struct {
	status        core.Status
	exit, message string
	settles, keep bool
}

type ending struct {
	outcome
	err      error
	change   ports.StepChange
	endedAt  time.Time
	promoted map[string]any
	recorded bool // committed with its transaction
	success  *ending
	part     bool // outcomeOf: the step's own exit code counts if given to this failure, not to a success that did not commit.
}

func (a *attempt) completed() outcome {
	return outcome{status: core.StatusCompleted, exit: cmp.Or(a.run.Step.ExitCode, core.ExitCompleted)}
}

func (a *attempt) outcomeOf(failure error) outcome {
	switch {
	case errors.Is(failure, core.ErrLostCommit) && errors.Is(failure, core.ErrNoReply) && a.isJudgedHere():
		return outcome{status: core.StatusFailed, exit: cmp.Or(a.exit, core.ExitFailed), message: failure.Error(), keep: true}
	case errors.Is(failure, core.ErrUnknownOutcome):
		lost := errors.Is(failure, core.ErrLostCommit)
		return outcome{status: core.StatusUnknown, exit: cmp.Or(a.exit, core.ExitUnknown), message: failure.Error(), settles: lost, keep: lost && a.isJudgedHere()}
	case errors.Is(failure, core.ErrExpect):
		return outcome{status: core.StatusFailed, exit: core.ExitExpectFailed, message: failure.Error()}
	case errors.Is(failure, core.ErrStopped), a.run.Stopping() && errors.Is(failure, context.Canceled):
		return outcome{status: core.StatusStopped, exit: cmp.Or(a.exit, core.ExitStopped), message: "stopped on request"}
	}
	return outcome{status: core.StatusFailed, exit: cmp.Or(a.exit, core.ExitFailed), message: failure.Error()}
}

// isJudgedHere: the record is its checkpoint. Its end waits for a transaction that may still commit, then
// position and counters are final, as if the process had died then (rule C10).
func (a *attempt) isJudgedHere() bool {
	_, composite := a.step.(model.Composite)
	return !composite && a.run.Services.Checkpoints != nil && a.run.Services.Checkpoints.Database() == a.executor.database
}

// A stop with an error is a failure.
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

func (end *ending) keepStorable(s *core.StepExecution) {
	if err := core.CheckExitCode(end.exit); err != nil {
		end.exit = core.ExitOf(end.status)
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

// closed: the attempt's goroutine has returned.
func (end *ending) toChange(s *core.StepExecution, at time.Time, closed bool) {
	end.endedAt = at
	end.change = ports.StepChange{
		To: end.status, ExitCode: end.exit, Error: end.message, Settles: end.settles, KeepCommitted: end.keep, Closed: closed,
		Counters: s.Counters, InHand: s.InHand, Gate: s.Gate, Context: s.Context, Out: s.Out,
	}
}

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

// record writes the final status even if the step's context ended. A failure that finds the attempt's own
// COMPLETED is a success: it committed (rule C10). Observers are notified on commit (rule R7), of a later end
// by the group.
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
	if found, mine := core.FoundIn(err); mine && found.IsOver() && end.success != nil {
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

// Repeated if the database cannot be reached (rule L9), but not in a transaction, which is lost with its
// connection.
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

// ended notifies observers after the commit of ctx's transaction. If that fails, the group records another
// end.
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

// inGroup (rule T6): an end that depends on the group's commit is recorded in its transaction or later; so is
// a failure. Independent work is recorded outside it if the database allows.
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
