package repository

import (
	"context"

	"gorm.io/gorm/clause"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// noteLaunch records the launch in the audit, with the act and the person if a person launched it.
func (l *launch) noteLaunch(row *jobExecution) {
	launched := audit{JobExecutionID: row.ID, Epoch: row.Epoch}
	if by := l.req.Actor; by != "" {
		launched.Verb, launched.Person, launched.JobName, launched.Detail = l.verb(), storable(by), l.req.JobName, storable(l.repo.store.mask("for "+by+l.because()))
	}
	l.ledger.note(jobMachine, int64(row.ID), launched, actLaunch, core.Move[core.Status]{To: row.Status})
}

func (l *launch) because() string {
	if l.req.Reason == "" {
		return ""
	}
	return ": " + l.req.Reason
}

// verb is the launch's name for the person who requested it.
func (l *launch) verb() string {
	switch {
	case l.req.RedriveOf != 0:
		return ports.VerbRedrive
	case l.launched.Previous != nil:
		return ports.VerbRestart
	}
	return ports.VerbRun
}

// follow copies to the new execution the values that it continues from the previous one, if any.
func (l *launch) follow(row *jobExecution) error {
	p := l.launched.Previous
	if p == nil {
		return nil
	}
	row.Attempt, row.Epoch, row.LastEpoch = p.Attempt+1, p.Epoch, p.Epoch
	if !p.Time.IsZero() {
		row.JobTime = instant{Time: p.Time}
	}
	l.req.FromStart = l.req.FromStart || p.Parent < l.req.ParentAnew
	if l.req.FromStart {
		return nil
	}
	text, err := p.Context.Encode()
	if err != nil {
		return err
	}
	row.Context = string(text)
	return nil
}

// inheritStop copies a requested stop from the parent to a new child, unless the child belongs to
// `finally`. The parent's row stays locked until the child exists: a request either comes before,
// and is seen here, or after, and finds the child.
func (l *launch) inheritStop(ctx context.Context, child *jobExecution) error {
	var parents []jobExecution
	err := l.repo.store.session(ctx).Select("stop_requested").Where("id = ?", l.req.Parent).
		Clauses(clause.Locking{Strength: "SHARE"}).Find(&parents).Error
	if err == nil && len(parents) > 0 {
		child.StopRequested = parents[0].StopRequested
	}
	if err != nil || !child.StopRequested {
		return err
	}
	var flow []string
	err = l.repo.store.scan(ctx, &flow, "SELECT flow FROM {step_execution} WHERE id = ?", l.req.ParentCall)
	child.StopRequested = len(flow) == 0 || flow[0] != ports.FlowFinally
	return err
}

// startOver notes in the job context that all earlier executions are history only, except for the
// parts that its journal keeps. Later executions inherit the context.
func (l *launch) startOver(ctx context.Context, row *jobExecution) error {
	fresh := core.NewExecutionContext()
	switch from := l.req.From; {
	case l.req.FromStart:
	case from == nil:
		return nil
	default:
		if of := l.launched.Previous.Context; of != nil {
			fresh = of.Clone()
		}
		if err := l.repo.store.storeVisits(ctx, row.ID, from.Visits); err != nil {
			return err
		}
	}
	if err := fresh.Put(core.FromStartKey, int64(row.ID)); err != nil {
		return err
	}
	text, err := fresh.Encode()
	if err != nil {
		return err
	}
	row.Context = string(text)
	return l.repo.store.exec(ctx, "UPDATE {job_execution} SET context = ? WHERE id = ?", row.Context, row.ID).Error
}
