package repository

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// CheckFormer implements core.Launches.
func (r *Repository) CheckFormer(ctx context.Context, jobName string, params core.Parameters) error {
	if params.FormerKey() == "" {
		return nil
	}
	_, err := r.LastExecution(ctx, jobName, params.Key())
	if errors.Is(err, core.ErrNotFound) { // the instance is new
		return r.refuseFormer(ctx, jobName, params)
	}
	return err
}

// refuseFormer refuses a new instance if these parameters named another one before timestamps were
// read in the job's time zone. Instances created since then have an identity. An abandoned one does
// not count.
func (r *Repository) refuseFormer(ctx context.Context, jobName string, params core.Parameters) error {
	key := params.FormerKey()
	if key == "" {
		return nil
	}
	last, err := r.newest(r.ofInstance(ctx, jobName, key).Where(r.store.sql(
		"status <> 'ABANDONED' AND NOT EXISTS (SELECT 1 FROM {instance_identity} k WHERE k.instance_id = {job_execution}.instance_id)")))
	if err != nil {
		return fmt.Errorf("launch job %s: %w", jobName, err)
	}
	if last == nil {
		return nil
	}
	return &core.FormerInstanceError{JobName: jobName, Execution: last.Row.ID, Status: last.Row.Status, Params: params}
}
