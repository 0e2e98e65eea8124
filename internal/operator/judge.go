package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type judge struct {
	schema  *schema
	records judgeRecords
	dead    func(core.Owner) bool
	now     func() time.Time
	carries func(name string) bool
}

type judgeRecords interface {
	Execution(ctx context.Context, id core.JobExecutionID) (*core.JobExecution, error)
	LastExecution(ctx context.Context, jobName, key string) (*core.JobExecution, error)
	NewestAttempts(ctx context.Context, dead func(core.Owner) bool, ids ...core.JobInstanceID) (map[core.JobInstanceID]ports.NewestAttempt, error)
	Judged(ctx context.Context, req ports.JudgedRequest) ([]ports.JudgedExecution, error)
}

func (s *judge) record(ctx context.Context, id core.JobExecutionID) (*core.JobExecution, error) {
	if err := s.schema.Prepare(ctx); err != nil {
		return nil, err
	}
	return s.found(ctx, id)
}

func (s *judge) found(ctx context.Context, id core.JobExecutionID) (*core.JobExecution, error) {
	e, err := s.records.Execution(ctx, id)
	if errors.Is(err, core.ErrNotFound) {
		return nil, &Refusal{Reason: refusal.NotFound, Execution: id, Err: err, Actions: []Action{{Kind: refusal.ActHistory}}}
	}
	if errors.Is(err, ports.ErrUnreadable) {
		return nil, &Refusal{Reason: refusal.IllegalState, Execution: id, Err: err, Actions: []Action{{Kind: refusal.ActShow, Execution: id}}}
	}
	return e, err
}

func (s *judge) lastExecution(ctx context.Context, name, key string) (*core.JobExecution, error) {
	last, err := s.records.LastExecution(ctx, name, key)
	switch {
	case errors.Is(err, core.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("find the last execution of an instance: %w", err)
	}
	return last, nil
}

func (s *judge) newestAttempt(ctx context.Context, e *core.JobExecution) (ports.NewestAttempt, error) {
	found, err := s.records.NewestAttempts(ctx, s.dead, e.InstanceID)
	return s.newestOf(e, found), err
}

// Leases are judged by the clock of the database, which has set them (rule L6).
func (s *judge) judged(ctx context.Context, records []core.JobExecution) ([]ports.JudgedExecution, error) {
	var ids []core.JobInstanceID
	for _, e := range records {
		if e.Status != core.StatusCompleted { // a complete one needs no action
			ids = append(ids, e.InstanceID)
		}
	}
	slices.Sort(ids)
	newest, err := s.records.NewestAttempts(ctx, s.dead, slices.Compact(ids)...)
	judged := make([]ports.JudgedExecution, len(records))
	for i := range records {
		judged[i] = ports.JudgedExecution{Execution: records[i], Newest: s.newestOf(&records[i], newest)}
	}
	return judged, err
}

func (s *judge) judgedExecution(ctx context.Context, id core.JobExecutionID) (*ports.JudgedExecution, error) {
	return judgedOf(ctx, s.records, s.dead, id)
}

type judgedReader interface {
	Judged(ctx context.Context, req ports.JudgedRequest) ([]ports.JudgedExecution, error)
}

// seen returns an execution for a view, without its unreadable parts.
func seen(ctx context.Context, records judgedReader, id core.JobExecutionID) (*core.JobExecution, error) {
	judged, err := judgedOf(ctx, records, nil, id)
	if err != nil {
		return nil, err
	}
	return &judged.Execution, nil
}

func judgedOf(ctx context.Context, records judgedReader, dead func(core.Owner) bool, id core.JobExecutionID) (*ports.JudgedExecution, error) {
	found, err := records.Judged(ctx, ports.JudgedRequest{IDs: []core.JobExecutionID{id}, Dead: dead})
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("job execution %d: %w", id, core.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	return &found[0], nil
}

func (s *judge) newestOf(e *core.JobExecution, found map[core.JobInstanceID]ports.NewestAttempt) ports.NewestAttempt {
	newest, ok := found[e.InstanceID]
	switch {
	case !ok: // it was purged in between
		return s.asNewest(e)
	case newest.Execution.ID == e.ID:
		newest.Execution = *e
	}
	return newest
}

// asNewest judges by the clock of this machine, without a query.
func (s *judge) asNewest(e *core.JobExecution) ports.NewestAttempt {
	over := !e.LeaseUntil.IsZero() && s.now().After(e.LeaseUntil)
	return ports.NewestAttempt{Execution: *e, Lost: e.Status.IsRunning() && e.Owner != core.Owner{} && (over || s.dead(e.Owner))}
}

// lost reports whether a worker with that lease of a part is gone.
func (s *judge) lost(worker core.Owner, until time.Time) bool {
	return !until.IsZero() && (s.now().After(until) || s.dead(worker))
}

func (s *judge) actionsFor(e *core.JobExecution, newest *ports.NewestAttempt) []Action {
	if newest.Execution.ID != e.ID {
		return []Action{{Kind: refusal.ActShow, Execution: newest.Execution.ID, Status: newest.Execution.Status}}
	}
	reason := reasonOf(newest.Refusal(true))
	switch {
	case reason == refusal.Unknown:
		return append([]Action{{Kind: refusal.ActAbandon, Execution: e.ID, Status: e.Status}}, newInstance(e)...)
	case reason == refusal.Abandoned:
		return newInstance(e)
	case reason == refusal.Running && isParked(e):
		return []Action{{Kind: refusal.ActStop, Execution: e.ID}, {Kind: refusal.ActWork, Execution: e.ID, Open: newest.Open}}
	case reason == refusal.Running && !e.Status.IsOver():
		return []Action{{Kind: refusal.ActStop, Execution: e.ID}, {Kind: refusal.ActRecover}}
	case reason == refusal.Running: // the owner of a step is lost
		return []Action{s.recoverAction(e.ID, e.Owner)}
	case reason == "" && !e.Status.IsOver(): // its owner is lost
		return []Action{s.recoverAction(e.ID, e.Owner), s.restartAction(e, false)}
	case reason == "":
		return []Action{s.restartAction(e, false)}
	}
	return nil
}

// restartAction returns the action that restarts an execution. With otherFile the request must name
// a job file, because the execution's cannot be used.
func (s *judge) restartAction(e *core.JobExecution, otherFile bool) Action {
	if e.RedriveOf != 0 {
		return Action{Kind: refusal.ActRedrive, Execution: e.RedriveOf, NeedsFile: otherFile, Step: redrivenStep(e.Params)}
	}
	return Action{Kind: refusal.ActRestart, Execution: e.ID, Status: e.Status, NeedsFile: otherFile || e.Definition.Path == "" && e.Definition.Text == "" && !s.carries(e.JobName)}
}

func (s *judge) recoverAction(id core.JobExecutionID, owner core.Owner) Action {
	if !s.dead(owner) {
		return Action{Kind: refusal.ActRecover}
	}
	return Action{Kind: refusal.ActRecover, Execution: id, Owner: &Owner{Host: owner.Host, PID: owner.PID, Dead: true}}
}

// whileRunning: if its process has died by now, its end is all there is to
// show.
func (s *judge) whileRunning(ctx context.Context, id core.JobExecutionID, owner core.Owner, open ports.OpenWork) []Action {
	show := Action{Kind: refusal.ActShow, Execution: id, Status: core.StatusStarted}
	if owner == (core.Owner{}) { // it is parked
		return []Action{show, {Kind: refusal.ActStop, Execution: id}, {Kind: refusal.ActWork, Execution: id, Open: open}}
	}
	end := s.recoverAction(id, owner)
	if end.Owner == nil {
		return []Action{show, {Kind: refusal.ActStop, Execution: id}, end}
	}
	e, err := s.records.Execution(ctx, id)
	if err == nil && e.Status.IsOver() { // if the read failed, the refusal stands
		show.Status = e.Status
		return []Action{show}
	}
	return []Action{show, end}
}

func (s *judge) whileExcluded(ctx context.Context, err error) []Action {
	excluded, _ := errors.AsType[*ports.ExclusiveError](err)
	return s.whileRunning(ctx, excluded.Running.ExecutionID, excluded.Running.Owner, excluded.Running.Open)
}

func (s *judge) notNewest(ctx context.Context, refused *ports.NotNewestError) error {
	r := &Refusal{Reason: refusal.NotNewest, Execution: refused.Execution, Err: refused,
		Actions: []Action{{Kind: refusal.ActShow, Execution: refused.Newest, Status: refused.Status}}}
	e, err := s.records.Execution(ctx, refused.Newest)
	if err != nil {
		return errors.Join(r, err)
	}
	newest, err := s.newestAttempt(ctx, e)
	if err != nil {
		return errors.Join(r, err)
	}
	r.Actions = append(r.Actions, s.actionsFor(e, &newest)...)
	return r
}

// unmoved refuses an act for another epoch of an execution, or one that is not the newest any more.
func (s *judge) unmoved(ctx context.Context, id core.JobExecutionID, epoch int64, newest ports.NewestAttempt) error {
	e := &newest.Execution
	if epoch == 0 || e.ID == id && e.Epoch == epoch {
		return nil
	}
	return s.moved(ctx, &ports.MovedError{Execution: id, Newest: e.ID, Status: e.Status, Epoch: e.Epoch})
}

func (s *judge) moved(ctx context.Context, err error) error {
	moved, _ := errors.AsType[*ports.MovedError](err)
	r := &Refusal{Reason: refusal.Moved, Execution: moved.Execution, Err: err, Now: &refusal.State{Execution: moved.Newest, Status: moved.Status, Epoch: moved.Epoch},
		Actions: []Action{{Kind: refusal.ActShow, Execution: moved.Newest, Status: moved.Status}}}
	e, err := s.records.Execution(ctx, moved.Newest)
	if err != nil {
		return errors.Join(r, err)
	}
	newest, err := s.newestAttempt(ctx, e)
	if err != nil {
		return errors.Join(r, err)
	}
	r.Actions = append(r.Actions, s.actionsFor(e, &newest)...)
	return r
}

func boundTo(id core.JobExecutionID, epoch int64) *ports.Bound {
	if epoch == 0 {
		return nil
	}
	return &ports.Bound{Execution: id, Epoch: epoch}
}
