package tasks

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"gorm.io/gorm/clause"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// submissions implements taskports.Submissions.
type submissions struct {
	*moves
	order   order
	groups  groups
	waiters *waiters
}

const defaultPriority = 2

// insertBatch is the number of tasks in one INSERT: their values are bind variables.
const insertBatch = 500

// errRaced rolls back a submission if another process stored one of its keys concurrently.
var errRaced = errors.New("another submission has one of the keys")

func (r submissions) Submit(ctx context.Context, s task.Submission) (*task.Submitted, []taskports.Delivery, error) {
	var done *task.Submitted
	var waiting []taskports.Delivery
	attr := r.attr()
	if _, inside := tx.From(ctx, r.db.Name()); inside {
		attr = tx.Attr{Propagation: tx.Nested} // a race rolls back only our part
	}
	for {
		err := r.manager.Do(ctx, attr, func(ctx context.Context) (err error) {
			if done, err = r.submitted(ctx, s); err != nil || done != nil {
				return err
			}
			done, waiting, err = r.submit(ctx, s)
			return err
		})
		if errors.Is(err, errRaced) {
			continue // the other one is committed: it is found now
		}
		if err != nil {
			return nil, nil, fmt.Errorf("submit %d tasks: %w", len(s.Tasks), err)
		}
		return done, waiting, nil
	}
}

// submitted returns the result stored earlier under the keys of the submission, or nil.
func (r submissions) submitted(ctx context.Context, s task.Submission) (*task.Submitted, error) {
	if s.IdempotencyKey != "" {
		var groups []taskGroup
		if err := r.session(ctx).Where("idempotency_key = ?", s.IdempotencyKey).Find(&groups).Error; err != nil {
			return nil, err
		}
		if len(groups) == 1 {
			if groups[0].RequestHash != hashOf(s) {
				return nil, fmt.Errorf("idempotency_key %q: %w: group %d", s.IdempotencyKey, taskports.ErrOtherSubmission, groups[0].ID)
			}
			ids, err := r.tasksOf(ctx, groups[0].ID)
			return &task.Submitted{Group: groups[0].ID, Tasks: ids, Duplicate: true}, err
		}
	}
	return r.submittedTasks(ctx, s)
}

func (r submissions) submittedTasks(ctx context.Context, s task.Submission) (*task.Submitted, error) {
	keys := map[string]int{}
	for i, spec := range s.Tasks {
		if spec.IdempotencyKey != "" {
			keys[spec.IdempotencyKey] = i
		}
	}
	done := &task.Submitted{Tasks: make([]task.ID, len(s.Tasks)), Duplicate: true}
	found := 0
	all := make([]string, 0, len(keys))
	for key := range keys {
		all = append(all, key)
	}
	for batch := range slices.Chunk(all, insertBatch) {
		var rows []taskRow
		err := r.scan(ctx, &rows, "SELECT id, group_id, idempotency_key, request_hash FROM {task} WHERE idempotency_key IN ?", batch)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			i := keys[*row.IdempotencyKey]
			if row.RequestHash != hashOf(s.Tasks[i]) {
				return nil, fmt.Errorf("tasks[%d]: idempotency_key %q: %w: task %d", i, *row.IdempotencyKey, taskports.ErrOtherSubmission, row.ID)
			}
			done.Tasks[i], done.Group, found = row.ID, row.GroupID, found+1
		}
	}
	switch {
	case found == 0:
		return nil, nil
	case found < len(s.Tasks):
		return nil, fmt.Errorf("%w: %d of the %d tasks were submitted before, in group %d", taskports.ErrOtherSubmission, found, len(s.Tasks), done.Group)
	}
	return done, nil
}

func (r submissions) submit(ctx context.Context, s task.Submission) (*task.Submitted, []taskports.Delivery, error) {
	order, err := model.TaskOrder(s)
	if err != nil {
		return nil, nil, err
	}
	budget, err := json.Marshal(groupBounds{s.Budget.Filled(), s.Parallel})
	if err != nil {
		return nil, nil, err
	}
	group := taskGroup{
		StepExecutionID: orNil(s.Step), Title: s.Title, Budget: string(budget), Decider: s.Decider, TaskCount: int64(len(s.Tasks)), IdempotencyKey: orNil(s.IdempotencyKey),
		RequestHash: hashOf(s), MaxTotalAttempts: int64(s.Budget.MaxTotalAttempts), Ordered: order != nil || s.Parallel > 0, CreatedAt: gormtx.Clock(0), UpdatedAt: gormtx.Clock(0),
	}
	if s.Budget.Deadline > 0 {
		group.DeadlineAt = gormtx.Clock(s.Budget.Deadline)
	}
	made := r.session(ctx).Clauses(clause.OnConflict{DoNothing: true}).Create(&group)
	if made.Error != nil {
		return nil, nil, made.Error
	}
	if made.RowsAffected == 0 {
		return nil, nil, errRaced
	}
	rows, room := make([]taskRow, len(s.Tasks)), s.Parallel
	for i, spec := range s.Tasks {
		if rows[i], err = newRow(group.ID, i, spec); err != nil {
			return nil, nil, fmt.Errorf("tasks[%d]: %w", i, err)
		}
		rows[i].DeadlineAt = group.DeadlineAt
		switch {
		case order != nil && len(order[i]) > 0, s.Parallel > 0 && room == 0:
			rows[i].State = task.Waiting
		default:
			room--
		}
	}
	made = r.session(ctx).Table(r.table()).Clauses(clause.OnConflict{DoNothing: true}).CreateInBatches(rows, insertBatch)
	if made.Error != nil {
		return nil, nil, made.Error
	}
	if made.RowsAffected < int64(len(rows)) {
		return nil, nil, r.whyNotStored(ctx, s, int64(group.ID))
	}
	var stored []taskRow
	err = r.scan(ctx, &stored, "SELECT id, epoch, type, priority, placement, next_run_at, state FROM {task} WHERE group_id = ? ORDER BY ordinal", group.ID)
	if err != nil {
		return nil, nil, err
	}
	done := &task.Submitted{Group: group.ID, Tasks: make([]task.ID, len(stored))}
	for i, row := range stored {
		done.Tasks[i] = row.ID
	}
	if err := r.storeOrder(ctx, s, order, done.Tasks); err != nil {
		return nil, nil, err
	}
	return done, deliveries(slices.DeleteFunc(stored, func(row taskRow) bool { return row.State == task.Waiting })), nil
}

func newRow(group task.GroupID, i int, spec task.Spec) (taskRow, error) {
	row := taskRow{
		GroupID: group, Ordinal: int64(i) + 1, Type: spec.Type, Priority: cmp.Or(spec.Priority, defaultPriority), Payload: string(spec.Payload),
		TimeoutUs: spec.Timeout.Microseconds(), State: task.Pending, Epoch: 1, ContinuationState: notConfirming,
		IdempotencyKey: orNil(spec.IdempotencyKey), RequestHash: hashOf(spec), JobDefinitionID: orNil(spec.JobDefinition), ScheduledFor: orNil(spec.ScheduledFor),
		Placement: spec.On.Stored(), DeliveredAt: gormtx.Clock(0), CreatedAt: gormtx.Clock(0), UpdatedAt: gormtx.Clock(0),
	}
	if spec.Delay > 0 {
		row.NextRunAt = gormtx.Clock(spec.Delay)
	}
	spec.Type, spec.Payload, spec.Priority, spec.Timeout = "", nil, 0, 0
	text, err := json.Marshal(spec)
	row.Spec = string(text)
	return row, err
}

func (r submissions) storeOrder(ctx context.Context, s task.Submission, order [][]int, ids []task.ID) error {
	var rows []taskAfter
	for i, needs := range order {
		for _, j := range needs {
			key := s.Tasks[j].Key
			if key == "" {
				key = s.Tasks[j].IdempotencyKey
			}
			rows = append(rows, taskAfter{TaskID: ids[i], NeedsID: ids[j], Needs: key})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	return r.session(ctx).CreateInBatches(rows, insertBatch).Error
}

func (r submissions) tasksOf(ctx context.Context, group task.GroupID) ([]task.ID, error) {
	var ids []task.ID
	err := r.scan(ctx, &ids, "SELECT id FROM {task} WHERE group_id = ? ORDER BY ordinal", group)
	return ids, err
}

// scheduledTime is a time of a definition, for which one task exists.
type scheduledTime struct {
	definition int64
	at         string
}

// whyNotStored returns why tasks of a submission were not inserted. errRaced means that another
// submission has one of the idempotency keys, and can be found by it. With any other error a retry
// would be useless.
func (r submissions) whyNotStored(ctx context.Context, s task.Submission, group int64) error {
	keys, times := map[string]int{}, map[scheduledTime]int{}
	for i, spec := range s.Tasks {
		if first, twice := keys[spec.IdempotencyKey]; twice && spec.IdempotencyKey != "" {
			return fmt.Errorf("tasks[%d]: idempotency_key %q: %w: tasks[%d]", i, spec.IdempotencyKey, taskports.ErrOtherSubmission, first)
		}
		keys[spec.IdempotencyKey] = i
		if spec.JobDefinition == 0 || spec.ScheduledFor == "" {
			continue
		}
		at := scheduledTime{spec.JobDefinition, spec.ScheduledFor}
		if first, twice := times[at]; twice {
			return fmt.Errorf("tasks[%d]: scheduled_for %q of definition %d: %w: tasks[%d]", i, at.at, at.definition, taskports.ErrOtherSubmission, first)
		}
		times[at] = i
		var rows []taskRow
		err := r.scan(ctx, &rows, "SELECT id, idempotency_key FROM {task} WHERE job_definition_id = ? AND scheduled_for = ? AND group_id <> ?", at.definition, at.at, group)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if row.IdempotencyKey == nil || *row.IdempotencyKey != spec.IdempotencyKey {
				return fmt.Errorf("tasks[%d]: scheduled_for %q of definition %d: %w: task %d", i, at.at, at.definition, taskports.ErrOtherSubmission, row.ID)
			}
		}
	}
	return errRaced
}

func hashOf(request any) string {
	text, err := json.Marshal(request)
	if err != nil { // checked before: only invalid JSON cannot be marshaled
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
