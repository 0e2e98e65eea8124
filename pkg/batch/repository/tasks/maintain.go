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
)

// maintenance implements taskports.Maintenance.
type maintenance struct{ endings }

func (r maintenance) MakeDue(ctx context.Context, limit int) ([]taskports.Delivery, error) {
	return r.deliver(ctx, guard.Bulk{
		Move: taskports.MoveDue, Where: []guard.Condition{{SQL: r.sql("next_run_at <= {now}")}}, OrderBy: "next_run_at", Limit: limit, Set: r.delivering(),
	})
}

func (r maintenance) Confirm(ctx context.Context, limit int) (int, error) {
	var marked []task.ID
	err := r.scan(ctx, &marked, `UPDATE {task} SET continuation_state = ? WHERE id IN (SELECT id FROM (SELECT id FROM {task}
		WHERE state = 'RUNNING' AND continuation_state = ? AND lease_until < {now} ORDER BY id LIMIT ?`+lockOn(r.db.Dialect(), "UPDATE SKIP LOCKED")+`) AS overdue) RETURNING id`,
		confirming, notConfirming, limit)
	if err != nil {
		return 0, fmt.Errorf("mark overdue tasks: %w", err)
	}
	return len(marked), nil
}

const lostOwner = "lost_owner"

func (r maintenance) Reap(ctx context.Context, limit int, deciders []string, decide taskports.Decide) (int, error) {
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
func (r maintenance) reap(ctx context.Context, ref taskports.Ref, decide taskports.Decide) (done bool, err error) {
	err = r.transact(ctx, func(ctx context.Context) error {
		ordered, err := r.order.lockOrdered(ctx, ref.ID)
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
		var attempt taskports.AttemptID // the attempt that the decision is about
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
			if err := r.order.cancelWaiting(ctx, ref.ID, "reaper"); err != nil {
				return err
			}
		}
		return r.waiters.tasksMoved(ctx, ref.ID)
	})
	return done && err == nil, err
}

func (r maintenance) ExpireDeadlines(ctx context.Context, limit int) (int, error) {
	const why = "the deadline of the group has passed"
	n := 0
	err := r.transact(ctx, func(ctx context.Context) error {
		ordered, inReach, err := r.order.lockOverdue(ctx, limit)
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
		ids := idsOf(moved)
		spent, err := r.groups.spentOf(ctx, ids)
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
				if err := r.order.cancelWaiting(ctx, id, "deadline"); err != nil {
					return err
				}
			}
		}
		return r.waiters.tasksMoved(ctx, ids...)
	})
	return n, err
}

func (r maintenance) Waiting(ctx context.Context, after time.Duration, limit int) ([]taskports.Delivery, error) {
	var rows []taskRow
	err := r.scan(ctx, &rows, `SELECT `+forDelivery+` FROM {task} WHERE state IN ('PENDING', 'ORPHANED')
		AND placement = '' AND delivered_at <= {later} AND (next_run_at IS NULL OR next_run_at <= {later}) ORDER BY delivered_at LIMIT ?`,
		-after.Microseconds(), -after.Microseconds(), limit)
	return deliveries(rows), wrapped(err, "find tasks that wait")
}

func (r maintenance) Redeliver(ctx context.Context, lost []taskports.Delivery) ([]taskports.Delivery, error) {
	var waiting []taskports.Delivery
	err := r.transact(ctx, func(ctx context.Context) error {
		var ids []task.ID
		for _, d := range lost {
			moved, err := r.moveFree(ctx, d, guard.Bulk{Move: taskports.MoveRedeliver, Set: r.delivering()})
			if err != nil {
				return err
			}
			if moved == nil {
				continue
			}
			ids = append(ids, d.ID)
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

func (r maintenance) OpenLeft(ctx context.Context, limit int) ([]taskports.Delivery, error) {
	var all []taskports.Delivery
	err := r.transact(ctx, func(ctx context.Context) error {
		var rows []taskRow
		var locked []task.GroupID
		err := r.scan(ctx, &rows, `SELECT DISTINCT n.id, n.group_id FROM {task} w JOIN {task_after} o ON o.task_id = w.id JOIN {task} n ON n.id = o.needs_id
			WHERE w.state = 'WAITING' AND (n.state IN ('FAILED', 'TIMED_OUT', 'CANCELED') OR n.state = 'SUCCEEDED' AND NOT EXISTS
			(SELECT 1 FROM {task_after} a JOIN {task} s ON s.id = a.needs_id WHERE a.task_id = w.id AND s.state <> 'SUCCEEDED')) ORDER BY n.id LIMIT ?`, limit)
		if err != nil {
			return err
		}
		var bounded []taskGroup
		err = r.scan(ctx, &bounded, `SELECT id, budget FROM {task_group} WHERE budget LIKE '%"parallel"%' AND id IN (SELECT group_id FROM {task} WHERE state = 'WAITING') ORDER BY id LIMIT ?`, limit)
		if err != nil || len(rows)+len(bounded) == 0 {
			return err
		}
		groups := make([]task.GroupID, 0, len(rows)+len(bounded))
		for _, row := range rows {
			groups = append(groups, row.GroupID)
		}
		for i := range bounded {
			groups = append(groups, bounded[i].ID)
		}
		if err := r.scan(ctx, &locked, "SELECT id FROM {task_group} WHERE id IN ? ORDER BY id{lock}", groups); err != nil {
			return err
		}
		for _, row := range rows {
			var state task.State
			if err := r.scan(ctx, &state, "SELECT state FROM {task} WHERE id = ?", row.ID); err != nil {
				return err
			}
			if !state.IsOver() {
				continue // it was run again before its group was locked
			}
			opened, err := r.order.settle(ctx, row.ID, state, "leader")
			if err != nil {
				return err
			}
			if all = append(all, opened...); state != task.Succeeded {
				if err := r.waiters.groupMoved(ctx, row.GroupID); err != nil {
					return err
				}
			}
		}
		for i := range bounded {
			opened, _, err := r.order.openRoom(ctx, &bounded[i])
			if err != nil {
				return err
			}
			all = append(all, opened...)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find tasks that wait for tasks that are over: %w", err)
	}
	return all, nil
}
