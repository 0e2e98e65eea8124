package repository

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// StepWork implements core.BulkExplorer with two statements.
func (r *Repository) StepWork(ctx context.Context, ids ...core.JobExecutionID) (ports.StepWork, error) {
	work := ports.StepWork{Groups: map[core.StepExecutionID]ports.StepGroup{}}
	if len(ids) == 0 {
		return work, nil
	}
	var counts []struct {
		Step    core.StepExecutionID
		GroupID int64
		State   string
		Count   int
	}
	err := r.store.scan(ctx, &counts, `SELECT s.id AS step, g.id AS group_id, t.state, count(*) AS count
		FROM {step_execution} s JOIN {task_group} g ON g.step_execution_id = s.id JOIN {task} t ON t.group_id = g.id
		WHERE s.job_execution_id {among} GROUP BY s.id, g.id, t.state`, listed(ids))
	if err != nil {
		return work, fmt.Errorf("count the tasks of steps: %w", err)
	}
	for _, c := range counts {
		group, known := work.Groups[c.Step]
		if !known {
			group = ports.StepGroup{Group: c.GroupID, States: map[string]int{}}
		}
		group.States[c.State] += c.Count
		work.Groups[c.Step] = group
	}
	err = r.store.scan(ctx, &work.Children, `SELECT parent_id AS parent, COALESCE(parent_call, 0) AS call, id AS execution, status
		FROM {job_execution} WHERE parent_id {among} AND active = 1 ORDER BY id`, listed(ids))
	if err != nil {
		return work, fmt.Errorf("read child jobs that are not over: %w", err)
	}
	return work, nil
}
