package repository

import (
	"context"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Sweep deletes, in one database, the checkpoints of instances that are not in the
// repository any more: Purge and DeleteInstance cannot reach them. It answers how
// many there were. It pages by key and may be cut off and repeated. A database
// without the tables is an error, as in CheckSchema.
func (c *Checkpoints) Sweep(ctx context.Context, database string) (int64, error) {
	swept, err := c.sweep(ctx, database)
	if err != nil {
		return swept, fmt.Errorf("sweep the checkpoints in database %s: %w", database, err)
	}
	return swept, nil
}

func (c *Checkpoints) sweep(ctx context.Context, database string) (swept int64, err error) {
	p, err := c.place(database)
	if err != nil {
		return 0, err
	}
	if err := checkpointTables(p).check(ctx); err != nil {
		return 0, err
	}
	uid, err := c.repository.identity(ctx)
	if err != nil {
		return 0, err
	}
	var last left
	for {
		var page []left
		err := p.session(ctx).Raw(p.sql(`SELECT instance_id, step, step_execution_id, counted_id FROM {checkpoint}
			WHERE repository = ? AND (instance_id, step) > (?, ?) ORDER BY instance_id, step LIMIT ?`),
			uid, last.InstanceID, last.Step, paramsBatch).Scan(&page).Error
		if err != nil || len(page) == 0 {
			return swept, err
		}
		last = page[len(page)-1]
		gone, err := c.gone(ctx, page)
		if err != nil {
			return swept, err
		}
		n, err := p.forget(ctx, uid, gone)
		swept += n
		if err != nil {
			return swept, err
		}
	}
}

// left is a checkpoint, as far as a sweep looks at it.
type left struct {
	InstanceID      core.JobInstanceID
	Step            string
	StepExecutionID core.StepExecutionID
	CountedID       core.StepExecutionID
}

// gone are those of the page whose instance is not in the repository. Ids are never
// given twice, so it will not come back.
func (c *Checkpoints) gone(ctx context.Context, page []left) ([]left, error) {
	var ids []core.JobInstanceID
	for _, l := range page {
		ids = append(ids, l.InstanceID)
	}
	var there []core.JobInstanceID
	err := c.repository.session(ctx).Raw(c.repository.sql("SELECT id FROM {job_instance} WHERE id IN ?"), slices.Compact(ids)).Scan(&there).Error
	if err != nil {
		return nil, err
	}
	known := map[core.JobInstanceID]bool{}
	for _, id := range there {
		known[id] = true
	}
	return slices.DeleteFunc(page, func(l left) bool { return known[l.InstanceID] }), nil
}

// forget deletes checkpoints and the skipped items beside them.
func (p *place) forget(ctx context.Context, uid string, gone []left) (n int64, err error) {
	if len(gone) == 0 {
		return 0, nil
	}
	var instances []core.JobInstanceID
	var steps []core.StepExecutionID
	for _, l := range gone {
		instances, steps = append(instances, l.InstanceID), append(steps, l.StepExecutionID, l.CountedID)
	}
	err = p.manager.Do(ctx, p.attr(), func(ctx context.Context) error {
		err := p.session(ctx).Exec(p.sql("DELETE FROM {checkpoint_skip} WHERE repository = ? AND step_execution_id IN ?"), uid, steps).Error
		if err != nil {
			return err
		}
		deleted := p.session(ctx).Exec(p.sql("DELETE FROM {checkpoint} WHERE repository = ? AND instance_id IN ?"), uid, slices.Compact(instances))
		n = deleted.RowsAffected
		return deleted.Error
	})
	return n, err
}
