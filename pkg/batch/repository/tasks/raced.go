package tasks

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// scheduledTime is a time of a definition, for which one task exists.
type scheduledTime struct {
	definition int64
	at         string
}

// whyNotStored returns why tasks of a submission were not inserted. errRaced means that another
// submission has one of the idempotency keys, and can be found by it. With any other error a retry
// would be useless.
func (r *Repository) whyNotStored(ctx context.Context, s task.Submission, group int64) error {
	keys, times := map[string]int{}, map[scheduledTime]int{}
	for i, spec := range s.Tasks {
		if first, twice := keys[spec.IdempotencyKey]; twice && spec.IdempotencyKey != "" {
			return fmt.Errorf("tasks[%d]: idempotency_key %q: %w: tasks[%d]", i, spec.IdempotencyKey, task.ErrOtherSubmission, first)
		}
		keys[spec.IdempotencyKey] = i
		if spec.JobDefinition == 0 || spec.ScheduledFor == "" {
			continue
		}
		at := scheduledTime{spec.JobDefinition, spec.ScheduledFor}
		if first, twice := times[at]; twice {
			return fmt.Errorf("tasks[%d]: scheduled_for %q of definition %d: %w: tasks[%d]", i, at.at, at.definition, task.ErrOtherSubmission, first)
		}
		times[at] = i
		var rows []taskRow
		err := r.scan(ctx, &rows, "SELECT id, idempotency_key FROM {task} WHERE job_definition_id = ? AND scheduled_for = ? AND group_id <> ?", at.definition, at.at, group)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if row.IdempotencyKey == nil || *row.IdempotencyKey != spec.IdempotencyKey {
				return fmt.Errorf("tasks[%d]: scheduled_for %q of definition %d: %w: task %d", i, at.at, at.definition, task.ErrOtherSubmission, row.ID)
			}
		}
	}
	return errRaced
}
