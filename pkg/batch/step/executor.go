package step

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// recordTime bounds the final update of a step, which is written though the
// step's context has ended.
const recordTime = 30 * time.Second

// Transactional is implemented by steps whose work runs in one transaction,
// which the executor opens. Steps without it own their transactions.
type Transactional interface {
	Transaction() (*tx.Manager, tx.Attr)
}

// DefaultStopTimeout is how long a step may go on after its context has ended.
const DefaultStopTimeout = 30 * time.Second

// SimpleStepExecutor records the start of a step, runs it in the transaction that
// its propagation asks for, and records its end: a core.StepExecutor.
//
// The transaction travels in the context (tx.From), so that the step's
// components and the repository take part in it without being told. A success is
// recorded in the step's own transaction where that is a transaction of the
// repository's database: work and record commit together. A failure is recorded
// outside of the transaction that it rolled back (rule T5).
//
// A step that does not return within StopTimeout after its context has ended is
// abandoned: its transactions are rolled back and its guard row is fenced, so that
// it can commit nothing any more, and it is recorded as FAILED. Its goroutine
// cannot be killed and leaks; the record says so (rule L8).
type SimpleStepExecutor struct {
	// StopTimeout is DefaultStopTimeout unless set before the first Execute.
	StopTimeout time.Duration

	repository core.Transitions
	database   string
	observer   core.Observer
}

// NewSimpleStepExecutor returns an executor. database is the name of the
// repository's database; observer may be nil.
func NewSimpleStepExecutor(repository core.Transitions, database string, observer core.Observer) *SimpleStepExecutor {
	return &SimpleStepExecutor{
		StopTimeout: DefaultStopTimeout, repository: repository, database: database, observer: core.Observers(observer),
	}
}

// Execute runs one attempt of a step. What the step did is in the returned
// record; the error is about the record: core.ErrLostOwner in its chain if
// another owner has taken over, or the database's own.
func (e *SimpleStepExecutor) Execute(ctx context.Context, s core.Step, run *core.StepRun) (*core.StepExecution, error) {
	record, err := e.repository.StartStep(ctx, run.JobRef, s.Name(), run.Earlier)
	if err != nil {
		return nil, fmt.Errorf("step %s: start: %w", s.Name(), err)
	}
	run.Step = record
	run.Ref = core.StepRef{ID: record.ID, Owner: record.Owner, Epoch: record.Epoch}
	run.Observer = core.Observers(run.Observer)
	e.observer.Observe(ctx, core.StepStarted{Step: *record, Restarted: run.Restarted()})

	recorded, err := e.limited(ctx, s, run)
	if err != nil || !recorded {
		if err := e.end(ctx, run, err); err != nil {
			return record, fmt.Errorf("step %s: record its end: %w", s.Name(), err)
		}
	}
	e.observer.Observe(ctx, core.StepEnded{Step: *record, Err: err})
	return record, nil
}

// ErrAbandoned is in the chain of the failure of a step that did not return in
// time; its goroutine still runs, and can commit nothing.
var ErrAbandoned = errors.New("the step did not return in time; its goroutine is left behind")

// limited runs the step within its timeout on a goroutine of its own, which works
// on a copy of the record until it returns.
func (e *SimpleStepExecutor) limited(ctx context.Context, s core.Step, run *core.StepRun) (recorded bool, err error) {
	if limited, ok := s.(core.TimeLimited); ok && limited.Timeout() > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limited.Timeout(), fmt.Errorf("step %s ran into its timeout of %v", s.Name(), limited.Timeout()))
		defer cancel()
	}
	ctx, aborter := tx.WithAborter(ctx)
	own := private(run)
	record := own.Step
	done := make(chan func() (bool, error), 1)
	go func() {
		recorded, err := e.work(ctx, s, own)
		done <- func() (bool, error) { return recorded, err }
	}()
	select {
	case answer := <-done:
		*run.Step, run.Ref = *record, own.Ref
		return answer()
	case <-ctx.Done():
	}
	late := time.NewTimer(e.StopTimeout)
	defer late.Stop()
	select {
	case answer := <-done:
		*run.Step, run.Ref = *record, own.Ref
		return answer()
	case <-late.C:
		return false, e.abandon(ctx, s, run, aborter)
	}
}

// private is what a step's goroutine works on: nothing that it may change, or that
// others change when it is left behind, is shared with the executor and the flow.
func private(run *core.StepRun) *core.StepRun {
	own, job, record := *run, *run.Job, *run.Step
	if record.Context != nil {
		record.Context = record.Context.Clone()
	}
	own.Job, own.Step, own.Steps = &job, &record, maps.Clone(run.Steps)
	return &own
}

// abandon takes from a step that does not return what it could still do: its
// transactions, and the guard row, whose epoch is raised. What the row says then
// is final.
func (e *SimpleStepExecutor) abandon(ctx context.Context, s core.Step, run *core.StepRun, aborter *tx.Aborter) error {
	failure := fmt.Errorf("step %s: %w (%w)", s.Name(), ErrAbandoned, context.Cause(ctx))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	if err := aborter.Abort(); err != nil {
		failure = errors.Join(failure, err)
	}
	ref, committed, err := run.Checkpoints.Reclaim(ctx, run.Ref)
	if err != nil {
		return errors.Join(failure, err)
	}
	run.Ref, run.Step.Epoch = ref, ref.Epoch
	run.Step.Counters, run.Step.Position = committed.Counters, committed.Position
	return failure
}

// work runs the step; recorded says that its success is committed with its work.
func (e *SimpleStepExecutor) work(ctx context.Context, s core.Step, run *core.StepRun) (recorded bool, err error) {
	transactional, ok := s.(Transactional)
	if !ok {
		return false, causeOf(ctx, safely(ctx, s, run))
	}
	manager, attr := transactional.Transaction()
	err = manager.Do(ctx, attr, func(ctx context.Context) error {
		if err := safely(ctx, s, run); err != nil {
			return err
		}
		current, in := tx.From(ctx, e.database)
		if !in || current.ReadOnly() {
			return nil
		}
		recorded = true
		_, err := e.repository.EndStep(ctx, run.Ref, e.success(run))
		return err
	})
	return recorded && err == nil, causeOf(ctx, err)
}

// causeOf names why the context ended where that is all an error says.
func causeOf(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if err == nil || cause == nil || errors.Is(err, cause) || !errors.Is(err, ctx.Err()) {
		return err
	}
	return fmt.Errorf("%w (%w)", cause, err)
}

// end writes the final status outside of the step's transaction, even if the
// step's context has ended. A duplicate answer to a failure means that the
// success is committed after all, though the commit was reported as failed: the
// row decides (rule C10).
func (e *SimpleStepExecutor) end(ctx context.Context, run *core.StepRun, failure error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	change := e.success(run)
	if failure != nil {
		change = e.failure(run, failure)
	}
	answer, err := e.repository.EndStep(ctx, run.Ref, change)
	if err != nil {
		return errors.Join(err, failure)
	}
	if answer == core.Duplicate && failure != nil {
		e.success(run)
	}
	return nil
}

// success fills the record of a step that completed.
func (e *SimpleStepExecutor) success(run *core.StepRun) core.StepChange {
	if run.Step.ExitCode == "" || run.Step.Status != core.StatusStarted {
		run.Step.ExitCode = core.ExitCompleted
	}
	return e.change(run, core.StatusCompleted, "")
}

// failure fills the record of a step that failed or stopped.
func (e *SimpleStepExecutor) failure(run *core.StepRun, failure error) core.StepChange {
	if errors.Is(failure, core.ErrStopped) || (run.Stopping() && errors.Is(failure, context.Canceled)) {
		run.Step.ExitCode = core.ExitStopped
		return e.change(run, core.StatusStopped, "stopped on request")
	}
	run.Step.ExitCode = core.ExitFailed
	return e.change(run, core.StatusFailed, failure.Error())
}

func (e *SimpleStepExecutor) change(run *core.StepRun, to core.Status, message string) core.StepChange {
	s := run.Step
	s.Status, s.Error, s.EndedAt = to, message, time.Now().UTC()
	return core.StepChange{To: to, ExitCode: s.ExitCode, Error: message, Counters: s.Counters, Context: s.Context, Out: s.Out}
}

// safely runs the step and turns a panic into an error: it never leaves STARTED
// behind (rule C13).
func safely(ctx context.Context, s core.Step, run *core.StepRun) error {
	return exception.Guard(func() error { return s.Execute(ctx, run) })
}
