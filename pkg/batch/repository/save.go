package repository

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// SaveJobContext implements core.Transitions: one guarded UPDATE, which touches no
// indexed column and leaves no audit row, and none at all for a context that did
// not change. A context of a greater revision stays. Marking it stored is the
// caller's, as in ChangeJob.
func (r *Repository) SaveJobContext(ctx context.Context, ref core.JobRef, c *core.ExecutionContext) error {
	text, write, err := encodeContext(c)
	if err != nil {
		return fmt.Errorf("context of job execution %d: %w", ref.ID, err)
	}
	if !write {
		return nil
	}
	done := r.store.exec(ctx, `UPDATE {job_execution}
		SET context = CASE WHEN context_revision < ? THEN ? ELSE context END,
			context_revision = CASE WHEN context_revision < ? THEN ? ELSE context_revision END
		WHERE id = ? AND owner = ? AND epoch = ? AND status IN ?`,
		c.Revision(), text, c.Revision(), c.Revision(), ref.ID, ref.Owner.String(), ref.Epoch, running())
	if done.Error == nil && done.RowsAffected == 0 {
		done.Error = core.ErrLostOwner
	}
	if done.Error != nil {
		return fmt.Errorf("context of job execution %d: %w", ref.ID, done.Error)
	}
	return nil
}

// SaveStepContext implements core.Transitions: one guarded UPDATE, for a context
// that changed.
func (r *Repository) SaveStepContext(ctx context.Context, ref core.StepRef, c *core.ExecutionContext) error {
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
