package repository

import (
	"context"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Acts of audit rows, and triggers of events.
const (
	actLaunch      = "launch"
	actTakeOver    = "take over"
	actChangeJob   = "change job"
	actRequestStop = "request stop"
	actStartStep   = "start step"
	actEndStep     = "end step"
	actPlan        = "plan partitions"
	actBeginStep   = "begin step"
	actAbandon     = "abandon"
	actRecover     = "recover"
	actPurge       = "purge"
	actPark        = "park"
	actResume      = "resume"
	actAssign      = "assign"
	actRelease     = "release"
	actSettle      = "settle"
)

// auditBatch is the number of audit rows in one INSERT: below the databases' limits of bind
// variables.
const auditBatch = 500

// The labels of errors and events: both kinds of execution share one table of moves, but not their
// IDs.
const (
	jobMachine  = "job execution"
	stepMachine = "step execution"
)

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

// recorded runs f in a transaction, stores the audit rows that f notes, and notifies the observer
// of them once the transaction commits. It returns the ledger of f.
func (r *auditor) recorded(ctx context.Context, actor string, f func(ctx context.Context, l *ledger) error) (*ledger, error) {
	l := &ledger{actor: actor}
	err := r.store.transact(ctx, func(ctx context.Context) error {
		*l = ledger{actor: actor}
		if err := f(ctx, l); err != nil {
			return err
		}
		if len(l.audits) == 0 {
			return nil
		}
		return r.store.session(ctx).CreateInBatches(&l.audits, auditBatch).Error
	})
	if err != nil {
		return nil, err
	}
	for _, e := range l.events {
		r.notify(ctx, e)
	}
	return l, nil
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

func (l *ledger) noteSteps(steps []stepExecution, act string, move core.Move[core.Status]) {
	for _, s := range steps {
		l.note(stepMachine, int64(s.ID), audit{
			JobExecutionID: s.JobExecutionID, StepExecutionID: s.ID, FromStatus: s.StatusBefore, Epoch: s.Epoch,
		}, act, move)
	}
}

type verdict struct {
	answer  core.Answer
	current core.Status // the row's status
	err     error       // if rejected
	race    bool        // of the transition
	failed  []audit     // unfinished steps that ended with their job
}

func (r *auditor) answered(ctx context.Context, machine string, id int64, move core.Move[core.Status], act string, v verdict) {
	r.notify(ctx, core.Transitioned{
		Machine: machine, Move: move.Name, ID: id, To: move.To, Current: v.current, Answer: v.answer, Trigger: act, Race: v.race,
	})
}

// notify passes an event on: an applied transition when the transaction that ctx carries commits,
// and never if it rolls back.
func (r *auditor) notify(ctx context.Context, e core.Transitioned) {
	if e.Answer != core.Applied {
		r.observer.Observe(ctx, e)
		return
	}
	tx.AtEnd(ctx, r.store.db.Name(), func(committed bool) {
		if committed {
			r.observer.Observe(ctx, e)
		}
	})
}

// refusalError rolls back a launch that changed nothing.
type refusalError struct{ reason error }

func (e *refusalError) Error() string { return e.reason.Error() }

func (e *refusalError) Unwrap() error { return e.reason }

// refusal wraps err so that the transaction, which changed nothing, is rolled back.
func refusal(err error) error {
	if err == nil {
		return nil
	}
	return &refusalError{err}
}
