package runtime

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/runtime/engine"
	"github.com/surfin-batch/surfin/internal/workslot"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type execution struct {
	source   *taskSource
	tenure   *tenure
	delivery taskports.Delivery
	ctx      context.Context //nolint:containedctx // of the handler: who ends it is elsewhere
	end      context.CancelCauseFunc
	claimed  *taskports.Claimed // guarded by tenure.mu until it is claimed
	place    *heldSlot          // the place of its slot
}

func newExecution(ctx context.Context, t *tenure, d taskports.Delivery) *execution {
	e := &execution{source: t.source, tenure: t, delivery: d, place: newHeldSlot(t.source.slots)}
	e.ctx, e.end = context.WithCancelCause(workslot.WithStopping(workslot.WithSlot(ctx, e.place), t.source.stop))
	return e
}

// late: the handler did not return.
type result struct {
	outcome task.Outcome
	err     error
	late    bool
}

// recorded is false if the task was claimed but its end could not be recorded.
func (e *execution) work() (answer engine.Answer, recorded bool) {
	claimed, answer, err := e.claim()
	if err != nil {
		e.report("failed", fmt.Errorf("claim: %w", err))
	}
	if claimed == nil {
		return answer, true
	}
	e.tenure.claim(e, claimed)
	e.report("taken", nil)
	r := e.execute()
	return engine.Done(), e.record(r)
}

// claim repeats the claim if the reply was lost.
func (e *execution) claim() (claimed *taskports.Claimed, answer engine.Answer, err error) {
	var given core.Answer
	err = e.tenure.keeper.Record(e.ctx, func(ctx context.Context) (err error) {
		claimed, given, err = e.begin(ctx)
		return err
	})
	switch {
	case err == nil && claimed != nil:
		return claimed, engine.Done(), nil
	case err == nil && given == core.Applied: // over its budget: it has ended
		return nil, engine.Done(), nil
	case err == nil, isRefused(err):
		return nil, engine.Drop(), nil
	case lacksDecider(err):
		e.report("refused", err)
		return nil, pauseOf(unknownPause), nil
	case e.ctx.Err() != nil:
		return nil, engine.RetryAfter(0), nil
	}
	return nil, pauseOf(e.source.config.Poll), err
}

func (e *execution) begin(ctx context.Context) (*taskports.Claimed, core.Answer, error) {
	executions := e.source.tasks.Executions
	if ownWorker(e.delivery.Type) != "" {
		return executions.Start(ctx, e.delivery, e.source.claimant())
	}
	return executions.Claim(ctx, e.delivery, e.source.claimant())
}

func lacksDecider(err error) bool {
	_, lacks := errors.AsType[*taskports.NoDeciderError](err)
	return lacks
}

func isRefused(err error) bool {
	_, refused := errors.AsType[*core.TransitionError](err)
	return refused || errors.Is(err, core.ErrNotFound) || errors.Is(err, core.ErrLostOwner)
}

func (e *execution) execute() result {
	t := e.claimed.Task
	for _, limit := range []struct {
		after time.Duration
		cause error
	}{{t.Spec.Timeout, task.ErrTimeout}, {e.claimed.Deadline, task.ErrDeadline}} {
		if limit.after > 0 {
			timer := time.AfterFunc(limit.after, func() { e.end(limit.cause) })
			defer timer.Stop()
		}
	}
	handler := e.source.handlers[t.Spec.Type]
	done := model.Go(func() (task.Outcome, error) { return handler.Execute(model.WithPatience(e.ctx, e.tenure.keeper), t) })
	select {
	case r := <-done:
		return result{outcome: r.Value, err: r.Err}
	case <-e.ctx.Done():
	}
	if cause, cut := errors.AsType[*model.LeaseError](context.Cause(e.ctx)); cut {
		e.report("aborted", cause)
	}
	grace := e.source.tasks.LeaveBehind
	if _, bounded := handler.(model.Composite); bounded {
		grace = math.MaxInt64
	}
	if r, ok := model.Await(e.ctx, done, grace, e.tenure.keeper.Late(), e.notifyLate); ok {
		return result{outcome: r.Value, err: r.Err}
	}
	return result{late: true, err: errors.New("the handler did not return in time; its goroutine still runs")}
}

// The command then ends its process.
func (e *execution) notifyLate() {
	e.source.tasks.Observer.Observe(context.WithoutCancel(e.ctx), core.ComponentLate{
		Task: int64(e.claimed.Task.ID), TaskType: e.claimed.Task.Spec.Type, Err: context.Cause(e.ctx),
	})
}

// record tries as long as the lease lasts.
func (e *execution) record(r result) (recorded bool) {
	cause := context.Cause(e.ctx)
	if r.late && e.tenure.keeper.Err() == nil {
		defer e.notifyLate()
	}
	canceled := errors.Is(cause, task.ErrCanceled)
	if errors.Is(cause, core.ErrLostOwner) || canceled && r.late {
		e.report("lost", cause)
		return true
	}
	decide := e.decide
	if errors.Is(cause, task.ErrStopping) || errors.Is(r.err, task.ErrStopping) {
		decide = stopping
	}
	var ended taskports.Ended
	outcome := outcomeOf(r, cause)
	err := e.tenure.keeper.Record(context.WithoutCancel(e.ctx), func(ctx context.Context) (err error) {
		ended, err = e.endAttempt(ctx, outcome, decide)
		return err
	})
	switch {
	case canceled && (err == nil || isRefused(err)): // the end reports that the worker has released it
		e.report("canceled", nil)
		return true
	case isRefused(err):
		e.report("lost", err)
		return true
	case err != nil:
		e.report("failed", fmt.Errorf("record the outcome %s: %w", outcome.Kind, err))
		return false
	}
	e.source.config.Report(Event{Task: &e.claimed.Task, What: "ended", State: ended.State, Reason: outcome.Reason})
	return true
}

// The tasks that waited for this one are handed to the engine in the same
// transaction.
func (e *execution) endAttempt(ctx context.Context, outcome task.Outcome, decide taskports.Decide) (ended taskports.Ended, err error) {
	tasks := e.source.tasks
	if !e.claimed.Ref.Ordered {
		return tasks.Executions.End(ctx, e.claimed.Ref, outcome, decide)
	}
	var refused error
	attr := tx.Attr{}
	if tasks.Database.Dialect() == tx.Postgres {
		attr.Isolation = sql.LevelReadCommitted // it must see the tasks that ended while it waited for the lock of the group
	}
	err = tx.NewManager(tasks.Database).Do(ctx, attr, func(ctx context.Context) (err error) {
		refused = nil
		if ended, err = tasks.Executions.End(ctx, e.claimed.Ref, outcome, decide); isRefused(err) {
			refused = err // the rows that End has written stay
			return nil
		}
		if err != nil || len(ended.Opened) == 0 {
			return err
		}
		return tasks.Engine.Enqueue(ctx, taskDeliveries(ended.Opened)...)
	})
	return ended, errors.Join(err, refused)
}

// Work that finished after its time still counts as done.
func outcomeOf(r result, cause error) task.Outcome {
	outcome := taskports.OutcomeOf(r.outcome, r.err)
	if cause == nil || outcome.Kind == task.OutcomeSuccess {
		return outcome
	}
	outcome.TimedOut = errors.Is(cause, task.ErrTimeout) || errors.Is(cause, task.ErrDeadline)
	outcome.Fatal = false // an error during abort says nothing about another attempt
	if r.err == nil || !errors.Is(r.err, cause) {
		outcome.Reason = cause.Error() + ": " + outcome.Reason
	}
	return outcome
}

func (e *execution) decide(c task.Case) (string, task.Decision) {
	if c.Decider == "" {
		c.Decider = e.claimed.Decider
	}
	return e.source.decide(c)
}

func (e *execution) report(what string, err error) {
	t := &task.Task{ID: e.delivery.ID, Epoch: e.delivery.Epoch, Spec: task.Spec{Type: e.delivery.Type}}
	if e.claimed != nil {
		t = &e.claimed.Task
	}
	e.source.config.Report(Event{Task: t, What: what, Err: err})
}
