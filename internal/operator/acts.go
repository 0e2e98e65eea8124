package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/lease"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type acts struct {
	schema   *schema
	judge    *judge
	view     *viewer
	parked   *parked
	active   *runnings
	records  actRecords
	launcher *job.Launcher // may be nil
	tasks    OpenTasks     // may be nil
	notify   func(ctx context.Context, exec core.JobExecution) error
	actor    actor
}

type actRecords interface {
	Execution(ctx context.Context, id core.JobExecutionID) (*core.JobExecution, error)
	RequestStop(ctx context.Context, id core.JobExecutionID, by ports.By) (core.Answer, error)
	Abandon(ctx context.Context, id core.JobExecutionID, by ports.By) error
	Recover(ctx context.Context, actor string, dead func(core.Owner) bool) ([]core.JobExecution, error)
	Purge(ctx context.Context, filter ports.PurgeFilter, actor string) (ports.Purged, error)
}

// Stop requests a stop of an execution from its owner, in any process, and
// returns it. If it is parked and no worker has a partition of it, Stop ends it
// here. With an error of Config.Notify, or a *NotEndedError, the request
// stands.
func (s *acts) Stop(ctx context.Context, id core.JobExecutionID) (*Execution, error) {
	e, _, err := s.StopAnswer(ctx, id, 0)
	return e, err
}

// StopAnswer is Stop, and returns core.Applied or core.Duplicate. An execution with another epoch
// is refused (refusal.Moved); 0 means any.
func (s *acts) StopAnswer(ctx context.Context, id core.JobExecutionID, epoch int64) (*Execution, core.Answer, error) {
	e, err := s.judge.record(ctx, id)
	if err != nil {
		return nil, "", err
	}
	if e.Status.IsOver() {
		return s.view.execution(e), core.Rejected, s.nothingToStop(ctx, e)
	}
	answer, asking := s.records.RequestStop(ctx, id, s.actor.by(ctx, epoch))
	if e, err = s.records.Execution(ctx, id); err != nil {
		return nil, answer, errors.Join(asking, err)
	}
	if reasonOf(asking) == refusal.Moved {
		return nil, core.Rejected, s.judge.moved(ctx, asking)
	}
	if asking != nil {
		if e.Status.IsOver() { // it has just ended
			return s.view.execution(e), core.Rejected, s.nothingToStop(ctx, e)
		}
		return nil, answer, asking
	}
	if isParked(e) {
		e, err = s.parked.endParked(ctx, e)
		return s.view.execution(e), answer, err
	}
	if e.Status != core.StatusStopping {
		return s.view.execution(e), answer, nil
	}
	if s.active.ask(id) || s.notify == nil {
		return s.view.execution(e), answer, nil
	}
	if err := s.notify(ctx, *e); err != nil {
		return s.view.execution(e), answer, fmt.Errorf("job %s, execution %d: the stop is requested, but its owner could not be notified: %w", e.JobName, id, err)
	}
	return s.view.execution(e), answer, nil
}

func (s *acts) nothingToStop(ctx context.Context, e *core.JobExecution) error {
	r := &Refusal{Reason: refusal.Over, Execution: e.ID, Err: fmt.Errorf("execution %d has ended (%s): nothing to stop", e.ID, e.Status),
		Actions: []Action{{Kind: refusal.ActShow, Execution: e.ID, Status: e.Status}}}
	newest, err := s.judge.newestAttempt(ctx, e)
	if err != nil {
		return errors.Join(r, err)
	}
	r.Actions = append(r.Actions, s.judge.actionsFor(e, &newest)...)
	return r
}

const (
	firstPause = 20 * time.Millisecond
	maxPause   = time.Second
)

// AwaitEnd returns an execution when it has ended, or its process died without
// recording an end. Like Stop, it ends one that is parked with a requested
// stop.
func (s *acts) AwaitEnd(ctx context.Context, id core.JobExecutionID) (*Execution, error) {
	if !model.HasPatience(ctx) {
		ctx = model.WithPatience(ctx, lease.Waiting)
	}
	dead := false
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		e, err := s.records.Execution(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("read execution %d: %w", id, err)
		}
		e, notEnded := s.parked.endParked(ctx, e)
		if _, others := errors.AsType[*NotEndedError](notEnded); notEnded != nil && !others {
			return s.view.execution(e), notEnded
		}
		if e.Status.IsOver() || dead {
			return s.view.execution(e), nil
		}
		if dead = s.judge.dead(e.Owner); dead {
			continue // it may have ended just before the process died
		}
		select {
		case <-ctx.Done():
			return s.view.execution(e), errors.Join(fmt.Errorf("execution %d still runs: %w", id, context.Cause(ctx)), notEnded)
		case <-time.After(pause):
		}
	}
}

// Abandon gives up an execution that is STOPPING, STOPPED, FAILED or UNKNOWN,
// and the newest of its instance, which will not be restarted.
func (s *acts) Abandon(ctx context.Context, id core.JobExecutionID) (*Execution, error) {
	e, _, err := s.AbandonAnswer(ctx, id, 0)
	return e, err
}

// AbandonAnswer is Abandon, and returns core.Applied or core.Duplicate. epoch is as in StopAnswer.
func (s *acts) AbandonAnswer(ctx context.Context, id core.JobExecutionID, epoch int64) (*Execution, core.Answer, error) {
	e, err := s.judge.record(ctx, id)
	if err != nil {
		return nil, "", err
	}
	answer := core.Applied
	if e.Status == core.StatusAbandoned {
		answer = core.Duplicate
	}
	e, err = s.abandon(ctx, e, epoch)
	if err != nil {
		return nil, core.Rejected, err
	}
	return s.view.execution(e), answer, nil
}

func (s *acts) abandon(ctx context.Context, e *core.JobExecution, epoch int64) (*core.JobExecution, error) {
	id := e.ID
	if err := s.records.Abandon(ctx, id, s.actor.by(ctx, epoch)); err != nil {
		return nil, s.notAbandoned(ctx, err, e)
	}
	after, err := s.records.Execution(ctx, id)
	if err != nil {
		return nil, err
	}
	if after.Status != core.StatusAbandoned { // it has moved on, which the repository does not report as an error
		return nil, s.notAbandoned(ctx, &core.TransitionError{Machine: "execution", ID: int64(id), To: core.StatusAbandoned, Current: after.Status}, after)
	}
	if s.tasks != nil { // also if it was abandoned before: a process may have died in between
		err = s.tasks.GiveUp(ctx, after.InstanceID, fmt.Sprintf("execution %d of job %s was abandoned", id, after.JobName))
	}
	return after, err
}

func (s *acts) notAbandoned(ctx context.Context, err error, e *core.JobExecution) error {
	var running *ports.AlreadyRunningError
	var moved *core.TransitionError
	var older *ports.NotNewestError
	current := e.Status
	switch {
	case reasonOf(err) == refusal.Moved:
		return s.judge.moved(ctx, err)
	case errors.As(err, &older):
		return s.judge.notNewest(ctx, older)
	case errors.As(err, &moved):
		current = moved.Current
	case !errors.As(err, &running):
		return err
	}
	r := &Refusal{Reason: refusal.IllegalState, Execution: e.ID, Err: &NotAbandonedError{Execution: e.ID, Status: current, Err: err},
		Actions: []Action{{Kind: refusal.ActShow, Execution: e.ID, Status: current}}}
	if !current.IsOver() {
		r.Actions = s.judge.whileRunning(ctx, e.ID, e.Owner, ports.OpenWork{})
	}
	return r
}

// NotAbandonedError means that the status does not allow to abandon.
type NotAbandonedError struct {
	Execution core.JobExecutionID
	Status    core.Status
	Err       error
}

func (e *NotAbandonedError) Error() string {
	return fmt.Sprintf("execution %d is %s: only an execution that stopped or failed can be abandoned", e.Execution, e.Status)
}

func (e *NotAbandonedError) Unwrap() error { return e.Err }

// Recover ends the executions with a lost owner (FAILED), and those parked with
// a requested stop without a partition at a worker. It may return some with an
// error.
func (s *acts) Recover(ctx context.Context) ([]Execution, error) {
	if err := s.schema.Prepare(ctx); err != nil {
		return nil, err
	}
	ended, err := s.records.Recover(ctx, s.actor.of(ctx), s.judge.dead)
	stopped, notEnded := s.parked.endAllParked(ctx)
	list, failure := s.view.executions(ctx, append(ended, stopped...))
	return list, errors.Join(err, notEnded, failure)
}

// Purge deletes old executions with their steps, skipped items and checkpoints,
// and an instance with its last execution. With an error it also returns
// counts.
func (s *acts) Purge(ctx context.Context, req PurgeRequest) (Purged, error) {
	purged := Purged{DryRun: req.DryRun}
	if err := req.check(); err != nil {
		return purged, fmt.Errorf("purge: %w", err)
	}
	if err := s.schema.Prepare(ctx); err != nil {
		return purged, err
	}
	deleted, err := s.records.Purge(ctx, ports.PurgeFilter{
		Instance: req.Instance, JobName: req.Job, Statuses: req.Statuses, EndedBefore: req.EndedBefore, KeepLast: req.KeepLast, DryRun: req.DryRun, Batches: req.Batches,
	}, s.actor.of(ctx))
	purged.Instances, purged.Executions, purged.Steps, purged.SkippedItems = deleted.Instances, deleted.Executions, deleted.Steps, deleted.SkippedItems
	if s.launcher != nil {
		err = errors.Join(err, s.launcher.RemoveLeft(ctx, deleted.Left))
	}
	if err == nil && purged.Instances > 0 && !req.DryRun {
		err = s.schema.sweep(ctx)
	}
	return purged, s.notPurged(ctx, err, req.Instance)
}

func (s *acts) notPurged(ctx context.Context, err error, id core.JobInstanceID) error {
	var running *ports.AlreadyRunningError
	switch {
	case id == 0:
	case errors.As(err, &running):
		return &Refusal{Reason: refusal.Running, Err: err, Actions: s.judge.whileRunning(ctx, running.ExecutionID, running.Owner, running.Open)}
	case errors.Is(err, core.ErrNotFound):
		return &Refusal{Reason: refusal.NotFound, Err: err, Actions: []Action{{Kind: refusal.ActHistory}}}
	}
	return err
}

func (r PurgeRequest) check() error {
	wrong := func(field, value, reason string) error {
		return &RequestError{Field: field, Value: value, Reason: reason}
	}
	if r.Instance != 0 {
		if r.Job != "" || len(r.Statuses) > 0 || !r.EndedBefore.IsZero() || r.KeepLast != 0 {
			return wrong("instance", fmt.Sprint(r.Instance), "an instance is deleted whatever its job, age and status: omit the other fields")
		}
		return nil
	}
	if r.EndedBefore.IsZero() {
		return wrong("ended_before", "", "required, unless instance is set")
	}
	if r.KeepLast < 0 {
		return wrong("keep_last", fmt.Sprint(r.KeepLast), "it must be at least 0")
	}
	for _, status := range r.Statuses {
		if !status.IsOver() {
			return wrong("statuses", string(status), "running executions are never purged")
		}
	}
	return nil
}

// ActsRequest selects acts, newest first (rule OP4); zero fields select all.
type ActsRequest struct {
	Since time.Time `json:"since,omitzero"`
	// Act is one of ports.Verbs.
	Act   string `json:"act,omitempty"`
	Actor string `json:"actor,omitempty"`
	Job   string `json:"job,omitempty"`
	// Before is the number of the last act of the previous page.
	Before int64 `json:"before,omitempty"`
	Limit  int   `json:"limit,omitempty"`
}

type (
	// ActPage is a page of acts.
	ActPage struct {
		Acts []ActView `json:"acts"`
		// Next is the key of the next page, or 0. A search ends after about a tenth of a second: a page may
		// have few acts, or none, and a next one.
		Next int64 `json:"next,omitempty"`
	}
	// ActView is an act: its actor and time.
	ActView struct {
		ID        int64               `json:"id"`
		At        time.Time           `json:"at"`
		Act       string              `json:"act"`
		Actor     string              `json:"actor"`
		Job       string              `json:"job,omitempty"`
		Execution core.JobExecutionID `json:"execution,omitempty"`
		Task      int64               `json:"task,omitempty"`
		Detail    string              `json:"detail,omitempty"`
	}
)

// Acts lists the acts of persons, clients and duties: the audit without its
// transitions.
func (s *acts) Acts(ctx context.Context, req ActsRequest) (ActPage, error) {
	page := ActPage{Acts: []ActView{}}
	if req.Act != "" && !slices.Contains(ports.Verbs(), req.Act) {
		return page, &RequestError{Field: "act", Reason: fmt.Sprintf("no such act %q (acts: %q)", req.Act, ports.Verbs())}
	}
	if s.schema.audit == nil {
		return page, fmt.Errorf("the audit: %w", core.ErrNotFound)
	}
	if err := s.schema.Prepare(ctx); err != nil {
		return page, err
	}
	limit := req.Limit
	if limit <= 0 {
		limit = defaultActs
	}
	list, next, err := s.searchActs(ctx, ports.ActFilter{
		Since: req.Since, Verb: req.Act, Actor: req.Actor, JobName: req.Job, Before: req.Before, Limit: limit + 1,
	})
	if errors.Is(err, core.ErrNotFound) {
		return page, &RequestError{Field: "before", Reason: fmt.Sprintf("no such act %d", req.Before)}
	}
	page.Next = next
	if len(list) > limit {
		list = list[:limit]
		page.Next = list[limit-1].ID
	}
	for i := range list {
		page.Acts = append(page.Acts, actView(&list[i]))
	}
	return page, err
}

func actView(a *ports.Act) ActView {
	detail := a.Detail
	if a.Verb == ports.VerbRun || a.Verb == ports.VerbRestart || a.Verb == ports.VerbRedrive {
		detail = strings.TrimPrefix(strings.TrimPrefix(detail, "for "+a.Actor), ": ") // the list already shows the actor
	}
	return ActView{a.ID, a.At.UTC(), a.Verb, a.Actor, a.JobName, a.Execution, a.Task, detail}
}

const defaultActs = 50

// searchActs reads on until there are as many acts as the filter wants, for about as long as a search of
// executions.
func (s *acts) searchActs(ctx context.Context, f ports.ActFilter) (list []ports.Act, next int64, err error) {
	wanted := f.Limit
	for begin := time.Now(); ; {
		var found []ports.Act
		if found, next, err = s.schema.audit.Acts(ctx, f); err != nil {
			return nil, 0, err
		}
		list = append(list, found...)
		if next == 0 || len(list) == wanted || time.Since(begin) > searchBudget {
			return list, next, nil
		}
		f.Before, f.Limit = next, wanted-len(list)
	}
}

// PurgeActs deletes old records of the audit.
func (s *acts) PurgeActs(ctx context.Context, age time.Duration, limit int) (more bool, err error) {
	n, err := s.schema.audit.PurgeActs(ctx, age, limit)
	return n >= int64(limit), err
}
