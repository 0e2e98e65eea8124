package step

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/panics"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Transactional is implemented by steps that work in one transaction, which the executor opens. Steps
// without it own their transactions.
type Transactional interface {
	Transaction() (*tx.Manager, tx.Attr)
}

// attempt is one execution of a step, on the step's own goroutine until it returns.
type attempt struct {
	step  model.Step
	run   *model.StepRun // private
	began time.Time

	repository ports.Transitions
	database   string // of the repository
	observer   core.Observer

	// exit is the exit code that the step itself gave to its failure.
	exit      string
	listeners []any
	// pendingAfterStep are the listeners that were not notified of the end, in the order registered.
	pendingAfterStep []core.AfterStep
	// listening is the number of them that are listeners of the step; the others are components.
	listening int
	promoted  map[string]any
	success   *ending // as recorded in the step's transaction, before its commit
	// part means that the work is part of the group's transaction.
	part bool
	// atomic means that the work is in one transaction, which rolls back on failure.
	atomic bool

	mu        sync.Mutex
	abandoned bool
}

// abandon marks that the executor no longer waits for the attempt.
func (a *attempt) abandon() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.abandoned = true
}

// whileAwaited runs f unless the attempt is abandoned. f must be short: abandon waits for it.
func (a *attempt) whileAwaited(f func() error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.abandoned {
		return ErrAbandoned
	}
	return f()
}

// work runs the step and everything that belongs to it, except the record of an end that its own
// transaction has not recorded.
func (a *attempt) work(ctx context.Context) *ending {
	var end *ending
	err := a.listen(ctx)
	if err == nil {
		err = panics.Guard(func() (err error) {
			end, err = a.perform(ctx)
			return err
		})
	}
	switch {
	case err == nil:
		return end
	case errors.Is(err, ports.ErrParked), a.isReleased(err):
		return a.parked(ctx)
	}
	return a.failed(ctx, err)
}

// workAlone is work on a goroutine of its own; done is called however it ends.
func (a *attempt) workAlone(ctx context.Context, done func(end *ending)) {
	var end *ending
	panics.GuardGoroutine(func() error {
		end = a.work(ctx)
		return nil
	}, func(ended error) {
		if ended == nil {
			done(end)
			return
		}
		panics.GuardGoroutine(func() error {
			end = a.failed(ctx, ended)
			return nil
		}, func(again error) {
			if again != nil { // by a listener, or a Close
				end = &ending{err: ended, outcome: a.outcomeOf(ended), part: a.part, success: a.success}
				end.note(again)
				end.toChange(a.run.Step, a.now(), true)
			}
			done(end)
		})
	})
}

// isReleased reports whether the step returned so that another process continues it.
func (a *attempt) isReleased(err error) bool {
	signal, ok := a.run.Services.Stop.(model.ReleaseSignal)
	return ok && errors.Is(err, core.ErrStopped) && a.success == nil && signal.Releasing()
}

// parked leaves a step that waits for work of other processes: it is not over, and listeners, made
// again then, are notified of its end later.
func (a *attempt) parked(ctx context.Context) *ending {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	err := errors.Join(a.close(ctx), a.keepOutcome())
	if err == nil {
		err = a.repository.SaveStepContext(ctx, a.run.Ref, a.run.Step.Context)
	}
	if err != nil {
		return a.failed(ctx, err)
	}
	return &ending{err: ports.ErrParked}
}

// keepOutcome stores the outcome of the flow with a step of `finally`: the process that resumes it does
// not walk the flow again.
func (a *attempt) keepOutcome() error {
	if a.run.Data.Outcome == nil {
		return nil
	}
	text, err := model.EncodeOutcome(*a.run.Data.Outcome, a.run.Data.Job.Gate)
	if err != nil {
		return err
	}
	if a.run.Step.Context == nil {
		a.run.Step.Context = core.NewExecutionContext()
	}
	return a.run.Step.Context.Put(ports.OutcomeKey, text)
}

// performOnce runs the step in its transaction, with everything that decides whether the transaction
// commits.
func (a *attempt) performOnce(ctx context.Context) (*ending, error) {
	a.part = true
	transactional, ok := a.step.(Transactional)
	if !ok {
		end, err := a.complete(ctx, tx.Attr{})
		return end, causeOf(ctx, err)
	}
	manager, attr := transactional.Transaction()
	database := manager.Database().Name()
	a.part = a.run.Data.Group != nil && a.run.Data.Group.Database == database && joins(attr.Propagation)
	a.atomic = inTransaction(attr.Propagation)
	var end *ending
	err := manager.Do(ctx, attr, func(ctx context.Context) (err error) {
		if end, err = a.complete(ctx, attr); err != nil {
			return err
		}
		if err = a.recordInside(ctx, database, end); err != nil {
			end = nil
		}
		return err
	})
	if err != nil && end != nil {
		err = a.resolveUnknownCommit(attr, err)
	}
	return end, causeOf(ctx, err)
}

// joins reports whether work in a transaction becomes part of it.
func joins(p tx.Propagation) bool {
	switch p {
	case "", tx.Required, tx.Nested, tx.Supports, tx.Mandatory:
		return true
	case tx.RequiresNew, tx.NotSupported, tx.Never:
	}
	return false
}

// inTransaction reports whether work is in a transaction, with or without an outer one.
func inTransaction(p tx.Propagation) bool {
	switch p {
	case "", tx.Required, tx.RequiresNew, tx.Nested, tx.Mandatory:
		return true
	case tx.Supports, tx.NotSupported, tx.Never:
	}
	return false
}

// complete does the work, and everything between the work of a step and the record of its success.
func (a *attempt) complete(ctx context.Context, attr tx.Attr) (*ending, error) {
	if err := safely(ctx, a.step, a.run); err != nil {
		a.exit = a.run.Step.ExitCode
		return nil, err
	}
	if err := a.whileAwaited(func() error { return nil }); err != nil {
		return nil, err
	}
	if err := a.gate(ctx); err != nil {
		return nil, err
	}
	out := a.completed()
	exit, err := a.notify(ctx, out)
	if err != nil {
		return nil, err
	}
	out.exit, a.run.Step.ExitCode = exit, exit
	if err := a.promote(ctx, attr, exit); err != nil {
		return nil, err
	}
	if err := a.close(ctx); err != nil {
		return nil, err
	}
	if err := errors.Join(core.CheckExitCode(exit), contextFits(a.run.Step), plainResults(a.run.Step)); err != nil {
		return nil, err
	}
	end := &ending{outcome: out, part: a.part, promoted: a.promoted}
	end.toChange(a.run.Step, a.now(), true)
	return end, nil
}

// recordInside records the success in the step's transaction, if that is one of the repository's
// database.
func (a *attempt) recordInside(ctx context.Context, database string, end *ending) error {
	current, in := tx.From(ctx, a.database)
	if !in || database != a.database || current.ReadOnly() {
		return nil
	}
	answer, err := a.repository.EndStep(ctx, a.run.Ref, end.change)
	if err != nil {
		return err
	}
	if answer != core.Applied {
		return fmt.Errorf("its execution ended before its work (%s)", answer)
	}
	recorded := *end
	end.recorded, a.success = true, &recorded
	return nil
}

// resolveUnknownCommit marks the error of a failed COMMIT as an unknown outcome, unless the database
// reported a rollback, or the repository's row, which is part of the transaction, can be read (rule C10).
func (a *attempt) resolveUnknownCommit(attr tx.Attr, err error) error {
	var commit *tx.CommitError
	if !errors.As(err, &commit) || attr.ReadOnly || a.success != nil || errors.Is(err, tx.ErrRolledBack) || errors.Is(err, tx.ErrNotOwner) {
		return err
	}
	return fmt.Errorf("%w: %w", ports.ErrUnknownOutcome, err)
}

// failed ends an attempt after its work was rolled back, or did not happen. An abandoned attempt only
// closes its resources.
func (a *attempt) failed(ctx context.Context, failure error) *ending {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	if a.run.Data.Group != nil {
		ctx, _ = tx.Outside(ctx, a.run.Data.Group.Database) // that transaction is doomed
	}
	end := &ending{err: failure, outcome: a.outcomeOf(failure), part: a.part, success: a.success}
	if a.atomic && end.status != core.StatusUnknown {
		a.run.Step.InHand = a.run.Step.Counters
	}
	if a.whileAwaited(func() error { return nil }) == nil {
		a.promoted = nil
		for done := false; !done; {
			exit, err := a.notify(ctx, end.outcome)
			end.exit, done = exit, err == nil
			end.note(err)
		}
		if a.success == nil { // otherwise the row decides whether it is a failure
			end.note(a.promote(ctx, tx.Attr{}, end.exit))
		}
		end.promoted = a.promoted
	}
	end.note(a.close(ctx))
	end.keepStorable(a.run.Step)
	end.toChange(a.run.Step, a.now(), true)
	return end
}

// now is the time of the record's clock, which is the database's.
func (a *attempt) now() time.Time { return a.run.Step.StartedAt.Add(time.Since(a.began)) }

// causeOf replaces an error that only says that the context ended by the cause.
func causeOf(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if err == nil || cause == nil || errors.Is(err, cause) || !errors.Is(err, ctx.Err()) {
		return err
	}
	return fmt.Errorf("%w (%w)", cause, err)
}

// safely runs the step and turns a panic into an error, so that no step stays STARTED (rule C13).
func safely(ctx context.Context, s model.Step, run *model.StepRun) error {
	return panics.Guard(func() error { return s.Execute(ctx, run) })
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
	return !composite && a.run.Services.Checkpoints != nil && a.run.Services.Checkpoints.Database() == a.database
}
