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

const bulk = 1000

// Cancel implements taskports.Submissions.
func (r *Repository) Cancel(ctx context.Context, id task.ID, actor, reason string) (core.Answer, error) {
	var moved guard.Result[task.State]
	var refused error
	err := r.transact(ctx, func(ctx context.Context) error {
		ordered, err := r.lockOrdered(ctx, id)
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
			if err := r.cancelWaiting(ctx, id, actor); err != nil {
				return err
			}
		}
		return r.tasksMoved(ctx, id)
	})
	if err != nil {
		return "", named(id, err)
	}
	if moved.Answer == core.Rejected && moved.Current == task.Canceled {
		return core.Duplicate, nil // canceled in this epoch or earlier
	}
	return moved.Answer, refused
}

// CancelGroup implements taskports.Submissions.
func (r *Repository) CancelGroup(ctx context.Context, id task.GroupID, actor, reason string) (core.Answer, error) {
	answer := core.Applied
	err := r.transact(ctx, func(ctx context.Context) error {
		group, err := r.lockGroup(ctx, id)
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
			if err := r.Note(ctx, ports.VerbCancelGroup, actor, strings.TrimSuffix(fmt.Sprintf("group %d: %s", id, reason), ": ")); err != nil {
				return err
			}
		}
		return r.groupMoved(ctx, id)
	})
	return answer, err
}

func (r *Repository) requestCancel(ctx context.Context, id task.GroupID) error {
	status, err := r.status(ctx, id, false)
	if err != nil {
		return err
	}
	if status.IsOver() {
		return &task.GroupOverError{ID: id, State: status.State}
	}
	_, err = r.exec(ctx, "UPDATE {task_group} SET cancel_requested_at = {now}, updated_at = {now} WHERE id = ?", id)
	return err
}

// cancelAll cancels the unfinished tasks. It waits for rows that a worker is just moving.
func (r *Repository) cancelAll(ctx context.Context, id task.GroupID, actor, reason string) error {
	var rows []taskRow
	err := r.scan(ctx, &rows, "SELECT id, state, epoch FROM {task} WHERE group_id = ? AND state NOT IN ? ORDER BY id{lock}", id,
		[]task.State{task.Succeeded, task.Failed, task.TimedOut, task.Canceled})
	if err != nil || len(rows) == 0 {
		return err
	}
	for {
		moved, err := r.tasks.MoveAll(ctx, guard.Bulk{
			Move: taskports.MoveCancel, Where: []guard.Condition{{SQL: "group_id = ?", Args: []any{id}}}, Limit: bulk, Set: r.canceling(reason), Trigger: "cancel_group",
		})
		if err != nil || len(moved) == 0 {
			return err
		}
		ids := make([]task.ID, len(moved))
		for i, m := range moved {
			ids[i] = task.ID(m.ID)
			if err := r.audit(ctx, ids[i], "cancel_group", actor, m.Before, task.Canceled, m.Epoch, reason); err != nil {
				return err
			}
		}
		if err := r.endLost(ctx, ids, canceledReason(reason)); err != nil {
			return err
		}
	}
}

func (r *Repository) canceling(reason string) []guard.Assignment {
	return []guard.Assignment{r.now("updated_at"), guard.Set("last_error", r.storable(canceledReason(reason))), guard.Set("continuation_state", notConfirming)}
}

func canceledReason(reason string) string {
	if reason == "" {
		return "canceled"
	}
	return "canceled: " + reason
}

// endLost ends the running attempts of tasks that were taken from their workers.
func (r *Repository) endLost(ctx context.Context, ids []task.ID, reason string) error {
	_, err := r.exec(ctx, "UPDATE {task_attempt} SET state = ?, reason = ?, ended_at = {now} WHERE task_id IN ? AND state = ?",
		taskports.AttemptFailed, r.storable(reason), ids, taskports.AttemptRunning)
	return err
}

// Rerun implements taskports.Submissions.
func (r *Repository) Rerun(ctx context.Context, id task.ID, actor, reason string) (core.Answer, []taskports.Delivery, error) {
	var moved guard.Result[task.State]
	var refused error
	var waiting []taskports.Delivery
	err := r.transact(ctx, func(ctx context.Context) error {
		var groups []taskGroup
		err := r.scan(ctx, &groups, "SELECT * FROM {task_group} WHERE id = (SELECT group_id FROM {task} WHERE id = ?){lock}", id)
		if err != nil {
			return err
		}
		again := guard.Request{ID: int64(id), Move: taskports.MoveRerun, Where: []guard.Condition{r.released()}, Set: r.rerunning()}
		ordered := len(groups) == 1 && groups[0].Ordered
		if ordered {
			if err := r.inOrder(ctx, &again); err != nil {
				return err
			}
		}
		moved, refused = r.tasks.Move(ctx, again)
		if moved.Answer != core.Applied {
			return nil
		}
		if err := r.resetBudget(ctx, groups[0].ID); err != nil {
			return err
		}
		if moved.State == task.Pending {
			if waiting, err = r.byID(ctx, []int64{int64(id)}); err != nil {
				return err
			}
		}
		if err := r.audit(ctx, id, again.Move, actor, moved.Current, moved.State, moved.Epoch, reason); err != nil || !ordered {
			return err
		}
		return r.waitAgain(ctx, id, actor)
	})
	if err != nil {
		return "", nil, named(id, err)
	}
	return moved.Answer, waiting, refused
}

func (r *Repository) byID(ctx context.Context, ids []int64) ([]taskports.Delivery, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var rows []taskRow
	err := r.scan(ctx, &rows, "SELECT "+forDelivery+" FROM {task} WHERE id IN ? ORDER BY id", ids)
	return deliveries(rows), err
}
