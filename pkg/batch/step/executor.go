package step

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/confine"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/place"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/txwork"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// lateTime bounds the fence of a step that could not renew its lease.
const lateTime = 5 * time.Second

// SimpleStepExecutor records the start of a step, runs it in the transaction of its propagation, and
// records its end: a model.StepExecutor.
//
// The transaction travels in the context (tx.From), so the step's components and the repository take
// part in it automatically. A success is recorded in the step's own transaction if that is a
// transaction of the repository's database: work and record commit together. A failure is recorded
// outside the transaction that it rolled back (rule T5). If it is unknown whether the work is
// committed, the step is UNKNOWN (rule C10).
//
// Between the work of a step and the record of its success, in this order and in the step's transaction
// if it has one: its gate is checked (model.Expecting), its listeners are notified (model.Listened), keys
// of its context are copied to the job's (model.Promoting), and its listeners are closed. Each of them
// can fail the step.
//
// A step that does not return within StopTimeout after its context has ended is abandoned: its
// transactions are rolled back and its guard row is fenced, so that it can commit nothing any more, and
// it is recorded as FAILED. Its goroutine cannot be killed and leaks; the record says so (rule L8). Its
// listeners are not notified: they may be the cause. The executor waits for a model.Composite.
type SimpleStepExecutor struct {
	// StopTimeout is defaultStopTimeout unless set before the first Execute.
	StopTimeout time.Duration
	// Places other than the disk; may be nil.
	Places *place.Set

	repository ports.Transitions
	database   string
	observer   core.Observer
}

// NewSimpleStepExecutor returns an executor. database is the name of the
// repository's database; observer may be nil.
func NewSimpleStepExecutor(repository ports.Transitions, database string, observer core.Observer) *SimpleStepExecutor {
	return &SimpleStepExecutor{
		StopTimeout: defaultStopTimeout, repository: repository, database: database, observer: core.Observers(observer),
	}
}

// Execute runs one attempt of a step. The returned record describes the step's work; the error concerns
// the record: core.ErrLostOwner in its chain if another owner has taken over, core.ErrStopped if a stop
// was requested before the step started, or the database's own.
//
// In a group the end may be left to the group's owner, in run.Deferred (rule T6).
func (e *SimpleStepExecutor) Execute(ctx context.Context, s model.Step, run *model.StepRun) (*core.StepExecution, error) {
	run.Services.Fill()
	ctx = place.With(confine.With(ctx, confine.New(run.Data.Job.Confinement)), e.Places)
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
	if errors.Is(end.err, ports.ErrParked) {
		return record, ports.ErrParked
	}
	if err := e.record(ctx, s.Kind(), run, end); err != nil {
		return record, fmt.Errorf("step %s: record its end: %w", name, err)
	}
	return record, nil
}

// start records the start: of a planned step, which has a record, or of a new one. In a group it does
// so outside its transaction if the database allows: the record exists whatever the group's outcome,
// and the row of the job, which heartbeats need, is not held until the group ends.
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

// limited runs the step within its timeout on a goroutine of its own, which works on a copy of the
// record until it returns.
func (e *SimpleStepExecutor) limited(ctx context.Context, s model.Step, run *model.StepRun) *ending {
	if limited, ok := s.(model.TimeLimited); ok && limited.Timeout() > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limited.Timeout(), fmt.Errorf("step %s exceeded its timeout of %v", run.RecordName(s), limited.Timeout()))
		defer cancel()
	}
	ctx, aborter := txwork.WithAborter(ctx)
	defer aborter.End()
	ctx = tx.WithHoldings(ctx, run.Services.Stop.Done(), core.ErrStopped)
	ctx = txwork.WithWork(ctx, fmt.Sprintf("execution %d of %s", run.Step.JobExecutionID, run.Step.JobName))
	a := &attempt{step: s, run: private(run), began: time.Now(), repository: e.repository, database: e.database, observer: e.observer}
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

// abandon disables a step that does not return: it ends its transactions, and raises the epoch of the
// guard row. The row's content is final then.
func (e *SimpleStepExecutor) abandon(ctx context.Context, s model.Step, run *model.StepRun, aborter *txwork.Aborter) *ending {
	failure := fmt.Errorf("step %s: %w (%w)", run.RecordName(s), ErrAbandoned, context.Cause(ctx))
	if err := aborter.Abort(); err != nil {
		failure = errors.Join(failure, err)
	}
	limit := recordTime
	if run.Services.Lease.Err() != nil { // the database cannot be reached, and the new owner raises the epoch
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

// fence raises the epoch of the step's row. In a group the step may have worked in the group's
// transaction, which must not commit any more; if that transaction also made the row, there is nothing
// else to fence.
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
