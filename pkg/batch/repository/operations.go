package repository

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/internal/gormtx"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// operations implements ports.Operations.
type operations struct {
	*moves
	takeovers *takeovers
	stops     *stops
	reads     *explorer
}

// jobAbandoned is the reason shown by a step that was unfinished when its job was abandoned.
const jobAbandoned = "the job was abandoned"

// Abandon implements ports.Operations in one transaction: one guarded UPDATE, one of the steps, and
// their audit rows. In STOPPING it raises the epoch of the execution and of every unfinished step,
// so that the owner commits nothing more: a chunk that is just committing either counts or rolls
// back with its rows (rule L5). It requests a stop of the child jobs. To abandon an abandoned
// execution succeeds.
//
// The instance is locked as by a launch, so that the execution is still the newest when it is
// abandoned. An older one is refused with a *ports.NotNewestError, a running or completed one with a
// *core.TransitionError and a *ports.AlreadyRunningError, an unknown one with a core.ErrNotFound.
func (r *operations) Abandon(ctx context.Context, id core.JobExecutionID, by ports.By) error {
	m := jobMove(id, ports.MoveTo(core.StatusAbandoned), actAbandon)
	m.by(by)
	m.reason = jobAbandoned
	m.set("epoch = CASE WHEN status = ? THEN epoch + 1 ELSE epoch END", core.StatusStopping)
	m.set("ended_at = COALESCE(ended_at, {now})")
	m.set("active = NULL")
	var answer core.Answer
	err := r.store.transact(ctx, func(ctx context.Context) (err error) {
		if err = r.lockNewest(ctx, id); err == nil {
			answer, err = r.transition(ctx, m)
		}
		return err
	})
	var refused *core.TransitionError
	if err == nil && answer == core.Applied {
		by.Epoch = 0
		return r.stops.stopChildren(ctx, id, by)
	}
	if err != nil && (!errors.As(err, &refused) || errors.Is(err, core.ErrNotFound)) {
		return err
	}
	exec, readErr := r.reads.Execution(ctx, id)
	if readErr != nil {
		return errors.Join(err, readErr)
	}
	if exec.Status == core.StatusAbandoned {
		return nil
	}
	if refused == nil { // completed, which is not an error if its end came late
		refused = m.refusal(exec.Status)
	}
	return r.moved(ctx, id, by, &notAbandonedError{refused: refused, running: ports.AlreadyRunningError{
		ExecutionID: id, JobName: exec.JobName, Owner: exec.Owner, LeaseUntil: exec.LeaseUntil,
	}})
}

// lockNewest locks the instance of the execution, and refuses an execution that is not the newest.
func (r *operations) lockNewest(ctx context.Context, id core.JobExecutionID) error {
	var named, newest []jobExecution
	err := r.store.scan(ctx, &named, "SELECT id, instance_id, job_name FROM {job_execution} WHERE id = ?", id)
	if err != nil || len(named) == 0 { // the transition reports that it is unknown
		return err
	}
	if err := r.store.lockInstances(ctx, []core.JobInstanceID{named[0].InstanceID}); err != nil {
		return err
	}
	err = r.store.scan(ctx, &newest, "SELECT id, status FROM {job_execution} WHERE instance_id = ? ORDER BY id DESC LIMIT 1", named[0].InstanceID)
	if err == nil && len(newest) > 0 && newest[0].ID != id {
		return &ports.NotNewestError{JobName: named[0].JobName, Execution: id, Newest: newest[0].ID, Status: newest[0].Status}
	}
	return err
}

// notAbandonedError refuses to abandon a running or completed execution. For the caller it is an
// AlreadyRunningError in both cases: the execution does not wait for a decision.
type notAbandonedError struct {
	refused *core.TransitionError
	running ports.AlreadyRunningError
}

func (e *notAbandonedError) Error() string {
	if e.refused.Current == core.StatusCompleted {
		return fmt.Sprintf("job %s, execution %d is COMPLETED: there is nothing to abandon", e.running.JobName, e.running.ExecutionID)
	}
	return fmt.Sprintf("%v; it is %s: stop it first (`surfin stop %d`)", &e.running, e.refused.Current, e.running.ExecutionID)
}

func (e *notAbandonedError) Unwrap() []error { return []error{e.refused, &e.running} }

// Recover implements ports.Operations with a transaction for each execution, so that a failure of
// one does not keep the others. The lease is judged again under the row's lock: an owner that
// renews it meanwhile keeps it. The result includes executions that had already ended with an
// unfinished step.
func (r *operations) Recover(ctx context.Context, actor string, dead func(core.Owner) bool) ([]core.JobExecution, error) {
	lost, err := r.lostCandidates(ctx, dead)
	if err != nil {
		return nil, fmt.Errorf("recover: %w", err)
	}
	var ended []core.JobExecutionID
	var errs []error
	for _, c := range lost {
		done, err := r.takeovers.recover(ctx, c, actor)
		if err != nil {
			errs = append(errs, fmt.Errorf("recover job execution %d: %w", c.Row.ID, err))
			continue
		}
		if done {
			ended = append(ended, c.Row.ID)
		}
	}
	unsettled, err := r.takeovers.settleable(ctx)
	if err != nil {
		errs = append(errs, fmt.Errorf("recover: %w", err))
	}
	for _, id := range unsettled {
		l, err := r.recorded(ctx, actor, func(ctx context.Context, l *ledger) error { return r.takeovers.settle(ctx, id, l) })
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("recover job execution %d: %w", id, err))
		case len(l.audits) > 0:
			ended = append(ended, id)
		}
	}
	var found []core.JobExecution
	for batch := range slices.Chunk(ended, batchSize) {
		page, err := r.reads.executions(r.store.session(ctx).Where("id IN ?", batch), false, len(batch))
		if err != nil {
			errs = append(errs, fmt.Errorf("recover: %w", err))
		}
		found = append(found, page...)
	}
	slices.SortFunc(found, func(a, b core.JobExecution) int { return cmp.Compare(a.ID, b.ID) })
	return found, errors.Join(errs...)
}

func (r *operations) lostCandidates(ctx context.Context, dead func(core.Owner) bool) ([]lostCandidate, error) {
	lost, err := r.takeovers.lostOf(ctx, "status IN ?", dead)
	if err != nil {
		return nil, err
	}
	var over []lostCandidate
	err = r.store.scan(ctx, &over, `SELECT e.id, e.status, e.owner, e.epoch FROM {job_execution} e
		WHERE e.id IN (SELECT job_execution_id FROM {step_execution} WHERE `+openStep+`) AND e.status NOT IN ?`, running())
	return append(lost, over...), err
}

// Audit implements ports.Operations: one statement.
func (r *operations) Audit(ctx context.Context, id core.JobExecutionID) ([]ports.AuditEntry, error) {
	var rows []audit
	if err := gormtx.Find(r.store.session(ctx).Where("job_execution_id = ?", id).Order("id"), &rows); err != nil {
		return nil, fmt.Errorf("list the audit of job execution %d: %w", id, err)
	}
	list := make([]ports.AuditEntry, len(rows))
	for i, row := range rows {
		list[i] = ports.AuditEntry{
			At: row.At.Time, Act: row.Act, Actor: row.Actor, Step: row.StepExecutionID,
			From: row.FromStatus, To: row.ToStatus, Epoch: row.Epoch, Detail: row.Detail,
		}
	}
	return list, nil
}
