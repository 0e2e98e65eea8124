package repository

import (
	"context"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// endings end executions, and what must end or continue with them: the steps of a job or of a branch, and the
// manager or parent that waits for them.
type endings struct {
	store *store
	*auditor
	*announcements
}

// endLost ends an execution with a lost owner, and all its unfinished steps (rule L5). The update
// of the steps waits for a chunk that the old owner is committing. Once the epoch is raised, the
// positions are final. endLost returns nil if the execution has moved, or if its owner has renewed
// its lease, unless that owner is known to be dead.
func (r *endings) endLost(ctx context.Context, row *jobExecution, dead bool, act string, l *ledger) (*jobExecution, error) {
	first, args := "", []any{core.StatusFailed, core.ExitFailed, lostOwner, ports.MoveTakeOver, row.ID, row.Owner, row.Epoch, running(), dead}
	if act != actTakeOver { // a take-over has locked the row: its parent must not follow
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

func (r *endings) endSteps(ctx context.Context, id core.JobExecutionID, reason, act string, l *ledger) error {
	steps, err := r.failSteps(ctx, id, reason)
	l.noteSteps(steps, act, ports.Executions().Move(ports.MoveEndWithJob))
	return err
}

// The columns with which failOpen finds the steps.
const (
	ofJob    = "job_execution_id"
	ofBranch = "branch_id"
)

// failSteps ends every unfinished step of the job execution and raises its epoch,
// so that a process that still runs it commits nothing more. It returns id,
// status_before and epoch of each.
func (r *endings) failSteps(ctx context.Context, id core.JobExecutionID, reason string) ([]stepExecution, error) {
	return r.failOpen(ctx, ofJob, int64(id), openStep, reason)
}

// failOpen is failSteps for the steps of a job or of a branch, in unfinished states.
func (r *endings) failOpen(ctx context.Context, column string, id int64, states, reason string) ([]stepExecution, error) {
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

// auditor stores the audit of transitions, and notifies the observer of them.
type auditor struct {
	store    *store
	observer core.Observer
}

// ledger collects a transaction's audit rows, and the events that the observer receives once it
// commits.
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

// recorded runs f in a transaction, stores the audit rows that f notes, and notifies the observer
// of them once the transaction commits. It returns the ledger of f.
func (r *auditor) recorded(ctx context.Context, actor string, f func(ctx context.Context, l *ledger) error) (*ledger, error) {
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

func (r *auditor) writeAudit(ctx context.Context, l *ledger) error {
	if len(l.audits) == 0 {
		return nil
	}
	return r.store.session(ctx).CreateInBatches(&l.audits, auditBatch).Error
}

// notifyAll passes the events to the observer when the transaction that ctx carries commits.
func (r *auditor) notifyAll(ctx context.Context, l *ledger) {
	for _, e := range l.events {
		r.notify(ctx, e)
	}
}
