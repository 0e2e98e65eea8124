package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/guard"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// MakeDue implements taskports.Maintenance.
func (r *Repository) MakeDue(ctx context.Context, limit int) ([]taskports.Delivery, error) {
	return r.deliver(ctx, guard.Bulk{
		Move: taskports.MoveDue, Where: []guard.Condition{{SQL: r.sql("next_run_at <= {now}")}}, OrderBy: "next_run_at", Limit: limit, Set: r.delivering(),
	})
}

func (r *Repository) delivering() []guard.Assignment {
	return []guard.Assignment{guard.Set("worker", ""), guard.SetSQL("lease_until", "NULL"), guard.SetSQL("confirm_until", "NULL"), r.now("delivered_at"), r.now("updated_at")}
}

// deliver moves tasks so that they wait for a worker, and returns their deliveries.
func (r *Repository) deliver(ctx context.Context, b guard.Bulk) ([]taskports.Delivery, error) {
	var waiting []taskports.Delivery
	err := r.transact(ctx, func(ctx context.Context) error {
		moved, err := r.tasks.MoveAll(ctx, b)
		if err != nil || len(moved) == 0 {
			return err
		}
		ids := make([]int64, len(moved))
		for i, m := range moved {
			ids[i] = m.ID
		}
		waiting, err = r.byID(ctx, ids)
		return err
	})
	return waiting, err
}

// Confirm implements taskports.Maintenance.
func (r *Repository) Confirm(ctx context.Context, limit int) (int, error) {
	skip := ""
	if r.db.Dialect() == tx.Postgres {
		skip = " FOR UPDATE SKIP LOCKED"
	}
	n, err := r.exec(ctx, `UPDATE {task} SET continuation_state = ? WHERE id IN (SELECT id FROM {task}
		WHERE state = 'RUNNING' AND continuation_state = ? AND lease_until < {now} ORDER BY id LIMIT ?`+skip+`)`, confirming, notConfirming, limit)
	if err != nil {
		return 0, fmt.Errorf("mark overdue tasks: %w", err)
	}
	return int(n), nil
}

const lostOwner = "lost_owner"

// Reap implements taskports.Maintenance.
func (r *Repository) Reap(ctx context.Context, limit int, deciders []string, decide taskports.Decide) (int, error) {
	known, names := decidable("g.decider", deciders)
	var rows []taskRow
	err := r.scan(ctx, &rows, `SELECT t.id, t.epoch, t.worker FROM {task} t JOIN {task_group} g ON g.id = t.group_id
		WHERE t.state = 'RUNNING' AND t.continuation_state = ? AND t.confirm_until < {now} AND (t.deadline_at <= {now} OR `+known+`)
		ORDER BY t.id LIMIT ?`, append(append([]any{confirming}, names...), limit)...)
	if err != nil {
		return 0, fmt.Errorf("find tasks without an owner: %w", err)
	}
	n := 0
	for _, row := range rows {
		reaped, err := r.reap(ctx, taskports.Ref{ID: row.ID, Worker: row.Worker, Epoch: row.Epoch}, decide)
		if err != nil {
			return n, named(row.ID, err)
		}
		if reaped {
			n++
		}
	}
	return n, nil
}

// atOnce is the hint for the decider after the loss of a worker: the lease was delay enough.
const atOnce = `{"delay_ms": 0}`

// reap takes a task from its worker, unless the worker has confirmed meanwhile.
func (r *Repository) reap(ctx context.Context, ref taskports.Ref, decide taskports.Decide) (done bool, err error) {
	err = r.transact(ctx, func(ctx context.Context) error {
		ordered, err := r.lockOrdered(ctx, ref.ID)
		if err != nil {
			return err
		}
		lost := task.Failure("worker " + ref.Worker + " did not renew its lease").WithRetryHint(json.RawMessage(atOnce))
		e := ending{ref: ref, outcome: lost, trigger: lostOwner}
		e.reason = e.outcome.Reason
		if err := r.decide(ctx, &e, decide); err != nil {
			return err
		}
		e.move = taskports.MoveLose
		if e.decision.Dead {
			e.move = taskports.MoveLoseForGood
		}
		moved, refused := r.tasks.Move(ctx, guard.Request{
			ID: int64(ref.ID), Move: e.move, Epoch: ref.Epoch, Set: r.ending(e), Trigger: lostOwner,
			Where: []guard.Condition{ownedBy(ref.Worker), {
				SQL: r.sql("continuation_state = ? AND confirm_until < {now}"), Args: []any{confirming}, Reason: "its worker has confirmed",
			}},
		})
		if _, raced := errors.AsType[*core.TransitionError](refused); raced || moved.Answer != core.Applied {
			return nil
		}
		done = true
		var attempt task.AttemptID // the attempt that the decision is about
		if err := r.scan(ctx, &attempt, "SELECT id FROM {task_attempt} WHERE task_id = ? AND state = ?", ref.ID, taskports.AttemptRunning); err != nil {
			return err
		}
		if err := r.endLost(ctx, []task.ID{ref.ID}, e.reason); err != nil {
			return err
		}
		if err := r.decided(ctx, decision{ref.ID, attempt, lostOwner, e.policy, *e.decision, e.spent}); err != nil {
			return err
		}
		if err := r.audit(ctx, ref.ID, e.move, "reaper", moved.Current, moved.State, moved.Epoch, e.reason); err != nil {
			return err
		}
		if ordered && e.decision.Dead {
			if err := r.cancelWaiting(ctx, ref.ID, "reaper"); err != nil {
				return err
			}
		}
		return r.tasksMoved(ctx, ref.ID)
	})
	return done && err == nil, err
}

// ExpireDeadlines implements taskports.Maintenance.
func (r *Repository) ExpireDeadlines(ctx context.Context, limit int) (int, error) {
	const why = "the deadline of the group has passed"
	n := 0
	err := r.transact(ctx, func(ctx context.Context) error {
		ordered, inReach, err := r.lockOverdue(ctx, limit)
		if err != nil {
			return err
		}
		moved, err := r.tasks.MoveAll(ctx, guard.Bulk{
			Move: taskports.MoveDeadline, Where: []guard.Condition{{SQL: r.sql("deadline_at <= {now}")}, inReach}, OrderBy: "deadline_at", Limit: limit,
			Set: []guard.Assignment{guard.Set("last_error", why), r.now("updated_at"), guard.SetSQL("lease_until", "NULL")},
		})
		if err != nil {
			return err
		}
		ids := make([]task.ID, len(moved))
		for i, m := range moved {
			ids[i] = task.ID(m.ID)
		}
		spent, err := r.spentOf(ctx, ids)
		if err != nil {
			return err
		}
		for _, id := range ids {
			err := r.decided(ctx, decision{task: id, trigger: "deadline", policy: "budget", decision: task.MarkDead(why), spent: spent[id]})
			if err != nil {
				return err
			}
		}
		if n = len(moved); ordered {
			for _, id := range ids {
				if err := r.cancelWaiting(ctx, id, "deadline"); err != nil {
					return err
				}
			}
		}
		return r.tasksMoved(ctx, ids...)
	})
	return n, err
}

// spentOf returns the used part of the budgets of tasks past their deadline. Each group is counted
// once.
func (r *Repository) spentOf(ctx context.Context, ids []task.ID) (map[task.ID]task.Spent, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var rows []struct {
		ID           task.ID
		GroupID      task.GroupID
		Attempts     int
		CountedAfter task.AttemptID
		Budget       string
	}
	err := r.scan(ctx, &rows, "SELECT t.id, t.group_id, t.attempts, g.counted_after, g.budget FROM {task} t JOIN {task_group} g ON g.id = t.group_id WHERE t.id IN ?", ids)
	if err != nil {
		return nil, err
	}
	groups, all := map[task.GroupID]task.Spent{}, make(map[task.ID]task.Spent, len(rows))
	for _, row := range rows {
		spent, counted := groups[row.GroupID]
		if !counted {
			budget, err := (&taskGroup{ID: row.GroupID, Budget: row.Budget}).budget()
			if err != nil {
				return nil, err
			}
			if spent, err = r.spentBy(ctx, row.GroupID, row.CountedAfter, budget); err != nil {
				return nil, err
			}
			groups[row.GroupID] = spent
		}
		spent.Attempts, spent.Overdue = row.Attempts, true
		all[row.ID] = spent
	}
	return all, nil
}

// Waiting implements taskports.Maintenance.
func (r *Repository) Waiting(ctx context.Context, after time.Duration, limit int) ([]taskports.Delivery, error) {
	var rows []taskRow
	err := r.scan(ctx, &rows, `SELECT `+forDelivery+` FROM {task} WHERE state IN ('PENDING', 'ORPHANED')
		AND placement = '' AND delivered_at <= {later} AND (next_run_at IS NULL OR next_run_at <= {later}) ORDER BY delivered_at LIMIT ?`,
		-after.Microseconds(), -after.Microseconds(), limit)
	if err != nil {
		return nil, fmt.Errorf("find tasks that wait: %w", err)
	}
	return deliveries(rows), nil
}

// Redeliver implements taskports.Maintenance.
func (r *Repository) Redeliver(ctx context.Context, lost []taskports.Delivery) ([]taskports.Delivery, error) {
	var waiting []taskports.Delivery
	err := r.transact(ctx, func(ctx context.Context) error {
		var ids []int64
		for _, d := range lost {
			moved, err := r.moveFree(ctx, d, guard.Bulk{Move: taskports.MoveRedeliver, Set: r.delivering()})
			if err != nil {
				return err
			}
			if moved == nil {
				continue
			}
			ids = append(ids, int64(d.ID))
			if err := r.audit(ctx, d.ID, taskports.MoveRedeliver, "leader", moved.Before, task.Pending, moved.Epoch, "the engine lost its delivery"); err != nil {
				return err
			}
		}
		var err error
		waiting, err = r.byID(ctx, ids)
		return err
	})
	return waiting, err
}

// moveFree makes a move of one task in the epoch of a delivery; nil: it was refused, or another transaction has locked
// the row. It waits for none, so that the leader may move many tasks in one transaction.
func (r *Repository) moveFree(ctx context.Context, d taskports.Delivery, b guard.Bulk) (*guard.Moved[task.State], error) {
	b.Limit = 1
	b.Where = append([]guard.Condition{{SQL: "id = ? AND epoch = ?", Args: []any{d.ID, d.Epoch}}}, b.Where...)
	moved, err := r.tasks.MoveAll(ctx, b)
	if err != nil || len(moved) == 0 {
		return nil, named(d.ID, err)
	}
	return &moved[0], nil
}
