package operator

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/job/journal"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// restartAction returns the action that restarts an execution. With otherFile the request must name
// a job file, because the execution's cannot be used.
func (s *Service) restartAction(e *core.JobExecution, otherFile bool) Action {
	if e.RedriveOf != 0 {
		return Action{Kind: ActRedrive, Execution: e.RedriveOf, NeedsFile: otherFile, Step: redrivenStep(e.Params)}
	}
	return Action{Kind: ActRestart, Execution: e.ID, Status: e.Status, NeedsFile: otherFile || e.Definition.Path == "" && e.Definition.Text == "" && !s.carries(e.JobName)}
}

// actionsFor returns the possible actions for an execution: those that a launch of its instance
// would accept, and those that would make it accept one.
func (s *Service) actionsFor(e *core.JobExecution, newest *ports.NewestAttempt) []Action {
	if newest.Execution.ID != e.ID {
		return []Action{{Kind: ActShow, Execution: newest.Execution.ID, Status: newest.Execution.Status}}
	}
	reason := reasonOf(newest.Refusal(true))
	switch {
	case reason == ReasonUnknown:
		return append([]Action{{Kind: ActAbandon, Execution: e.ID, Status: e.Status}}, anew(e)...)
	case reason == ReasonAbandoned:
		return anew(e)
	case reason == ReasonRunning && isParked(e):
		return []Action{{Kind: ActStop, Execution: e.ID}, {Kind: ActWork, Execution: e.ID, Open: newest.Open}}
	case reason == ReasonRunning && !e.Status.IsOver():
		return []Action{{Kind: ActStop, Execution: e.ID}, {Kind: ActRecover}}
	case reason == ReasonRunning: // the owner of a step is lost
		return []Action{s.recoverAction(e.ID, e.Owner)}
	case reason == "" && !e.Status.IsOver(): // its owner is lost
		return []Action{s.recoverAction(e.ID, e.Owner), s.restartAction(e, false)}
	case reason == "":
		return []Action{s.restartAction(e, false)}
	}
	return nil
}

func (s *Service) recoverAction(id core.JobExecutionID, owner core.Owner) Action {
	if !s.config.Dead(owner) {
		return Action{Kind: ActRecover}
	}
	return Action{Kind: ActRecover, Execution: id, Owner: &Owner{Host: owner.Host, PID: owner.PID, Dead: true}}
}

// asNewest judges an execution that is known to be the newest of its instance, by the clock of this
// machine, without querying the repository.
func (s *Service) asNewest(e *core.JobExecution) ports.NewestAttempt {
	over := !e.LeaseUntil.IsZero() && s.config.Now().After(e.LeaseUntil)
	return ports.NewestAttempt{Execution: *e, Lost: e.Status.IsRunning() && e.Owner != core.Owner{} && (over || s.config.Dead(e.Owner))}
}

func (s *Service) newestAttempt(ctx context.Context, e *core.JobExecution) (ports.NewestAttempt, error) {
	found, err := s.config.Repository.NewestAttempts(ctx, s.config.Dead, e.InstanceID)
	return s.newestOf(e, found), err
}

func (s *Service) newestOf(e *core.JobExecution, found map[core.JobInstanceID]ports.NewestAttempt) ports.NewestAttempt {
	newest, ok := found[e.InstanceID]
	switch {
	case !ok: // it was purged in between
		return s.asNewest(e)
	case newest.Execution.ID == e.ID:
		newest.Execution = *e
	}
	return newest
}

// notNewest refuses acts that are only for the newest execution of an instance.
func (s *Service) notNewest(ctx context.Context, refused *core.NotNewestError) error {
	r := &Refusal{Reason: ReasonNotNewest, Execution: refused.Execution, Err: refused,
		Actions: []Action{{Kind: ActShow, Execution: refused.Newest, Status: refused.Status}}}
	e, err := s.config.Repository.Execution(ctx, refused.Newest)
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

// reasonOf returns the reason of a refused launch; empty for any other error.
func reasonOf(err error) Reason {
	switch {
	case errors.As(err, new(*core.InstanceCompleteError)):
		return ReasonComplete
	case errors.As(err, new(*core.AlreadyRunningError)):
		return ReasonRunning
	case errors.As(err, new(*core.ExclusiveError)):
		return ReasonExclusive
	case errors.Is(err, core.ErrUnknownStatus):
		return ReasonUnknown
	case errors.Is(err, core.ErrNotRestartable):
		return ReasonNotRestartable
	case errors.Is(err, core.ErrAbandoned):
		return ReasonAbandoned
	case errors.Is(err, core.ErrNotMostRecent):
		return ReasonNotNewest
	case errors.Is(err, core.ErrIllegalState):
		return ReasonIllegalState
	case errors.As(err, new(*jobfile.ChangedError)):
		return ReasonChanged
	case errors.As(err, new(jobfile.Problems)):
		return ReasonFile
	case errors.As(err, new(*core.ParameterError)), errors.As(err, new(*core.FormerInstanceError)):
		return ReasonParameters
	case errors.Is(err, core.ErrSchemaMissing):
		return ReasonSchema
	case errors.Is(err, journal.ErrNotFrom):
		return ReasonFrom
	}
	return ""
}

// anew returns the actions for a new instance after an execution that will not continue.
func anew(e *core.JobExecution) []Action {
	if e.Definition.Path == "" || e.RedriveOf != 0 {
		return nil
	}
	return []Action{launchAction(ActAgain, e.Definition.Path, e.Params, nil)}
}

// launchAction returns the action that runs a job file with parameters, without the number of a
// repetition and without those that have their default anyway.
func launchAction(kind ActionKind, file string, params core.Parameters, specs []core.ParameterSpec) Action {
	a := Action{Kind: kind, File: file, Params: map[string]string{}}
	defaults := map[string]any{}
	for _, spec := range specs {
		if p, err := spec.Place(spec.Default); err == nil {
			defaults[spec.Name] = p.Value
		}
	}
	for _, p := range params.All() {
		if p.Name == core.AgainName || p.Name == redriveName || p.Value == defaults[p.Name] {
			continue
		}
		a.Params[p.Name] = cmp.Or(p.Path, p.Text())
		if p.Path != "" {
			a.Paths = append(a.Paths, p.Name)
		}
	}
	return a
}

func (s *Service) refused(ctx context.Context, err error, l *launch) error {
	r := &Refusal{Reason: reasonOf(err), Err: err}
	again := launchAction(ActAgain, l.path, l.params, l.job.Parameters)
	switch r.Reason { //nolint:exhaustive // a launch has no other
	case "":
		return err
	case ReasonComplete:
		var complete *core.InstanceCompleteError
		errors.As(err, &complete)
		other, failure := s.otherInstance(ctx, l.job, l.params, l.path)
		if failure != nil {
			return errors.Join(err, failure)
		}
		if r.Actions = other; l.job.Incrementer != nil {
			r.Actions = append(r.Actions, Action{Kind: ActNext, File: l.path})
		}
		r.Actions = append(r.Actions, again, Action{Kind: ActShow, Execution: complete.Execution.ID, Status: complete.Execution.Status})
	case ReasonRunning:
		var running *core.AlreadyRunningError
		errors.As(err, &running)
		r.Actions = s.whileRunning(ctx, running.ExecutionID, running.Owner, running.Open)
	case ReasonExclusive:
		r.Actions = s.whileExcluded(ctx, err)
	case ReasonUnknown:
		r.Actions = s.afterUnknown(ctx, l, again)
	case ReasonNotRestartable, ReasonAbandoned, ReasonNotNewest, ReasonIllegalState:
		r.Actions = []Action{{Kind: ActHistory, Job: l.job.Name}, again}
	case ReasonFrom:
		return s.notFrom(err, l)
	case ReasonParameters:
		r.Actions = []Action{{Kind: ActHelp, File: l.path}}
		if former, is := errors.AsType[*core.FormerInstanceError](err); is {
			r.Actions = afterFormer(former, again)
		}
	case ReasonSchema:
		r.Actions = []Action{{Kind: ActMigrate}}
	}
	return r
}

// otherInstance suggests a run of another instance, which has not run yet; empty if there is none.
func (s *Service) otherInstance(ctx context.Context, j *model.Job, params core.Parameters, path string) ([]Action, error) {
	other, ok := otherParameter(j, params)
	if !ok {
		return nil, nil
	}
	if last, err := s.lastExecution(ctx, j.Name, other.Key()); err != nil || last != nil {
		return nil, err
	}
	return []Action{launchAction(ActRun, path, other, j.Parameters)}, nil
}

// whileRunning returns the actions for a running execution. If its process has died by now, the
// execution may have ended in between: then its end is all there is to show.
func (s *Service) whileRunning(ctx context.Context, id core.JobExecutionID, owner core.Owner, open core.OpenWork) []Action {
	look := Action{Kind: ActShow, Execution: id, Status: core.StatusStarted}
	if owner == (core.Owner{}) { // it is parked
		return []Action{look, {Kind: ActStop, Execution: id}, {Kind: ActWork, Execution: id, Open: open}}
	}
	end := s.recoverAction(id, owner)
	if end.Owner == nil {
		return []Action{look, {Kind: ActStop, Execution: id}, end}
	}
	e, err := s.config.Repository.Execution(ctx, id)
	if err == nil && e.Status.IsOver() { // if the read failed, the refusal stands
		look.Status = e.Status
		return []Action{look}
	}
	return []Action{look, end}
}

// whileExcluded returns the actions for a *core.ExclusiveError: those for the running execution.
func (s *Service) whileExcluded(ctx context.Context, err error) []Action {
	var excluded *core.ExclusiveError
	errors.As(err, &excluded)
	return s.whileRunning(ctx, excluded.Running.ExecutionID, excluded.Running.Owner, excluded.Running.Open)
}

// checkFormer refuses a run, or the plan of one, whose parameters named another instance in earlier versions (rule D5). The
// launch asks the repository again.
func (s *Service) checkFormer(ctx context.Context, l *launch) error {
	if has, err := s.hasHistory(ctx); !has {
		return err
	}
	err := s.config.Repository.CheckFormer(ctx, l.job.Name, l.params)
	if err == nil {
		return nil
	}
	return s.refused(ctx, err, l)
}

// afterFormer are the actions after such a refusal.
func afterFormer(e *core.FormerInstanceError, again Action) []Action {
	actions := []Action{{Kind: ActShow, Execution: e.Execution, Status: e.Status}}
	if e.Status == core.StatusFailed || e.Status == core.StatusStopped {
		actions = append(actions, Action{Kind: ActRestart, Execution: e.Execution, Status: e.Status})
	}
	if e.Taken && e.Status == core.StatusCompleted {
		actions = append(actions, again)
	}
	return actions
}

// excluded refuses a launch that another execution prevents now, else returns nil. It queries the
// repository as a launch does (rule L12).
func (s *Service) excluded(ctx context.Context, j *model.Job, params core.Parameters) (*Refusal, error) {
	if has, err := s.hasHistory(ctx); !has {
		return nil, err
	}
	err := job.CheckExclusive(ctx, s.config.Repository, j, params, s.config.Dead)
	if reasonOf(err) != ReasonExclusive {
		return nil, err
	}
	return &Refusal{Reason: ReasonExclusive, Err: err, Actions: s.whileExcluded(ctx, err)}, nil
}

// afterUnknown returns the actions for an execution if it is unknown whether its last work is
// committed.
func (s *Service) afterUnknown(ctx context.Context, l *launch, again Action) []Action {
	last, err := s.config.Repository.LastExecution(ctx, l.job.Name, l.params.Key())
	if err != nil {
		return []Action{{Kind: ActHistory, Job: l.job.Name}, again}
	}
	return []Action{{Kind: ActShow, Execution: last.ID, Status: last.Status}, {Kind: ActAbandon, Execution: last.ID, Status: last.Status}, again}
}

// otherParameter suggests parameters for another instance: it changes the first identifying one
// that can be moved by one step.
func otherParameter(j *model.Job, params core.Parameters) (core.Parameters, bool) {
	for _, spec := range j.Parameters {
		p, ok := params.Get(spec.Name)
		if !ok || !spec.Identifying {
			continue
		}
		next, ok := nextValue(spec, p.Value)
		if !ok {
			continue
		}
		var list []core.Parameter
		for _, other := range params.All() {
			if other.Name == spec.Name {
				other.Value = next
			}
			list = append(list, other)
		}
		changed, err := core.NewParameters(list...)
		return changed, err == nil
	}
	return core.Parameters{}, false
}

func nextValue(spec core.ParameterSpec, value any) (any, bool) {
	var next any
	switch v := value.(type) {
	case int64:
		next = v + 1
	case core.Date:
		next = v + 1
	case time.Time:
		next = v.Add(24 * time.Hour)
	default:
		text, err := core.Parameter{Name: spec.Name, Type: spec.Type, Value: value}.Canonical()
		for i, allowed := range spec.Enum {
			if err == nil && allowed == text && len(spec.Enum) > 1 {
				return spec.Enum[(i+1)%len(spec.Enum)], true
			}
		}
		return nil, false
	}
	return next, job.CheckParameter(spec, next) == nil
}

func withAction(err error, id core.JobExecutionID, a Action) error {
	var r *Refusal
	if errors.As(err, &r) {
		return &Refusal{Reason: r.Reason, Execution: id, Err: r.Err, Actions: append(r.Actions[:len(r.Actions):len(r.Actions)], a)}
	}
	return err
}
