package step

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/confine"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// recordTime bounds the final update, written even if the step's context ended.
const recordTime = 30 * time.Second

// lateTime bounds the fence of a step that lost its lease.
const lateTime = 5 * time.Second

// Transactional steps work in one transaction that the executor opens; others own theirs.
type Transactional interface {
	Transaction() (*tx.Manager, tx.Attr)
}

// DefaultStopTimeout is how long a step may continue after its context ended.
const DefaultStopTimeout = 30 * time.Second

// SimpleStepExecutor records a step's start, runs it in the transaction of its propagation, and records its
// end.
//
// The transaction travels in the context (tx.From). A success is recorded in the step's transaction if that is
// of the repository's database; a failure outside the transaction it rolled back (rule T5); an unknown commit
// is UNKNOWN (rule C10).
//
// Before the record of success, in the step's transaction, in this order: gate (model.Expecting), listeners
// (model.Listened), promoted keys (model.Promoting), closing of listeners. Each can fail the step.
//
// A step that does not return within StopTimeout is abandoned and FAILED: its transactions are rolled back and
// its guard row is fenced, so it can commit nothing. Its goroutine leaks; the record says so (rule L8). Its
// listeners are not notified: they may be the cause. A model.Composite is waited for.
type SimpleStepExecutor struct {
	// StopTimeout is DefaultStopTimeout unless set before the first Execute.
	StopTimeout time.Duration

	repository ports.Transitions
	database   string
	observer   core.Observer
}

// NewSimpleStepExecutor returns an executor; database names the repository's; observer may be nil.
func NewSimpleStepExecutor(repository ports.Transitions, database string, observer core.Observer) *SimpleStepExecutor {
	return &SimpleStepExecutor{
		StopTimeout: DefaultStopTimeout, repository: repository, database: database, observer: core.Observers(observer),
	}
}

// Execute runs one attempt. The record describes the work; the error concerns the record: core.ErrLostOwner
// after a take-over, core.ErrStopped for a stop before the start, or the database's.
//
// In a group the end may be left in run.Deferred (rule T6).
func (e *SimpleStepExecutor) Execute(ctx context.Context, s model.Step, run *model.StepRun) (*core.StepExecution, error) {
	run.Services.Fill()
	ctx = confine.With(ctx, confine.New(run.Data.Job.Confinement))
	name := run.RecordName(s)
	if err := run.Services.Lease.Err(); err != nil {
		return nil, fmt.Errorf("step %s: not started: %w", name, err)
	}
	record, err := e.start(ctx, name, run)
	if err != nil {
		return nil, fmt.Errorf("step %s: start: %w", name, err)
	}
	run.Step = record
	run.Ref = ports.StepRef{ID: record.ID, Owner: record.Owner, Epoch: record.Epoch}
	if err := run.MarkDefinition(); err != nil {
		return nil, fmt.Errorf("step %s: start: %w", name, err)
	}
	working := ctx
	if !run.Data.Resumed {
		working = core.Enter(ctx, e.observer, core.StepStarted{Step: *record, Kind: s.Kind(), Restarted: run.Restarted()})
	}

	end := e.limited(working, s, run)
	if errors.Is(end.err, core.ErrParked) {
		return record, core.ErrParked
	}
	if err := e.record(ctx, s.Kind(), run, end); err != nil {
		return record, fmt.Errorf("step %s: record its end: %w", name, err)
	}
	return record, nil
}

// In a group the start is recorded outside its transaction if possible: the record exists whatever the
// outcome, and the job's row, which heartbeats need, is not held.
func (e *SimpleStepExecutor) start(ctx context.Context, name string, run *model.StepRun) (*core.StepExecution, error) {
	if run.Data.Group != nil {
		var outside bool
		ctx, outside = tx.Outside(ctx, e.database)
		run.StartedInGroup = !outside
	}
	if d := &run.Data; d.Planned == nil {
		return e.repository.StartStep(ctx, d.JobRef, ports.StepStart{Name: name, Visit: d.Visit, Earlier: d.Earlier, Before: d.Before})
	}
	record := run.Data.Planned.Clone()
	if record.Status == core.StatusStarted {
		return &record, nil
	}
	if err := run.Services.Plans.BeginStep(ctx, ports.StepRef{ID: record.ID, Owner: record.Owner, Epoch: record.Epoch}); err != nil {
		return nil, err
	}
	record.Status, record.StartedAt = core.StatusStarted, time.Now().UTC()
	return &record, nil
}

// ErrAbandoned means that a step did not return in time; its goroutine runs on, and can commit nothing.
var ErrAbandoned = errors.New("the step did not return in time; its goroutine still runs")

// limited runs the step on its own goroutine, which works on a copy of the record until it returns.
func (e *SimpleStepExecutor) limited(ctx context.Context, s model.Step, run *model.StepRun) *ending {
	if limited, ok := s.(model.TimeLimited); ok && limited.Timeout() > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limited.Timeout(), fmt.Errorf("step %s exceeded its timeout of %v", run.RecordName(s), limited.Timeout()))
		defer cancel()
	}
	ctx, aborter := tx.WithAborter(ctx)
	defer aborter.End()
	ctx = tx.WithHoldings(ctx, run.Services.Stop.Done(), core.ErrStopped)
	ctx = tx.WithWork(ctx, fmt.Sprintf("execution %d of %s", run.Step.JobExecutionID, run.Step.JobName))
	a := &attempt{executor: e, step: s, run: private(run), began: time.Now()}
	done := make(chan *ending, 1)
	go a.workAlone(ctx, func(end *ending) { done <- end })
	var end *ending
	returned := true
	if _, composite := s.(model.Composite); composite { // its steps are bounded by themselves
		end = <-done
	} else {
		end, returned = model.Await(ctx, done, e.StopTimeout, run.Services.Lease.Late(), func() { notifyLate(ctx, run, run.RecordName(s)) })
	}
	if !returned {
		a.abandon()
		return e.abandon(ctx, s, run, aborter)
	}
	*run.Step, run.Ref = *a.run.Step, a.run.Ref
	return end
}

func notifyLate(ctx context.Context, run *model.StepRun, step string) {
	run.Services.Observer.Observe(ctx, core.ComponentLate{
		Execution: run.Data.Job.ID, JobName: run.Data.Job.JobName, Step: step, Err: context.Cause(ctx),
	})
}

// abandon ends the step's transactions and raises the guard row's epoch: the row's content is final then.
func (e *SimpleStepExecutor) abandon(ctx context.Context, s model.Step, run *model.StepRun, aborter *tx.Aborter) *ending {
	failure := fmt.Errorf("step %s: %w (%w)", run.RecordName(s), ErrAbandoned, context.Cause(ctx))
	if err := aborter.Abort(); err != nil {
		failure = errors.Join(failure, err)
	}
	limit := recordTime
	if run.Services.Lease.Err() != nil { // unreachable; the new owner raises the epoch
		limit = lateTime
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	if err := e.fence(ctx, run, failure); err != nil {
		failure = errors.Join(failure, err)
	}
	end := &ending{err: failure, outcome: outcome{status: core.StatusFailed, exit: core.ExitFailed, message: failure.Error()}, part: true}
	end.toChange(run.Step, time.Now().UTC(), false)
	return end
}

// In a group the group's transaction must not commit either; if it made the row, nothing else needs a fence.
func (e *SimpleStepExecutor) fence(ctx context.Context, run *model.StepRun, failure error) error {
	if run.Data.Group != nil {
		if current, in := tx.From(ctx, run.Data.Group.Database); in {
			current.SetRollbackOnly(failure)
		}
		var ok bool
		if ctx, ok = tx.Outside(ctx, e.database); !ok {
			return nil
		}
	}
	var ref ports.StepRef
	var committed ports.Checkpoint
	err := run.Services.Lease.Record(ctx, func(ctx context.Context) (err error) {
		ref, committed, err = e.repository.Fence(ctx, run.Ref)
		return err
	})
	if err != nil {
		return err
	}
	run.Ref, run.Step.Epoch = ref, ref.Epoch
	run.Step.Counters, run.Step.Position = committed.Counters, committed.Position
	return nil
}
