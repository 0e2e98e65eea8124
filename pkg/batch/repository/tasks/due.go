package tasks

import (
	"context"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// queue implements taskports.Deliveries.
type queue struct{ *store }

func (r queue) Due(ctx context.Context, types, deciders []string, limit int) ([]taskports.Delivery, error) {
	if len(types) == 0 {
		return nil, nil
	}
	known, names := decidable("(SELECT g.decider FROM {task_group} g WHERE g.id = group_id)", deciders)
	return r.due(ctx, "placement = '' AND type IN ? AND "+known, limit, append([]any{types}, names...)...)
}

func (r queue) DueOf(ctx context.Context, group task.GroupID, limit int) ([]taskports.Delivery, error) {
	return r.due(ctx, "placement = '' AND group_id = ?", limit, group)
}

func (r queue) due(ctx context.Context, which string, limit int, of ...any) ([]taskports.Delivery, error) {
	var rows []taskRow
	err := r.scan(ctx, &rows, `SELECT `+forDelivery+` FROM {task}
		WHERE state IN ('PENDING', 'ORPHANED') AND `+which+` AND (next_run_at IS NULL OR next_run_at <= {now}) ORDER BY priority, id LIMIT ?`, append(of, limit)...)
	return deliveries(rows), wrapped(err, "find tasks that are due")
}
