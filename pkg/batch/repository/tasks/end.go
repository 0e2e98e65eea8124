package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/guard"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// End implements taskports.Executions.
func (r *Repository) End(ctx context.Context, ref taskports.Ref, o task.Outcome, decide taskports.Decide) (taskports.Ended, error) {
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

func (r *Repository) end(ctx context.Context, ref taskports.Ref, o task.Outcome, decide taskports.Decide) (taskports.Ended, error, error) {
	e := ending{ref: ref, outcome: o, move: taskports.MoveSucceed, reason: o.Reason, trigger: string(o.Kind)}
	if ref.Ordered {
		if _, err := r.lockGroup(ctx, ref.Group); err != nil {
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
		if ended.Opened, err = r.settle(ctx, ref.ID, ended.State, ref.Worker); err != nil {
			return ended, nil, err
		}
	}
	return ended, nil, r.groupMoved(ctx, ref.Group)
}

type ending struct {
	ref             taskports.Ref
	outcome         task.Outcome
	move            string
	trigger, reason string
	decision        *task.Decision
	policy          string
	spent           task.Spent
}

func (r *Repository) ending(e ending) []guard.Assignment {
	set := []guard.Assignment{
		r.now("updated_at"), guard.SetSQL("lease_until", "NULL"), guard.SetSQL("confirm_until", "NULL"), guard.Set("continuation_state", notConfirming),
	}
	if e.decision == nil {
		return append(set, guard.Set("last_error", ""))
	}
	set = append(set, guard.Set("last_error", r.storable(lastError(e))))
	if !e.decision.Dead {
		set = append(set, r.later("next_run_at", e.decision.Delay))
	}
	return set
}

func lastError(e ending) string {
	switch {
	case e.decision.Dead && e.reason != "":
		return e.reason + " (" + e.decision.Reason + ")"
	case e.reason != "":
		return e.reason
	}
	return e.decision.Reason
}

// decide calls the decider, and chooses the transition by its decision.
func (r *Repository) decide(ctx context.Context, e *ending, decide taskports.Decide) error {
	c, err := r.caseOf(ctx, e.ref, e.outcome)
	if err != nil || c == nil {
		e.decision = &task.Decision{Dead: true, Reason: "the worker lost it"} // the transition will detect it
		e.move = taskports.MoveFail
		return err
	}
	policy, said := decide(*c)
	within := said.Within(*c)
	e.decision, e.policy, e.spent = &within, policy, c.Spent
	switch {
	case !within.Dead:
		e.move = taskports.MoveRetry
	case c.Spent.Overdue || e.outcome.TimedOut:
		e.move = taskports.MoveTimeOut
	default:
		e.move = taskports.MoveFail
	}
	return nil
}

// caseOf returns the case that a decider decides, or nil if the worker does not have the task any
// more. If the budget bounds the attempts of the group, it locks the group's row.
func (r *Repository) caseOf(ctx context.Context, ref taskports.Ref, o task.Outcome) (*task.Case, error) {
	var row struct {
		Row              taskRow `gorm:"embedded"`
		Budget           string
		Decider          string
		MaxTotalAttempts int64
		Stalled          bool
		CountedAfter     task.AttemptID
		Overdue          bool
	}
	err := r.scan(ctx, &row, `SELECT t.*, g.budget, g.decider, g.max_total_attempts, g.stalled, g.counted_after,
		CASE WHEN t.deadline_at IS NOT NULL AND t.deadline_at <= {now} THEN 1 ELSE 0 END = 1 AS overdue
		FROM {task} t JOIN {task_group} g ON g.id = t.group_id WHERE t.id = ? AND t.epoch = ? AND t.worker = ? AND t.state = ?`,
		ref.ID, ref.Epoch, ref.Worker, task.Running)
	if err != nil || row.Row.ID == 0 {
		return nil, err
	}
	c := &task.Case{Outcome: o, Decider: row.Decider, Random: rand.Float64()}
	record, err := row.Row.record()
	if err != nil {
		return nil, err
	}
	c.Task = *record
	if err := json.Unmarshal([]byte(row.Budget), &c.Budget); err != nil {
		return nil, fmt.Errorf("the stored budget of group %d: %w", row.Row.GroupID, err)
	}
	if row.MaxTotalAttempts > 0 {
		if _, err := r.lockGroup(ctx, row.Row.GroupID); err != nil {
			return nil, err
		}
	}
	if c.Spent, err = r.spentBy(ctx, row.Row.GroupID, row.CountedAfter, c.Budget); err != nil {
		return nil, err
	}
	c.Spent.Attempts, c.Spent.Overdue = row.Row.Attempts, row.Overdue
	c.Spent.NoProgress++ // the attempt that ends now
	if c.Spent.NoProgress >= c.Budget.MaxNoProgress && !row.Stalled {
		_, err = r.exec(ctx, "UPDATE {task_group} SET stalled = TRUE WHERE id = ?", row.Row.GroupID)
	}
	return c, err
}

// spentBy returns the part of its budget that a group has used, in attempts after the given one.
func (r *Repository) spentBy(ctx context.Context, group task.GroupID, after task.AttemptID, budget task.Budget) (task.Spent, error) {
	var s task.Spent
	err := r.scan(ctx, &s.TotalAttempts, "SELECT count(*) FROM {task_attempt} WHERE group_id = ? AND id > ?", group, after)
	if err != nil {
		return s, err
	}
	err = r.scan(ctx, &s.NoProgress, `SELECT count(*) FROM (SELECT 1 FROM {task_attempt} WHERE group_id = ? AND id > ? AND state = ? AND ended_at >
		COALESCE((SELECT max(ended_at) FROM {task_attempt} WHERE group_id = ? AND state = ?), `+r.longAgo()+`) LIMIT ?) AS failed`,
		group, after, taskports.AttemptFailed, group, taskports.AttemptSuccess, budget.Filled().MaxNoProgress)
	return s, err
}

func (r *Repository) longAgo() string {
	if r.db.Dialect() == tx.Postgres {
		return "CAST('epoch' AS timestamptz)"
	}
	return "0"
}

// endAttempt returns the step that ends the running attempt and stores its outcome, and the log
// text that is stored separately.
func (r *Repository) endAttempt(e ending) (guard.Step, []taskLog, error) {
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
		SQL: r.sql(`UPDATE {task_attempt} SET state = ?, outcome = ?, reason = ?, ended_at = {now} FROM moved
			WHERE {task_attempt}.id = ? AND {task_attempt}.task_id = moved.id AND {task_attempt}.state = ? RETURNING 1`),
		Args: []any{state, r.mask(string(text)), r.storable(e.reason), e.ref.Attempt, taskports.AttemptRunning}, Into: []any{&ended},
	}, logs, err
}

// ended stores the log text of an attempt, and the reason of the decision.
func (r *Repository) ended(ctx context.Context, e ending, logs []taskLog) error {
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

type decision struct {
	task            task.ID
	attempt         task.AttemptID
	trigger, policy string
	decision        task.Decision
	spent           task.Spent
}

func (r *Repository) decided(ctx context.Context, d decision) error {
	said, err := json.Marshal(d.decision)
	if err != nil {
		return err
	}
	spent, err := json.Marshal(d.spent)
	if err != nil {
		return err
	}
	row := taskDecision{TaskID: d.task, Trigger: d.trigger, Policy: d.policy, Decision: r.mask(gormtx.ValidText(string(said))), Spent: string(spent), DecidedAt: gormtx.Clock(0)}
	if d.attempt != 0 {
		row.AttemptID = &d.attempt
	}
	return r.session(ctx).Create(&row).Error
}

// noteRelease notes that a worker has stopped work on a task that was taken from it: the task may run
// again before the lease expires.
func (r *Repository) noteRelease(ctx context.Context, ref taskports.Ref) error {
	_, err := r.exec(ctx, `UPDATE {task} SET lease_until = NULL, confirm_until = NULL, next_run_at = CASE WHEN state = ? THEN {now} ELSE next_run_at END
		WHERE id = ? AND worker = ? AND (epoch = ? AND state = ? OR epoch = ? AND last_move = ?)`,
		task.RetryScheduled, ref.ID, ref.Worker, ref.Epoch, task.Canceled, ref.Epoch+1, taskports.MoveRerunLater)
	return named(ref.ID, err)
}
