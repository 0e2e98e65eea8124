package tasks

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// waiters notifies the steps that wait for groups.
type waiters struct {
	*store
	steps taskports.Waiters // if nil, no step waits for a group
}

// groupMoved notifies the step that waits for a group, if any, that tasks of it ended.
func (r *waiters) groupMoved(ctx context.Context, id task.GroupID) error {
	return r.moved(ctx, "id = ?", id)
}

func (r *waiters) tasksMoved(ctx context.Context, ids ...task.ID) error {
	if len(ids) == 0 {
		return nil
	}
	return r.moved(ctx, "id IN (SELECT group_id FROM {task} WHERE id IN ?)", ids)
}

func (r *waiters) moved(ctx context.Context, which string, of any) error {
	if r.steps == nil {
		return nil
	}
	var steps []core.StepExecutionID
	err := r.scan(ctx, &steps, "SELECT step_execution_id FROM {task_group} WHERE step_execution_id IS NOT NULL AND "+which+" ORDER BY step_execution_id", of)
	if err != nil {
		return fmt.Errorf("find steps that wait for tasks: %w", err)
	}
	for _, step := range steps {
		if err := r.steps.TasksEnded(ctx, step); err != nil {
			return err
		}
	}
	return nil
}
