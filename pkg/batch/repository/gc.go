package repository

import (
	"context"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// CollectGarbage deletes, in one database, the checkpoints of instances that the repository no
// longer has: Purge and DeleteInstance cannot reach them. It returns the number of deleted
// checkpoints. It pages by key, so an interrupted call can be repeated. If the database has no
// tables, it fails as CheckSchema does.
func (c *Checkpoints) CollectGarbage(ctx context.Context, database string) (int64, error) {
	deleted, err := c.collectGarbage(ctx, database)
	if err != nil {
		return deleted, fmt.Errorf("delete unused checkpoints in database %s: %w", database, err)
	}
	return deleted, nil
}

func (c *Checkpoints) collectGarbage(ctx context.Context, database string) (deleted int64, err error) {
	p, err := c.store(database)
	if err != nil {
		return 0, err
	}
	if err := checkpointTables(p).check(ctx); err != nil {
		return 0, err
	}
	uid, err := c.history.identity(ctx)
	if err != nil {
		return 0, err
	}
	var last orphan
	for {
		var page []orphan
		err := p.scan(ctx, &page, `SELECT instance_id, step, step_execution_id, counted_id, instance FROM {checkpoint}
			WHERE repository = ? AND (instance_id, step) > (?, ?) ORDER BY instance_id, step LIMIT ?`,
			uid, last.InstanceID, last.Step, batchSize)
		if err != nil || len(page) == 0 {
			return deleted, err
		}
		last = page[len(page)-1]
		orphans, err := c.orphans(ctx, page)
		if err != nil {
			return deleted, err
		}
		n, err := p.deleteCheckpoints(ctx, uid, orphans)
		deleted += n
		if err != nil {
			return deleted, err
		}
	}
}

// orphan is the key of a checkpoint; its instance may be gone, with its attempts.
type orphan struct {
	InstanceID      core.JobInstanceID
	Step            string
	StepExecutionID core.StepExecutionID
	CountedID       core.StepExecutionID
	Instance        string // its identity
}

// orphans returns the checkpoints of the page whose instance is missing in the repository. An ID
// beyond the repository's belongs to a history that was restored since: its checkpoint is kept, so
// that the next run finds it (rule C18a).
func (c *Checkpoints) orphans(ctx context.Context, page []orphan) ([]orphan, error) {
	var ids []core.JobInstanceID
	for _, l := range page {
		ids = append(ids, l.InstanceID)
	}
	var known []core.JobInstanceID
	err := c.history.scan(ctx, &known, "SELECT id FROM {job_instance} WHERE id IN ?", slices.Compact(ids))
	if err != nil {
		return nil, err
	}
	exists := map[core.JobInstanceID]bool{}
	for _, id := range known {
		exists[id] = true
	}
	var newest core.JobInstanceID
	if err := c.history.scan(ctx, &newest, "SELECT COALESCE(MAX(id), 0) FROM {job_instance}"); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(page, func(l orphan) bool { return exists[l.InstanceID] || l.InstanceID > newest }), nil
}

func (s *store) deleteCheckpoints(ctx context.Context, uid string, orphans []orphan) (n int64, err error) {
	if len(orphans) == 0 {
		return 0, nil
	}
	var instances []core.JobInstanceID
	var steps []core.StepExecutionID
	scopes := []string{uid}
	for _, l := range orphans {
		scopes = append(scopes, scopeOf(uid, l.Instance))
		instances, steps = append(instances, l.InstanceID), append(steps, l.StepExecutionID, l.CountedID)
	}
	err = s.transact(ctx, func(ctx context.Context) error {
		err := s.exec(ctx, "DELETE FROM {checkpoint_skip} WHERE repository IN ? AND step_execution_id IN ?", scopes, steps).Error
		if err != nil {
			return err
		}
		deleted := s.exec(ctx, "DELETE FROM {checkpoint} WHERE repository = ? AND instance_id IN ?", uid, slices.Compact(instances))
		n = deleted.RowsAffected
		return deleted.Error
	})
	return n, err
}
