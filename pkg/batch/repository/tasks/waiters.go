package tasks

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// Waiters notifies the steps of jobs that wait for groups.
type Waiters interface {
	// TasksEnded is called in the transaction that ended tasks of a group, after all its other
	// writes, with the step that waits for the group.
	TasksEnded(ctx context.Context, step core.StepExecutionID) error
}

// SetWaiters sets the Waiters to notify when tasks end that a step waits for; nil means none. It
// must not be called once the repository is in use.
func (r *Repository) SetWaiters(w Waiters) { r.waiters = w }

// groupMoved notifies the step that waits for a group, if any, that tasks of it ended.
func (r *Repository) groupMoved(ctx context.Context, id task.GroupID) error {
	return r.moved(ctx, "id = ?", id)
}

func (r *Repository) tasksMoved(ctx context.Context, ids ...task.ID) error {
	if len(ids) == 0 {
		return nil
	}
	return r.moved(ctx, "id IN (SELECT group_id FROM {task} WHERE id IN ?)", ids)
}

func (r *Repository) moved(ctx context.Context, which string, of any) error {
	if r.waiters == nil {
		return nil
	}
	var steps []core.StepExecutionID
	err := r.scan(ctx, &steps, "SELECT step_execution_id FROM {task_group} WHERE step_execution_id IS NOT NULL AND "+which+" ORDER BY step_execution_id", of)
	if err != nil {
		return fmt.Errorf("find steps that wait for tasks: %w", err)
	}
	for _, step := range steps {
		if err := r.waiters.TasksEnded(ctx, step); err != nil {
			return err
		}
	}
	return nil
}
