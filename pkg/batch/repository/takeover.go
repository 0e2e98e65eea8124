package repository

import (
	"context"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// endLost (rule L5): the steps' update waits for a chunk being committed; with the epoch raised, positions are
// final. nil if it moved, or its owner renewed the lease, unless known dead.
func (r *Repository) endLost(ctx context.Context, row *jobExecution, dead bool, act string, l *ledger) (*jobExecution, error) {
	first, args := "", []any{core.StatusFailed, core.ExitFailed, lostOwner, ports.MoveTakeOver, row.ID, row.Owner, row.Epoch, running(), dead}
	if act != actTakeOver {
		first, args = r.parentFirst(), append(args, row.ID)
	}
	var jobs []jobExecution
	err := r.store.scan(ctx, &jobs, `UPDATE {job_execution}
		SET status_before = status, status = ?, exit_code = ?, error_text = ?, last_move = ?, last_epoch = epoch,
			epoch = epoch + 1, active = NULL, ended_at = {now}
		WHERE id = ? AND owner = ? AND epoch = ? AND status IN ? AND (? OR lease_until <= {now})`+first+`
		RETURNING status_before, epoch, ended_at, parent_id`, args...)
	if err != nil || len(jobs) == 0 {
		return nil, err
	}
	l.note(jobMachine, int64(row.ID), audit{
		JobExecutionID: row.ID, FromStatus: jobs[0].StatusBefore, Epoch: jobs[0].Epoch, Detail: "from " + row.Owner,
	}, act, ports.Executions().Move(ports.MoveTakeOver))
	if err := r.endSteps(ctx, row.ID, lostOwner, act, l); err != nil {
		return nil, err
	}
	return &jobs[0], r.childEnded(ctx, jobs[0].ParentID)
}

func (r *Repository) endSteps(ctx context.Context, id core.JobExecutionID, reason, act string, l *ledger) error {
	steps, err := r.failSteps(ctx, id, reason)
	l.noteSteps(steps, act, ports.Executions().Move(ports.MoveEndWithJob))
	return err
}

const (
	ofJob    = "job_execution_id"
	ofBranch = "branch_id"
)

// The raised epoch keeps running processes from committing.
func (r *Repository) failSteps(ctx context.Context, id core.JobExecutionID, reason string) ([]stepExecution, error) {
	return r.failOpen(ctx, ofJob, int64(id), openStep, reason)
}

func (r *Repository) failOpen(ctx context.Context, column string, id int64, states, reason string) ([]stepExecution, error) {
	var steps []stepExecution
	err := r.store.scan(ctx, &steps, `UPDATE {step_execution}
		SET status_before = status, status = ?, exit_code = ?, error_text = ?, last_move = ?, last_epoch = epoch,
			epoch = epoch + 1, ended_at = {now}
		WHERE `+column+` = ? AND `+states+r.managersFirst(column)+`
		RETURNING id, job_execution_id, status_before, epoch, manager_id, flow`,
		core.StatusFailed, core.ExitFailed, reason, ports.MoveEndWithJob, id, id)
	if err != nil {
		return nil, err
	}
	return steps, r.countEnded(ctx, steps)
}

// ledger collects audit rows and events for after the commit.
type ledger struct {
	actor  string
	audits []audit
	events []core.Transitioned
}

func (l *ledger) note(machine string, id int64, row audit, act string, move core.Move[core.Status]) {
	row.At, row.Act, row.Actor, row.ToStatus = clock(0), act, l.actor, move.To
	if act == actRecover && row.StepExecutionID == 0 {
		row.Verb, row.Person = ports.VerbRecover, l.actor
	}
	l.audits = append(l.audits, row)
	l.events = append(l.events, core.Transitioned{
		Machine: machine, Move: move.Name, ID: id, To: move.To, Current: row.FromStatus, Answer: core.Applied, Trigger: act,
	})
}

// It stores f's audit rows and notifies after the commit.
func (r *Repository) recorded(ctx context.Context, actor string, f func(ctx context.Context, l *ledger) error) (*ledger, error) {
	l := &ledger{actor: actor}
	err := r.store.transact(ctx, func(ctx context.Context) error {
		if err := f(ctx, l); err != nil {
			return err
		}
		return r.writeAudit(ctx, l)
	})
	if err != nil {
		return nil, err
	}
	r.notifyAll(ctx, l)
	return l, nil
}

func (r *Repository) writeAudit(ctx context.Context, l *ledger) error {
	if len(l.audits) == 0 {
		return nil
	}
	return r.store.session(ctx).CreateInBatches(&l.audits, auditBatch).Error
}

// After the commit of ctx's transaction.
func (r *Repository) notifyAll(ctx context.Context, l *ledger) {
	for _, e := range l.events {
		r.notify(ctx, e)
	}
}
