package repository

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// CheckExclusive implements ports.Launches by the query of a launch.
func (r *launches) CheckExclusive(ctx context.Context, jobName string, key core.ExclusiveKey, dead func(core.Owner) bool) error {
	if key == "" {
		return nil
	}
	holder, err := r.holder(ctx, jobName, key)
	if err != nil || holder == nil {
		return err
	}
	return holder.excludes(key, dead)
}

// holder returns the active execution that has the key, or nil. Its conditions match the partial
// index.
func (r *launches) holder(ctx context.Context, jobName string, key core.ExclusiveKey) (*newestExecution, error) {
	held, err := r.reads.newest(r.store.session(ctx).Where("active = 1 AND exclusive_key <> '' AND job_name = ? AND exclusive_key = ?", jobName, key))
	if err != nil {
		return nil, fmt.Errorf("find the running execution with the key of job %s: %w", jobName, err)
	}
	return held, nil
}

// claimKey makes sure that no other execution runs with the launch's key. It ends one with a lost
// owner, as a launch of its instance would. The unique index decides between concurrent launches,
// and the refusal is the same.
func (l *launch) claimKey(ctx context.Context) error {
	if l.req.Exclusive == "" {
		return nil
	}
	holder, err := l.repo.holder(ctx, l.req.JobName, l.req.Exclusive)
	if err != nil || holder == nil {
		return err
	}
	if err := holder.excludes(l.req.Exclusive, l.req.Dead); err != nil {
		return &refusalError{err}
	}
	dead := l.req.Dead != nil && l.req.Dead(ports.ParseOwner(holder.Row.Owner))
	_, err = l.repo.endLost(ctx, &holder.Row, dead, actTakeOver, l.ledger)
	return err
}
