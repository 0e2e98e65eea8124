package repository

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// CheckFormer implements core.Launches.
func (r *Repository) CheckFormer(ctx context.Context, jobName string, params core.Parameters) error {
	if params.FormerKey() == "" {
		return nil
	}
	_, err := r.Instance(ctx, jobName, params.Key())
	switch {
	case errors.Is(err, core.ErrNotFound): // a new instance
		return r.refuseFormer(ctx, jobName, params, params.FormerKey())
	case err != nil:
		return err
	}
	return r.refuseFormer(ctx, jobName, params, params.Key())
}

// Under the instance's lock.
func (l *launch) refuseFormer(ctx context.Context) error {
	params := l.req.Params
	key := params.Key()
	if l.attempts == 1 {
		key = params.FormerKey()
	}
	err := l.repo.refuseFormer(ctx, l.req.JobName, params, key)
	if errors.As(err, new(*core.FormerInstanceError)) {
		return &refusalError{err}
	}
	return err
}

// Refused: parameters that named another instance before rule D5's local times, if made then and not
// abandoned.
func (r *Repository) refuseFormer(ctx context.Context, jobName string, params core.Parameters, key string) error {
	if params.FormerKey() == "" {
		return nil
	}
	var rows []jobInstance
	err := gormtx.Find(r.store.session(ctx).Where("job_name = ? AND instance_key = ? AND local_times IS NULL", jobName, key), &rows)
	if err == nil && len(rows) == 0 {
		return nil
	}
	var last *newestExecution
	if err == nil {
		last, err = r.newest(r.ofInstance(ctx, jobName, key))
	}
	if err != nil {
		return fmt.Errorf("launch job %s: %w", jobName, err)
	}
	if last == nil || last.Row.Status == core.StatusAbandoned {
		return nil
	}
	return &core.FormerInstanceError{JobName: jobName, Execution: last.Row.ID, Status: last.Row.Status, Params: params, Taken: key == params.Key()}
}
