package repository

import (
	"context"
	"fmt"

	"gorm.io/gorm/clause"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// SaveJobContext implements ports.Transitions: it locks the row under the guard, merges the changed
// keys and writes the context. It touches no indexed column and leaves no audit row; an unchanged
// context costs no statement.
func (r *transitions) SaveJobContext(ctx context.Context, ref ports.JobRef, c *core.ExecutionContext) error {
	if ref.Branch != 0 {
		return r.PromotePartition(ctx, ports.StepRef{ID: ref.Branch, Owner: ref.Owner, Epoch: ref.Epoch}, c)
	}
	err := r.mergeContext(ctx, c, "id = ? AND owner = ? AND epoch = ? AND status IN ?", ref.ID, ref.Owner.String(), ref.Epoch, running())
	if err != nil {
		return fmt.Errorf("context of job execution %d: %w", ref.ID, err)
	}
	return nil
}

// SaveStepContext implements ports.Transitions: one guarded UPDATE, if the context changed.
func (r *transitions) SaveStepContext(ctx context.Context, ref ports.StepRef, c *core.ExecutionContext) error {
	text, write, err := encodeContext(c)
	if err != nil {
		return fmt.Errorf("context of step execution %d: %w", ref.ID, err)
	}
	if !write {
		return nil
	}
	done := r.store.exec(ctx, "UPDATE {step_execution} SET context = ? WHERE id = ? AND owner = ? AND epoch = ? AND status IN ?",
		text, ref.ID, ref.Owner.String(), ref.Epoch, running())
	if done.Error == nil && done.RowsAffected == 0 {
		done.Error = core.ErrLostOwner
	}
	if done.Error != nil {
		return fmt.Errorf("context of step execution %d: %w", ref.ID, done.Error)
	}
	return nil
}

// PromotePartition implements ports.Assignments. The job is locked before the partition is read, as
// everywhere.
func (r *moves) PromotePartition(ctx context.Context, ref ports.StepRef, c *core.ExecutionContext) error {
	err := r.mergeContext(ctx, c, r.store.sql(`active = 1 AND id = (SELECT job_execution_id FROM {step_execution} s
		WHERE s.id = ? AND s.`+ownEpoch+` AND s.status IN ? AND s.lease_until IS NOT NULL)`),
		ref.ID, ref.Owner.String(), ref.Epoch, ref.Epoch, running())
	if err != nil {
		return fmt.Errorf("promote from step execution %d: %w", ref.ID, err)
	}
	return nil
}

// mergeContext merges the changes into the context of the one job execution that the condition
// selects. It returns core.ErrLostOwner if there is none.
func (r *moves) mergeContext(ctx context.Context, changes *core.ExecutionContext, condition string, args ...any) error {
	if changes == nil || !changes.Changed() {
		return nil
	}
	if _, err := changes.Encode(); err != nil {
		return err
	}
	return r.store.transact(ctx, func(ctx context.Context) error {
		id, text, err := r.mergedContext(ctx, changes, condition, args...)
		if err == nil && id == 0 {
			err = core.ErrLostOwner
		}
		if err != nil {
			return err
		}
		return r.store.session(ctx).Exec(r.store.sql("UPDATE {job_execution} SET context = ? WHERE id = ?"), text, id).Error
	})
}

// mergedContext locks the job execution and returns its context with the changes; the ID is 0 if
// there is none.
func (r *moves) mergedContext(ctx context.Context, changes *core.ExecutionContext, condition string, args ...any) (core.JobExecutionID, string, error) {
	var rows []jobExecution
	err := r.store.session(ctx).Select("id", "context").Where(condition, args...).
		Clauses(clause.Locking{Strength: "NO KEY UPDATE"}).Find(&rows).Error
	if err != nil || len(rows) == 0 {
		return 0, "", err
	}
	merged, err := core.ParseExecutionContext([]byte(rows[0].Context))
	if err != nil {
		return 0, "", err
	}
	merged.Merge(changes)
	text, err := merged.Encode()
	return rows[0].ID, string(text), err
}
