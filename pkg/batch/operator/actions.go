package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/job"
)

// restartAction returns the action that restarts an execution. otherFile says that the
// request must name a job file, since that of the execution cannot be used.
func (s *Service) restartAction(e *core.JobExecution, otherFile bool) Action {
	if e.RedriveOf != 0 {
		return Action{Kind: ActRedrive, Execution: e.RedriveOf, NeedsFile: otherFile, Step: redrivenStep(e.Params)}
	}
	return Action{Kind: ActRestart, Execution: e.ID, Status: e.Status, NeedsFile: otherFile || e.Definition.Path == "" && !s.carries(e.JobName)}
}

// actionsFor returns what may be done about an execution.
func (s *Service) actionsFor(e *core.JobExecution) []Action {
	switch e.Status {
	case core.StatusFailed, core.StatusStopped:
		return []Action{s.restartAction(e, false)}
	case core.StatusUnknown:
		return append([]Action{{Kind: ActAbandon, Execution: e.ID, Status: e.Status}}, anew(e)...)
	case core.StatusAbandoned:
		return anew(e)
	case core.StatusStarting, core.StatusStarted, core.StatusParked, core.StatusStopping:
		if s.config.Dead(e.Owner) {
			return []Action{{Kind: ActRecover, Execution: e.ID, Owner: &Owner{Host: e.Owner.Host, PID: e.Owner.PID, Dead: true}}}
		}
		return []Action{{Kind: ActStop, Execution: e.ID}, {Kind: ActRecover}}
	case core.StatusCompleted:
	}
	return nil
}

// anew are the actions for a new instance after an execution that will not continue.
func anew(e *core.JobExecution) []Action {
	if e.Definition.Path == "" || e.RedriveOf != 0 {
		return nil
	}
	return []Action{{Kind: ActAgain, File: e.Definition.Path, Params: texts(e.Params, nil)}}
}

// texts are parameters as a request has them, without the number of a repetition and
// those that have their default anyway.
func texts(params core.Parameters, specs []core.ParameterSpec) map[string]string {
	defaults := map[string]any{}
	for _, spec := range specs {
		defaults[spec.Name] = spec.Default
	}
	given := map[string]string{}
	for _, p := range params.All() {
		if p.Name == AgainName || p.Name == redriveName || p.Value == defaults[p.Name] {
			continue
		}
		text, err := p.Canonical()
		if err != nil {
			text = fmt.Sprint(p.Value) // cannot be: NewParameters has checked it
		}
		given[p.Name] = text
	}
	return given
}

// refused gives a refused launch its ways out.
func (s *Service) refused(ctx context.Context, err error, l *launch) error {
	var complete *core.InstanceCompleteError
	var running *core.AlreadyRunningError
	again := Action{Kind: ActAgain, File: l.path, Params: texts(l.params, l.job.Parameters)}
	history := []Action{{Kind: ActHistory, Job: l.job.Name}, again}
	refuse := func(reason Reason, actions ...Action) error {
		return &Refusal{Reason: reason, Err: err, Actions: actions}
	}
	switch {
	case errors.As(err, &complete):
		return refuse(ReasonComplete, s.afterComplete(complete, l, again)...)
	case errors.As(err, &running):
		return refuse(ReasonRunning, s.whileRunning(running.ExecutionID, running.Owner)...)
	case errors.Is(err, core.ErrUnknownStatus):
		return refuse(ReasonUnknown, s.afterUnknown(ctx, l, again)...)
	case errors.Is(err, core.ErrNotRestartable):
		return refuse(ReasonNotRestartable, history...)
	case errors.Is(err, core.ErrAbandoned):
		return refuse(ReasonAbandoned, history...)
	case errors.Is(err, core.ErrNotMostRecent):
		return refuse(ReasonNotNewest, history...)
	case errors.Is(err, core.ErrIllegalState):
		return refuse(ReasonIllegalState, history...)
	case errors.As(err, new(*jobfile.ChangedError)):
		return refuse(ReasonChanged)
	case errors.As(err, new(jobfile.Problems)):
		return refuse(ReasonFile)
	case errors.As(err, new(*core.ParameterError)):
		return refuse(ReasonParameters, Action{Kind: ActHelp, File: l.path})
	case errors.Is(err, core.ErrSchemaMissing):
		return refuse(ReasonSchema, Action{Kind: ActMigrate})
	}
	return err
}

func (s *Service) afterComplete(complete *core.InstanceCompleteError, l *launch, again Action) []Action {
	var list []Action
	if other, ok := otherParameter(l.job, l.params); ok {
		list = append(list, Action{Kind: ActRun, File: l.path, Params: other})
	}
	if l.job.Incrementer != nil {
		list = append(list, Action{Kind: ActNext, File: l.path})
	}
	return append(list, again, Action{Kind: ActShow, Execution: complete.Execution.ID, Status: complete.Execution.Status})
}

// whileRunning are the ways out of "it is running".
func (s *Service) whileRunning(id core.JobExecutionID, owner core.Owner) []Action {
	look := Action{Kind: ActShow, Execution: id, Status: core.StatusStarted}
	if s.config.Dead(owner) {
		return []Action{look, {Kind: ActRecover, Execution: id, Owner: &Owner{Host: owner.Host, PID: owner.PID, Dead: true}}}
	}
	return []Action{look, {Kind: ActStop, Execution: id}, {Kind: ActRecover}}
}

// afterUnknown are the actions after an execution of which it is not known whether its last
// work is committed.
func (s *Service) afterUnknown(ctx context.Context, l *launch, again Action) []Action {
	last, err := s.config.Repository.LastExecution(ctx, l.job.Name, l.params.Key())
	if err != nil {
		return []Action{{Kind: ActHistory, Job: l.job.Name}, again}
	}
	return []Action{{Kind: ActShow, Execution: last.ID, Status: last.Status}, {Kind: ActAbandon, Execution: last.ID, Status: last.Status}, again}
}

// otherParameter suggests parameters that make another instance: the first
// identifying one that can be moved by one step.
func otherParameter(j *core.Job, params core.Parameters) (map[string]string, bool) {
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
		if err != nil {
			return nil, false
		}
		return texts(changed, j.Parameters), true
	}
	return nil, false
}

// nextValue is the value after this one that the declaration allows.
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

// withAction adds a way out to a Refusal, and names the execution that it is about.
func withAction(err error, id core.JobExecutionID, a Action) error {
	var r *Refusal
	if errors.As(err, &r) {
		return &Refusal{Reason: r.Reason, Execution: id, Err: r.Err, Actions: append(r.Actions[:len(r.Actions):len(r.Actions)], a)}
	}
	return err
}
