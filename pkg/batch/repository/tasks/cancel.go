package tasks

import (
	"context"
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/guard"
)

func (r submissions) Cancel(ctx context.Context, id task.ID, actor, reason string) (core.Answer, []taskports.Delivery, error) {
	var moved guard.Result[task.State]
	var refused error
	var opened []taskports.Delivery
	err := r.transact(ctx, func(ctx context.Context) error {
		ordered, err := r.order.lockOrdered(ctx, id)
		if err != nil {
			return err
		}
		moved, refused = r.tasks.Move(ctx, guard.Request{ID: int64(id), Move: taskports.MoveCancel, Set: r.canceling(reason)})
		if moved.Answer != core.Applied {
			return nil
		}
		if err := r.endLost(ctx, []task.ID{id}, canceledReason(reason)); err != nil {
			return err
		}
		if err := r.audit(ctx, id, taskports.MoveCancel, actor, moved.Current, task.Canceled, moved.Epoch, reason); err != nil {
			return err
		}
		if ordered {
			if opened, err = r.order.settle(ctx, id, task.Canceled, actor); err != nil {
				return err
			}
		}
		return r.waiters.tasksMoved(ctx, id)
	})
	if err != nil {
		return "", nil, named(id, err)
	}
	if moved.Answer == core.Rejected && moved.Current == task.Canceled {
		return core.Duplicate, nil, nil // canceled in this epoch or earlier
	}
	return moved.Answer, opened, refused
}

func (r submissions) CancelGroup(ctx context.Context, id task.GroupID, actor, reason string) (core.Answer, error) {
	answer := core.Applied
	err := r.transact(ctx, func(ctx context.Context) error {
		group, err := r.groups.lockGroup(ctx, id)
		if err != nil {
			return err
		}
		if !group.CancelRequestedAt.IsZero() {
			answer = core.Duplicate
		} else if err := r.requestCancel(ctx, id); err != nil {
			return err
		}
		if err := r.cancelAll(ctx, id, actor, reason); err != nil {
			return err
		}
		if answer == core.Applied {
			if err := r.note(ctx, ports.VerbCancelGroup, actor, strings.TrimSuffix(fmt.Sprintf("group %d: %s", id, reason), ": ")); err != nil {
				return err
			}
		}
		return r.waiters.groupMoved(ctx, id)
	})
	return answer, err
}

func (r submissions) requestCancel(ctx context.Context, id task.GroupID) error {
	status, err := r.groups.status(ctx, id, false)
	if err != nil {
		return err
	}
	if status.IsOver() {
		return &taskports.GroupOverError{ID: id, State: status.State}
	}
	_, err = r.exec(ctx, "UPDATE {task_group} SET cancel_requested_at = {now}, updated_at = {now} WHERE id = ?", id)
	return err
}

// cancelAll cancels the unfinished tasks. It waits for rows that a worker is just moving.
func (r submissions) cancelAll(ctx context.Context, id task.GroupID, actor, reason string) error {
	var rows []taskRow
	err := r.scan(ctx, &rows, "SELECT id, state, epoch FROM {task} WHERE group_id = ? AND state NOT IN ? ORDER BY id{lock}", id, overStates())
	if err != nil || len(rows) == 0 {
		return err
	}
	unfinished := guard.Bulk{
		Move: taskports.MoveCancel, Where: []guard.Condition{{SQL: "group_id = ?", Args: []any{id}}}, Limit: bulk, Set: r.canceling(reason), Trigger: "cancel_group",
	}
	return r.moveEach(ctx, unfinished, actor, reason, func(ids []task.ID) error { return r.endLost(ctx, ids, canceledReason(reason)) })
}
