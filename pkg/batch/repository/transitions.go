package repository

import (
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm/clause"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// transitions implements ports.Transitions.
type transitions struct{ *jobGuard }

// ChangeJob implements ports.Transitions: one guarded UPDATE, and an audit row in its transaction. A
// final status also fails every unfinished step: no step outlives its job (rule T5), and a process
// that still runs one commits nothing. An empty ExitCode or Error leaves the stored one. The
// changed keys of the context are merged. The caller marks them as stored once the transaction of
// ctx commits.
func (r *transitions) ChangeJob(ctx context.Context, ref ports.JobRef, change ports.JobChange) (core.Answer, error) {
	m := ownJobMove(ref, endOf(change.To, change.Settles), actChangeJob)
	m.outcome(change.ExitCode, change.Error, change.Gate)
	m.detail, m.merge, m.visits = change.Error, change.Context, change.Visits
	if change.To == core.StatusStarted {
		m.set("started_at = {now}")
	}
	if change.To.IsOver() {
		m.set("ended_at = COALESCE(ended_at, {now})")
		m.set("active = NULL")
	}
	return r.transition(ctx, m)
}

// EndStep implements ports.Transitions: one guarded UPDATE, and an audit row in its transaction. The
// context is handled as in ChangeJob. A step that moves to ABANDONED keeps its counters, which its
// end has written.
func (r *transitions) EndStep(ctx context.Context, ref ports.StepRef, change ports.StepChange) (core.Answer, error) {
	m := stepMove(ref, endOf(change.To, change.Settles), actEndStep)
	m.detail = change.Error
	m.outcome(change.ExitCode, change.Error, change.Gate)
	switch {
	case change.To == core.StatusAbandoned: // its end is recorded, counters included
	case change.KeepCommitted:
		m.set("rollback_count = ?", change.Counters.Rollback)
	default:
		for i, value := range counterValues(change.Counters) {
			m.set(counterColumns()[i]+" = ?", value)
		}
		inHand, err := encodeCounts(change.InHand)
		if err != nil {
			return "", fmt.Errorf("step execution %d: %w", ref.ID, err)
		}
		if inHand != "" {
			m.set("in_hand_counts = ?", inHand)
		}
	}
	if change.To != core.StatusAbandoned && change.Closed {
		m.set("closed = ?", true)
	}
	if err := m.context(change.Context); err != nil {
		return "", fmt.Errorf("step execution %d: %w", ref.ID, err)
	}
	out, err := encodeOut(change.Out)
	if err != nil {
		return "", fmt.Errorf("step execution %d: %w", ref.ID, err)
	}
	if out != "" {
		m.set(`"out" = ?`, out)
	}
	if change.To.IsOver() {
		m.set("ended_at = COALESCE(ended_at, {now})")
	}
	m.visits, m.part = change.Visits, change.Part
	return r.transition(ctx, m)
}

// endOf returns the transition to a status. For UNKNOWN, settles means that a checkpoint determines
// the outcome.
func endOf(to core.Status, settles bool) core.Move[core.Status] {
	if to == core.StatusUnknown && settles {
		return ports.Executions().Move(ports.MoveLoseCommit)
	}
	return ports.MoveTo(to)
}

// Fence implements ports.Transitions. Reclaim protects an attempt that continues; Fence does the
// same against one that was abandoned: no write with an older epoch is accepted any more (rule L8).
func (r *transitions) Fence(ctx context.Context, ref ports.StepRef) (ports.StepRef, ports.Checkpoint, error) {
	return r.store.raiseEpoch(ctx, ref, ports.MoveFence)
}

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

// stops implements ports.Stops.
type stops struct{ *moves }

// RequestStop implements ports.Launches. Any process may request it: no owner is compared. A
// repeated request returns core.Duplicate. Running child jobs receive the request too, and each
// sees it at its own next commit.
func (r *stops) RequestStop(ctx context.Context, id core.JobExecutionID, by ports.By) (core.Answer, error) {
	m := jobMove(id, ports.Executions().Move(ports.MoveRequestStop), actRequestStop)
	m.by(by)
	m.set("stop_requested = ?", true)
	answer, err := r.transition(ctx, m)
	if refused, ok := errors.AsType[*core.TransitionError](err); ok && refused.Current == core.StatusStopping {
		answer, err = core.Duplicate, nil // a stop was requested before, and the execution was resumed to stop
	}
	if err != nil {
		return answer, r.moved(ctx, id, by, err)
	}
	by.Epoch = 0
	return answer, r.stopChildren(ctx, id, by)
}

// stopChildren requests a stop of the running child jobs, except children of `finally`.
func (r *stops) stopChildren(ctx context.Context, id core.JobExecutionID, by ports.By) error {
	var children []core.JobExecutionID
	err := r.store.scan(ctx, &children, `SELECT c.id FROM {job_execution} c WHERE c.parent_id = ? AND c.active = 1
		AND NOT EXISTS (SELECT 1 FROM {step_execution} s WHERE s.id = c.parent_call AND s.flow = ?)`, id, ports.FlowFinally)
	if err != nil {
		return fmt.Errorf("job execution %d: read its child jobs: %w", id, err)
	}
	for _, child := range children {
		if _, err := r.RequestStop(ctx, child, by); err != nil && !hasEnded(err) {
			return err
		}
	}
	return nil
}

func hasEnded(err error) bool {
	refused, ok := errors.AsType[*core.TransitionError](err)
	return ok && refused.Current != "" && refused.Current.IsOver()
}
