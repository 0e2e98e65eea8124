package tasks

import (
	"context"
	"strings"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/guard"
)

const bulk = 1000

// moves makes the guarded moves of tasks.
type moves struct {
	*store
	tasks *guard.Table[task.State]
}

// deliver moves tasks so that they wait for a worker, and returns their deliveries.
func (r *moves) deliver(ctx context.Context, b guard.Bulk) ([]taskports.Delivery, error) {
	var waiting []taskports.Delivery
	err := r.transact(ctx, func(ctx context.Context) error {
		moved, err := r.tasks.MoveAll(ctx, b)
		if err != nil || len(moved) == 0 {
			return err
		}
		waiting, err = r.byID(ctx, idsOf(moved))
		return err
	})
	return waiting, err
}

// moveEach moves all rows that a bulk selects, and calls done, unless it is nil, with the IDs of each statement.
func (r *moves) moveEach(ctx context.Context, b guard.Bulk, actor, reason string, done func(ids []task.ID) error) error {
	for {
		moved, err := r.tasks.MoveAll(ctx, b)
		if err != nil || len(moved) == 0 {
			return err
		}
		for _, m := range moved {
			if err := r.audit(ctx, task.ID(m.ID), b.Trigger, actor, m.Before, r.tasks.Machine().Move(b.Move).To, m.Epoch, reason); err != nil {
				return err
			}
		}
		if done == nil {
			continue
		}
		if err := done(idsOf(moved)); err != nil {
			return err
		}
	}
}

func idsOf(moved []guard.Moved[task.State]) []task.ID {
	ids := make([]task.ID, len(moved))
	for i, m := range moved {
		ids[i] = task.ID(m.ID)
	}
	return ids
}

// moveFree makes a move of one task in the epoch of a delivery; nil: it was refused, or another transaction has locked
// the row. It waits for none, so that the leader may move many tasks in one transaction.
func (r *moves) moveFree(ctx context.Context, d taskports.Delivery, b guard.Bulk) (*guard.Moved[task.State], error) {
	b.Limit = 1
	b.Where = append([]guard.Condition{{SQL: "id = ? AND epoch = ?", Args: []any{d.ID, d.Epoch}}}, b.Where...)
	moved, err := r.tasks.MoveAll(ctx, b)
	if err != nil || len(moved) == 0 {
		return nil, named(d.ID, err)
	}
	return &moved[0], nil
}

func (r *moves) byID(ctx context.Context, ids []task.ID) ([]taskports.Delivery, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var rows []taskRow
	err := r.scan(ctx, &rows, "SELECT "+forDelivery+" FROM {task} WHERE id IN ? ORDER BY id", ids)
	return deliveries(rows), err
}

// endLost ends the running attempts of tasks that were taken from their workers.
func (r *moves) endLost(ctx context.Context, ids []task.ID, reason string) error {
	_, err := r.exec(ctx, "UPDATE {task_attempt} SET state = ?, reason = ?, ended_at = {now} WHERE task_id IN ? AND state = ?",
		taskports.AttemptFailed, r.storable(reason), ids, taskports.AttemptRunning)
	return err
}

func ownedBy(worker string) guard.Condition {
	return guard.Condition{SQL: "worker = ?", Args: []any{worker}, Reason: "another worker has it", Owner: true}
}

// released is the condition that no worker works on an ended task any more.
func (r *moves) released() guard.Condition {
	return guard.Condition{SQL: r.sql("lease_until IS NULL OR lease_until < {now}"), Reason: "its worker has not released it yet"}
}

// claimable are the conditions under which a task may be assigned, claimed and started.
func (r *moves) claimable() []guard.Condition { return r.claimableAs("{task}") }

// claimableAs is claimable of tasks that a statement knows by an alias.
func (r *moves) claimableAs(t string) []guard.Condition {
	return []guard.Condition{
		{SQL: r.sql(t + ".next_run_at IS NULL OR " + t + ".next_run_at <= {now}"), Reason: "it is not due yet"},
		{SQL: r.sql(t + ".deadline_at IS NULL OR " + t + ".deadline_at > {now}"), Reason: "the deadline of its group has passed"},
		{SQL: r.sql(`NOT EXISTS (SELECT 1 FROM {task_group} g JOIN {step_execution} s ON s.id = g.step_execution_id
			JOIN {job_execution} j ON j.id = s.job_execution_id
			WHERE g.id = ` + t + `.group_id AND j.stop_requested AND s.flow <> '` + ports.FlowFinally + `')`), Reason: "a stop of its step's execution was requested"},
	}
}

// isClaimable is claimableAs as one expression. What is not claimable is neither assigned nor delivered again and again, and
// uses no slot.
func (r *moves) isClaimable(t string) string {
	var all []string
	for _, c := range r.claimableAs(t) {
		all = append(all, "("+c.SQL+")")
	}
	return strings.Join(all, " AND ")
}

// decidable is the condition that the claimant has the decider in a group's column.
func decidable(column string, deciders []string) (sql string, args []any) {
	c := in(column, append([]string{""}, deciders...))
	return c.SQL, c.Args
}

func in[T any](column string, values []T) guard.Condition {
	c := guard.Condition{SQL: column + " IN (?" + strings.Repeat(", ?", len(values)-1) + ")"}
	for _, v := range values {
		c.Args = append(c.Args, v)
	}
	return c
}

func (r *moves) assigning(worker string) []guard.Assignment {
	return []guard.Assignment{guard.Set("worker", worker), r.now("assigned_at"), guard.SetSQL("attempt", "attempt + 1")}
}

func (r *moves) delivering() []guard.Assignment {
	return []guard.Assignment{guard.Set("worker", ""), guard.SetSQL("lease_until", "NULL"), guard.SetSQL("confirm_until", "NULL"), r.now("delivered_at"), r.now("updated_at")}
}

// rerunning resets a task so that it is attempted like a new one.
func (r *moves) rerunning() []guard.Assignment {
	return append(r.delivering(), guard.Set("attempts", 0), guard.SetSQL("deadline_at", "NULL"), guard.SetSQL("next_run_at", "NULL"))
}

// rerunningLater does so when the worker has released the task, or its lease has expired.
func (r *moves) rerunningLater() []guard.Assignment {
	return []guard.Assignment{guard.SetSQL("next_run_at", "lease_until"), r.now("updated_at")}
}

func (r *moves) canceling(reason string) []guard.Assignment {
	return []guard.Assignment{r.now("updated_at"), guard.Set("last_error", r.storable(canceledReason(reason))), guard.Set("continuation_state", notConfirming)}
}

func canceledReason(reason string) string {
	if reason == "" {
		return "canceled"
	}
	return "canceled: " + reason
}
