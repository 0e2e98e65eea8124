package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/lease"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Stop requests a stop of an execution from its owner, in any process: the current chunk is
// finished. It returns the execution as it is now: STOPPING. If the execution is parked and no
// worker has a partition of it, Stop ends it here, with its job's actions at the end. An ended one
// is refused. With an error of Config.Notify, or a *NotEndedError, the execution is returned too:
// the request stands.
func (s *Service) Stop(ctx context.Context, id core.JobExecutionID) (*Execution, error) {
	e, _, err := s.StopAnswer(ctx, id)
	return e, err
}

// StopAnswer is Stop, and also returns core.Applied, or core.Duplicate if the stop was requested
// before.
func (s *Service) StopAnswer(ctx context.Context, id core.JobExecutionID) (*Execution, core.Answer, error) {
	e, err := s.record(ctx, id)
	if err != nil {
		return nil, "", err
	}
	if e.Status.IsOver() {
		return s.execution(e), core.Rejected, s.nothingToStop(ctx, e)
	}
	answer, asking := s.config.Repository.RequestStop(ctx, id, s.actor(ctx))
	if e, err = s.config.Repository.Execution(ctx, id); err != nil {
		return nil, answer, errors.Join(asking, err)
	}
	if asking != nil {
		if e.Status.IsOver() { // it has just ended
			return s.execution(e), core.Rejected, s.nothingToStop(ctx, e)
		}
		return nil, answer, asking
	}
	if isParked(e) {
		e, err = s.endParked(ctx, e)
		return s.execution(e), answer, err
	}
	if e.Status != core.StatusStopping {
		return s.execution(e), answer, nil
	}
	if s.runnings.ask(id) || s.config.Notify == nil {
		return s.execution(e), answer, nil
	}
	if err := s.config.Notify(ctx, *e); err != nil {
		return s.execution(e), answer, fmt.Errorf("job %s, execution %d: the stop is asked for, but its owner could not be told: %w", e.JobName, id, err)
	}
	return s.execution(e), answer, nil
}

// The time between two polls of an ending execution, at first and at most.
const (
	firstPause = 20 * time.Millisecond
	maxPause   = time.Second
)

// AwaitEnd returns when an execution has ended, in any process, or as it is when its process is
// dead and wrote no end: its status is then a running one. Like Stop, it ends an execution that is
// parked with a requested stop. The resulting *NotEndedError is joined to the error only if the
// execution did not end.
func (s *Service) AwaitEnd(ctx context.Context, id core.JobExecutionID) (*Execution, error) {
	if !model.HasPatience(ctx) {
		ctx = model.WithPatience(ctx, lease.Waiting)
	}
	dead := false
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		e, err := s.config.Repository.Execution(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("read execution %d: %w", id, err)
		}
		e, notEnded := s.endParked(ctx, e)
		if _, others := errors.AsType[*NotEndedError](notEnded); notEnded != nil && !others {
			return s.execution(e), notEnded
		}
		if e.Status.IsOver() || dead {
			return s.execution(e), nil
		}
		if dead = s.config.Dead(e.Owner); dead {
			continue // it may have ended just before the process died
		}
		select {
		case <-ctx.Done():
			return s.execution(e), errors.Join(fmt.Errorf("execution %d still runs: %w", id, context.Cause(ctx)), notEnded)
		case <-time.After(pause):
		}
	}
}

func (s *Service) nothingToStop(ctx context.Context, e *core.JobExecution) error {
	r := &Refusal{Reason: ReasonOver, Execution: e.ID, Err: fmt.Errorf("execution %d is over (%s): there is nothing to stop", e.ID, e.Status),
		Actions: []Action{{Kind: ActShow, Execution: e.ID, Status: e.Status}}}
	newest, err := s.newestAttempt(ctx, e)
	if err != nil {
		return errors.Join(r, err)
	}
	r.Actions = append(r.Actions, s.actionsFor(e, &newest)...)
	return r
}

// Abandon gives up an execution that is STOPPING, STOPPED, FAILED or UNKNOWN: its instance will not
// be restarted. It refuses one that runs, has completed, or is not the newest of its instance.
func (s *Service) Abandon(ctx context.Context, id core.JobExecutionID) (*Execution, error) {
	e, _, err := s.AbandonAnswer(ctx, id)
	return e, err
}

// AbandonAnswer is Abandon, and also returns core.Applied, or core.Duplicate if it was abandoned
// before.
func (s *Service) AbandonAnswer(ctx context.Context, id core.JobExecutionID) (*Execution, core.Answer, error) {
	e, err := s.record(ctx, id)
	if err != nil {
		return nil, "", err
	}
	answer := core.Applied
	if e.Status == core.StatusAbandoned {
		answer = core.Duplicate
	}
	e, err = s.abandon(ctx, e)
	if err != nil {
		return nil, core.Rejected, err
	}
	return s.execution(e), answer, nil
}

func (s *Service) abandon(ctx context.Context, e *core.JobExecution) (*core.JobExecution, error) {
	id := e.ID
	if err := s.config.Repository.Abandon(ctx, id, s.actor(ctx)); err != nil {
		return nil, s.notAbandoned(ctx, err, e)
	}
	after, err := s.config.Repository.Execution(ctx, id)
	if err != nil {
		return nil, err
	}
	if after.Status != core.StatusAbandoned { // it has moved on, which the repository does not report as an error
		return nil, s.notAbandoned(ctx, &core.TransitionError{Machine: "execution", ID: int64(id), To: core.StatusAbandoned, Current: after.Status}, after)
	}
	if s.config.Tasks != nil { // also if it was abandoned before: a process may have died in between
		err = s.config.Tasks.GiveUp(ctx, after.InstanceID, fmt.Sprintf("execution %d of job %s was abandoned", id, after.JobName))
	}
	return after, err
}

func (s *Service) notAbandoned(ctx context.Context, err error, e *core.JobExecution) error {
	var running *core.AlreadyRunningError
	var moved *core.TransitionError
	var older *core.NotNewestError
	current := e.Status
	switch {
	case errors.As(err, &older):
		return s.notNewest(ctx, older)
	case errors.As(err, &moved):
		current = moved.Current
	case !errors.As(err, &running):
		return err
	}
	r := &Refusal{Reason: ReasonIllegalState, Execution: e.ID, Err: &NotAbandonedError{Execution: e.ID, Status: current, Err: err},
		Actions: []Action{{Kind: ActShow, Execution: e.ID, Status: current}}}
	if !current.IsOver() {
		r.Actions = s.whileRunning(ctx, e.ID, e.Owner, core.OpenWork{})
	}
	return r
}

// NotAbandonedError means that the status of an execution does not allow to abandon it.
type NotAbandonedError struct {
	Execution core.JobExecutionID
	Status    core.Status
	Err       error
}

// Error names the status.
func (e *NotAbandonedError) Error() string {
	return fmt.Sprintf("execution %d is %s: only one that stopped or failed can be abandoned", e.Execution, e.Status)
}

// Unwrap returns the repository's refusal.
func (e *NotAbandonedError) Unwrap() error { return e.Err }

// Recover ends the executions with a lost owner, which then are FAILED, and those that are parked
// with a requested stop and without a partition at a worker. It returns them: they can be
// restarted. It may return some together with an error.
func (s *Service) Recover(ctx context.Context) ([]Execution, error) {
	if err := s.Prepare(ctx); err != nil {
		return nil, err
	}
	ended, err := s.config.Repository.Recover(ctx, s.actor(ctx), s.config.Dead)
	stopped, notEnded := s.endAllParked(ctx)
	list, failure := s.executions(ctx, append(ended, stopped...))
	return list, errors.Join(err, notEnded, failure)
}

// Purge deletes old executions with their steps, skipped items and checkpoints, and an instance
// with its last execution. With an error it also returns the counts of the deleted rows.
func (s *Service) Purge(ctx context.Context, req PurgeRequest) (Purged, error) {
	purged := Purged{DryRun: req.DryRun}
	if err := req.check(); err != nil {
		return purged, fmt.Errorf("purge: %w", err)
	}
	if err := s.Prepare(ctx); err != nil {
		return purged, err
	}
	deleted, err := s.config.Repository.Purge(ctx, ports.PurgeFilter{
		Instance: req.Instance, JobName: req.Job, Statuses: req.Statuses, EndedBefore: req.EndedBefore, KeepLast: req.KeepLast, DryRun: req.DryRun, Batches: req.Batches,
	}, s.actor(ctx))
	purged.Instances, purged.Executions, purged.Steps, purged.SkippedItems = deleted.Instances, deleted.Executions, deleted.Steps, deleted.SkippedItems
	if s.config.Launcher != nil {
		err = errors.Join(err, s.config.Launcher.RemoveLeft(ctx, deleted.Left))
	}
	if err == nil && purged.Instances > 0 && !req.DryRun {
		err = s.sweep(ctx)
	}
	return purged, s.notPurged(ctx, err, req.Instance)
}

func (s *Service) notPurged(ctx context.Context, err error, id core.JobInstanceID) error {
	var running *core.AlreadyRunningError
	switch {
	case id == 0:
	case errors.As(err, &running):
		return &Refusal{Reason: ReasonRunning, Err: err, Actions: s.whileRunning(ctx, running.ExecutionID, running.Owner, running.Open)}
	case errors.Is(err, core.ErrNotFound):
		return &Refusal{Reason: ReasonNotFound, Err: err, Actions: []Action{{Kind: ActHistory}}}
	}
	return err
}

func (r PurgeRequest) check() error {
	wrong := func(field, value, reason string) error {
		return &RequestError{Field: field, Value: value, Reason: reason}
	}
	if r.Instance != 0 {
		if r.Job != "" || len(r.Statuses) > 0 || !r.EndedBefore.IsZero() || r.KeepLast != 0 {
			return wrong("instance", fmt.Sprint(r.Instance), "it is deleted whatever its job, age and status; leave out the other fields")
		}
		return nil
	}
	if r.EndedBefore.IsZero() {
		return wrong("ended_before", "", "it is required, or instance")
	}
	if r.KeepLast < 0 {
		return wrong("keep_last", fmt.Sprint(r.KeepLast), "it must be at least 0")
	}
	for _, status := range r.Statuses {
		if !status.IsOver() {
			return wrong("statuses", string(status), "what runs is never purged")
		}
	}
	return nil
}

// sweep deletes the checkpoints of deleted instances in databases other than the
// repository's (rule C18).
func (s *Service) sweep(ctx context.Context) error {
	if s.config.Checkpoints == nil || s.config.Provider == nil {
		return nil
	}
	var errs []error
	for _, name := range s.config.Provider.Names() {
		if name == s.config.Database {
			continue
		}
		if _, err := s.config.Checkpoints.CollectGarbage(ctx, name); err != nil && !errors.Is(err, core.ErrSchemaMissing) {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("the history is deleted, but not its checkpoints in other databases: %w", err)
	}
	return nil
}
