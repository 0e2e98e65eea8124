package tasks

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/guard"
)

func (r submissions) Rerun(ctx context.Context, id task.ID, actor, reason string) (core.Answer, []taskports.Delivery, error) {
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
			if err := r.order.inOrder(ctx, &groups[0], &again); err != nil {
				return err
			}
		}
		moved, refused = r.tasks.Move(ctx, again)
		if moved.Answer != core.Applied {
			return nil
		}
		if err := r.groups.resetBudget(ctx, groups[0].ID); err != nil {
			return err
		}
		if moved.State == task.Pending {
			if waiting, err = r.byID(ctx, []task.ID{id}); err != nil {
				return err
			}
		}
		if err := r.audit(ctx, id, again.Move, actor, moved.Current, moved.State, moved.Epoch, reason); err != nil || !ordered {
			return err
		}
		return r.order.waitAgain(ctx, id, actor)
	})
	if err != nil {
		return "", nil, named(id, err)
	}
	return moved.Answer, waiting, refused
}

// Continue implements taskports.Submissions. It locks the group's row first, as CancelGroup does.
func (r submissions) Continue(ctx context.Context, id task.GroupID, step core.StepExecutionID, actor, reason string) (ds []taskports.Delivery, err error) {
	err = r.transact(ctx, func(ctx context.Context) error {
		group, err := r.groups.lockGroup(ctx, id)
		if err != nil {
			return err
		}
		if _, err := r.exec(ctx, "UPDATE {task_group} SET step_execution_id = ? WHERE id = ?", step, id); err != nil {
			return err
		}
		if err := r.groups.resetBudget(ctx, id); err != nil {
			return err
		}
		if ds, err = r.rerunAll(ctx, group, actor, reason); err != nil {
			return err
		}
		return r.groups.renew(ctx, group)
	})
	if err != nil {
		return nil, fmt.Errorf("continue group %d: %w", id, err)
	}
	return ds, nil
}

// rerunAll makes MoveWaitAgain for tasks that wait for others, MoveRerun for tasks that no worker
// has any more, and MoveRerunLater for the rest. It waits for rows that a worker is just releasing.
func (r submissions) rerunAll(ctx context.Context, group *taskGroup, actor, reason string) (ds []taskports.Delivery, err error) {
	var locked []task.ID
	id := group.ID
	if err := r.scan(ctx, &locked, "SELECT id FROM {task} WHERE group_id = ? AND state IN ? ORDER BY id{lock}", id, unsuccessful()); err != nil || len(locked) == 0 {
		return nil, err
	}
	ofGroup := guard.Condition{SQL: "group_id = ?", Args: []any{id}}
	if group.Ordered {
		wait := guard.Bulk{Move: taskports.MoveWaitAgain, Where: []guard.Condition{ofGroup, {SQL: "NOT (" + r.order.ready() + ")"}}, Limit: bulk, Set: r.order.waitingAgain(), Trigger: "continue_group"}
		if err := r.moveEach(ctx, wait, actor, reason, nil); err != nil {
			return nil, err
		}
	}
	again := guard.Bulk{Move: taskports.MoveRerun, Where: []guard.Condition{ofGroup, r.released()}, Limit: bulk, Set: r.rerunning(), Trigger: "continue_group"}
	err = r.moveEach(ctx, again, actor, reason, func(ids []task.ID) error {
		waiting, err := r.byID(ctx, ids)
		ds = append(ds, waiting...)
		return err
	})
	if err != nil {
		return nil, err
	}
	later := guard.Bulk{Move: taskports.MoveRerunLater, Where: []guard.Condition{ofGroup}, Limit: bulk, Set: r.rerunningLater(), Trigger: "continue_group"}
	return ds, r.moveEach(ctx, later, actor, reason, nil)
}
