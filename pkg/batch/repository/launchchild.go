package repository

import (
	"context"

	"gorm.io/gorm/clause"

	"github.com/surfin-batch/surfin/internal/ports"
)

// inheritStop copies a requested stop from the parent to a new child, unless the child belongs to
// `finally`. The parent's row stays locked until the child exists: a request either comes before,
// and is seen here, or after, and finds the child.
func (l *launch) inheritStop(ctx context.Context, child *jobExecution) error {
	var parents []jobExecution
	err := l.repo.store.session(ctx).Select("stop_requested").Where("id = ?", l.req.Parent).
		Clauses(clause.Locking{Strength: "SHARE"}).Find(&parents).Error
	if err == nil && len(parents) > 0 {
		child.StopRequested = parents[0].StopRequested
	}
	if err != nil || !child.StopRequested {
		return err
	}
	var flow []string
	err = l.repo.store.scan(ctx, &flow, "SELECT flow FROM {step_execution} WHERE id = ?", l.req.ParentCall)
	child.StopRequested = len(flow) == 0 || flow[0] != ports.FlowFinally
	return err
}
