package tasks

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// groups has the rows of groups: their locks, their states and their budgets.
type groups struct{ *store }

func (r groups) lockGroup(ctx context.Context, id task.GroupID) (*taskGroup, error) {
	var groups []taskGroup
	err := r.scan(ctx, &groups, "SELECT * FROM {task_group} WHERE id = ?{lock}", id)
	if err == nil && len(groups) == 0 {
		err = fmt.Errorf("group %d: %w", id, core.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	return &groups[0], nil
}

func (r groups) status(ctx context.Context, id task.GroupID, cancelRequested bool) (*task.GroupStatus, error) {
	var rows []struct {
		State task.State
		N     int
	}
	if err := r.scan(ctx, &rows, "SELECT state, count(*) AS n FROM {task} WHERE group_id = ? GROUP BY state", id); err != nil {
		return nil, fmt.Errorf("group %d: %w", id, err)
	}
	states := map[task.State]int{}
	for _, row := range rows {
		states[row.State] = row.N
	}
	s := taskports.StatusOf(id, states, cancelRequested)
	return &s, nil
}

// resetBudget resets the budget of a group: earlier attempts do not count any more. It withdraws the
// cancellation of the group.
func (r groups) resetBudget(ctx context.Context, id task.GroupID) error {
	_, err := r.exec(ctx, "UPDATE {task_group} SET updated_at = {now}, stalled = FALSE, cancel_requested_at = NULL, counted_after = (SELECT COALESCE(max(id), 0) FROM {task_attempt} WHERE group_id = ?) WHERE id = ?", id, id)
	return err
}

func (r groups) renew(ctx context.Context, group *taskGroup) error {
	budget, err := budgetOf(group.ID, group.Budget)
	if err != nil {
		return err
	}
	deadline, args := "NULL", []any{}
	if budget.Deadline > 0 {
		deadline, args = "{later}", []any{budget.Deadline.Microseconds()}
	}
	_, err = r.exec(ctx, "UPDATE {task} SET attempts = 0, deadline_at = "+deadline+" WHERE group_id = ? AND state NOT IN ?", append(args, group.ID, overStates())...)
	if err == nil {
		_, err = r.exec(ctx, "UPDATE {task_group} SET deadline_at = "+deadline+" WHERE id = ?", append(args, group.ID)...)
	}
	return err
}

// spentOf returns the used part of the budgets of tasks past their deadline. Each group is counted
// once.
func (r groups) spentOf(ctx context.Context, ids []task.ID) (map[task.ID]task.Spent, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var rows []struct {
		ID           task.ID
		GroupID      task.GroupID
		Attempts     int
		CountedAfter taskports.AttemptID
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
			budget, err := budgetOf(row.GroupID, row.Budget)
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

// spentBy returns the part of its budget that a group has used, in attempts after the given one.
func (r groups) spentBy(ctx context.Context, group task.GroupID, after taskports.AttemptID, budget task.Budget) (task.Spent, error) {
	var s task.Spent
	err := r.scan(ctx, &s.TotalAttempts, "SELECT count(*) FROM {task_attempt} WHERE group_id = ? AND id > ?", group, after)
	if err != nil {
		return s, err
	}
	err = r.scan(ctx, &s.NoProgress, `SELECT count(*) FROM (SELECT 1 FROM {task_attempt} WHERE group_id = ? AND id > ? AND state = ? AND ended_at >
		COALESCE((SELECT max(ended_at) FROM {task_attempt} WHERE group_id = ? AND state = ?), `+r.longAgo()+`) LIMIT ?) AS failed`,
		group, after, taskports.AttemptFailed, group, taskports.AttemptSuccess, budget.Filled().MaxNoProgress)
	return s, err
}

func (r groups) longAgo() string {
	switch r.db.Dialect() {
	case tx.Postgres:
		return "CAST('epoch' AS timestamptz)"
	case tx.MySQL:
		return "CAST('1970-01-01' AS datetime(6))"
	case tx.SQLite:
	}
	return "0"
}
