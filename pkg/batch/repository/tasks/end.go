package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/guard"
)

func (r executions) End(ctx context.Context, ref taskports.Ref, o task.Outcome, decide taskports.Decide) (taskports.Ended, error) {
	var ended taskports.Ended
	var refused error
	within := r.transact
	if o.Kind == task.OutcomeSuccess && ref.Group == 0 && !slices.ContainsFunc(o.Artifacts, task.Artifact.IsLog) {
		within = func(ctx context.Context, f func(context.Context) error) error { return f(ctx) } // it is a single transition
	}
	err := within(ctx, func(ctx context.Context) (err error) {
		ended, refused = taskports.Ended{}, nil
		ended, refused, err = r.end(ctx, ref, o, decide)
		return err
	})
	if err != nil {
		return taskports.Ended{}, named(ref.ID, fmt.Errorf("end attempt %d: %w", ref.Attempt, err))
	}
	if errors.Is(refused, core.ErrLostOwner) || ended.State == task.Canceled {
		return ended, errors.Join(refused, r.noteRelease(ctx, ref))
	}
	return ended, refused
}

func (r executions) end(ctx context.Context, ref taskports.Ref, o task.Outcome, decide taskports.Decide) (taskports.Ended, error, error) {
	e := ending{ref: ref, outcome: o, move: taskports.MoveSucceed, reason: o.Reason, trigger: string(o.Kind)}
	if ref.Ordered {
		if _, err := r.groups.lockGroup(ctx, ref.Group); err != nil {
			return taskports.Ended{}, nil, err
		}
	}
	if o.Kind != task.OutcomeSuccess {
		if err := r.decide(ctx, &e, decide); err != nil {
			return taskports.Ended{}, nil, err
		}
	}
	ofAttempt, logs, err := r.endAttempt(e)
	if err != nil {
		return taskports.Ended{}, nil, err
	}
	moved, refused := r.tasks.Move(ctx, guard.Request{
		ID: int64(ref.ID), Move: e.move, Epoch: ref.Epoch, Where: []guard.Condition{ownedBy(ref.Worker)}, Set: r.ending(e),
		With: []guard.Step{ofAttempt}, Trigger: e.trigger,
	})
	ended := taskports.Ended{Answer: moved.Answer, State: moved.State, Decision: e.decision}
	if moved.Answer != core.Applied {
		return ended, refused, nil
	}
	if err := r.ended(ctx, e, logs); err != nil || ref.Group == 0 || !ended.State.IsOver() {
		return ended, nil, err
	}
	if ref.Ordered {
		if ended.Opened, err = r.order.settle(ctx, ref.ID, ended.State, ref.Worker); err != nil {
			return ended, nil, err
		}
	}
	return ended, nil, r.waiters.groupMoved(ctx, ref.Group)
}

// endAttempt returns the step that ends the running attempt and stores its outcome, and the log
// text that is stored separately.
func (r executions) endAttempt(e ending) (guard.Step, []taskLog, error) {
	state := taskports.AttemptSuccess
	if e.decision != nil {
		state = taskports.AttemptFailed
	}
	outcome := e.outcome
	var logs []taskLog
	outcome.Artifacts = nil
	for i, a := range e.outcome.Artifacts {
		if a.IsLog() {
			body := gormtx.Storable(r.mask(a.Text), maxLogBytes)
			logs = append(logs, taskLog{AttemptID: e.ref.Attempt, Ordinal: i, Kind: a.Kind, Body: &body, CreatedAt: gormtx.Clock(0)})
			a.Text = ""
		}
		outcome.Artifacts = append(outcome.Artifacts, a)
	}
	outcome.Reason = r.storable(outcome.Reason)
	text, err := json.Marshal(outcome)
	var ended int
	return guard.Step{
		SQL: r.sql(`UPDATE {task_attempt} SET state = ?, outcome = ?, reason = ?, ended_at = {now}
			WHERE id = ? AND task_id = (SELECT id FROM moved) AND state = ? RETURNING 1`),
		Args: []any{state, r.mask(string(text)), r.storable(e.reason), e.ref.Attempt, taskports.AttemptRunning}, Into: []any{&ended},
	}, logs, err
}

// ended stores the log text of an attempt, and the reason of the decision.
func (r executions) ended(ctx context.Context, e ending, logs []taskLog) error {
	if len(logs) > 0 {
		if err := r.session(ctx).Create(&logs).Error; err != nil {
			return err
		}
	}
	if e.decision == nil {
		return nil
	}
	return r.decided(ctx, decision{e.ref.ID, e.ref.Attempt, e.trigger, e.policy, *e.decision, e.spent})
}

// noteRelease notes that a worker has stopped work on a task that was taken from it: the task may run
// again before the lease expires.
func (r executions) noteRelease(ctx context.Context, ref taskports.Ref) error {
	_, err := r.exec(ctx, `UPDATE {task} SET lease_until = NULL, confirm_until = NULL, next_run_at = CASE WHEN state = ? THEN {now} ELSE next_run_at END
		WHERE id = ? AND worker = ? AND (epoch = ? AND state = ? OR epoch = ? AND last_move = ?)`,
		task.RetryScheduled, ref.ID, ref.Worker, ref.Epoch, task.Canceled, ref.Epoch+1, taskports.MoveRerunLater)
	return named(ref.ID, err)
}
