package repository

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// CheckFormer implements ports.Launches.
func (r *launches) CheckFormer(ctx context.Context, jobName string, params core.Parameters) error {
	if params.FormerKey() == "" {
		return nil
	}
	_, err := r.reads.Instance(ctx, jobName, params.Key())
	switch {
	case errors.Is(err, core.ErrNotFound): // it would be a new instance
		return r.refuseFormer(ctx, jobName, params, params.FormerKey())
	case err != nil:
		return err
	}
	return r.refuseFormer(ctx, jobName, params, params.Key())
}

// refuseFormer is CheckFormer under the lock of the launch's instance.
func (l *launch) refuseFormer(ctx context.Context) error {
	params := l.req.Params
	key := params.Key()
	if l.attempts == 1 { // it is new
		key = params.FormerKey()
	}
	err := l.repo.refuseFormer(ctx, l.req.JobName, params, key)
	if errors.As(err, new(*ports.FormerInstanceError)) {
		return &refusalError{err}
	}
	return err
}

// refuseFormer refuses a launch whose parameters name another instance than they named before timestamps were read in the
// time zone of the job, if the instance with this key was made by such a program. One that was abandoned does not count.
func (r *launches) refuseFormer(ctx context.Context, jobName string, params core.Parameters, key string) error {
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
		last, err = r.reads.newest(r.reads.ofInstance(ctx, jobName, key))
	}
	if err != nil {
		return fmt.Errorf("launch job %s: %w", jobName, err)
	}
	if last == nil || last.Row.Status == core.StatusAbandoned {
		return nil
	}
	return &ports.FormerInstanceError{JobName: jobName, Execution: last.Row.ID, Status: last.Row.Status, Params: params, Taken: key == params.Key()}
}
