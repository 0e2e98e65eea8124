package tasks

import (
	"context"
	"encoding/json"
	"math/rand/v2"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/guard"
)

// endings decides about attempts that did not succeed, and records the decisions.
type endings struct {
	*moves
	order   order
	groups  groups
	waiters *waiters
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

// decide calls the decider, and chooses the transition by its decision.
func (r endings) decide(ctx context.Context, e *ending, decide taskports.Decide) error {
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
func (r endings) caseOf(ctx context.Context, ref taskports.Ref, o task.Outcome) (*task.Case, error) {
	var row struct {
		Row              taskRow `gorm:"embedded"`
		Budget           string
		Decider          string
		MaxTotalAttempts int64
		Stalled          bool
		CountedAfter     taskports.AttemptID
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
	if c.Budget, err = budgetOf(row.Row.GroupID, row.Budget); err != nil {
		return nil, err
	}
	if row.MaxTotalAttempts > 0 {
		if _, err := r.groups.lockGroup(ctx, row.Row.GroupID); err != nil {
			return nil, err
		}
	}
	if c.Spent, err = r.groups.spentBy(ctx, row.Row.GroupID, row.CountedAfter, c.Budget); err != nil {
		return nil, err
	}
	c.Spent.Attempts, c.Spent.Overdue = row.Row.Attempts, row.Overdue
	c.Spent.NoProgress++ // the attempt that ends now
	if c.Spent.NoProgress >= c.Budget.MaxNoProgress && !row.Stalled {
		_, err = r.exec(ctx, "UPDATE {task_group} SET stalled = TRUE WHERE id = ?", row.Row.GroupID)
	}
	return c, err
}

func (r endings) ending(e ending) []guard.Assignment {
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

type decision struct {
	task            task.ID
	attempt         taskports.AttemptID
	trigger, policy string
	decision        task.Decision
	spent           task.Spent
}

func (r endings) decided(ctx context.Context, d decision) error {
	said, err := json.Marshal(d.decision)
	if err != nil {
		return err
	}
	spent, err := json.Marshal(d.spent)
	if err != nil {
		return err
	}
	row := taskDecision{
		TaskID: d.task, AttemptID: orNil(d.attempt), Trigger: d.trigger, Policy: d.policy,
		Decision: r.mask(gormtx.ValidText(string(said))), Spent: string(spent), DecidedAt: gormtx.Clock(0),
	}
	return r.session(ctx).Create(&row).Error
}
