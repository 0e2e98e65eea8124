package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/job/journal"
	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Restart makes another attempt of an execution's instance, with its parameters, changed by
// req.Params, and the defaults of those declared since. It returns when the new execution exists.
// The execution must be the newest of its instance, and FAILED or STOPPED; a running one is taken
// over if its owner is lost, else refused. With From and IfComplete it may be COMPLETED.
//
// A Refusal has the causes of a refused launch, and core.ErrNotFound, *core.InstanceCompleteError,
// core.ErrAbandoned, core.ErrUnknownStatus, core.ErrNotMostRecent, core.ErrNoSuchJob,
// core.ErrNotRestartable and *journal.FromError. A *RequestError means that fields exclude each other.
func (s *Service) Restart(ctx context.Context, req RestartRequest) (*Running, error) {
	if err := s.Prepare(ctx); err != nil {
		return nil, err
	}
	l, err := s.restartOf(ctx, req)
	if err != nil {
		return nil, err
	}
	return s.launch(ctx, l)
}

// restartOf prepares the launch of a restart. It writes nothing: a dry run calls it, too.
func (s *Service) restartOf(ctx context.Context, req RestartRequest) (*launch, error) {
	if err := req.check(); err != nil {
		return nil, err
	}
	e, err := s.found(ctx, req.Execution)
	if err != nil {
		return nil, err
	}
	if err := s.checkRestart(ctx, e, req); err != nil {
		return nil, err
	}
	l := &launch{hooks: req.Hooks, named: e, options: job.Options{
		FromStart: req.FromStart, From: req.From, IfComplete: req.IfComplete, AcceptChanges: req.AcceptChanges, Task: req.Task, On: req.On, Request: req.Key,
	}}
	if l.definition, err = s.ofExecution(ctx, req.source(), e, req.Hooks); err != nil {
		return nil, err
	}
	if l.job, err = s.compile(l.definition, s.watched(req.Hooks)); err != nil {
		return nil, err
	}
	if err := s.restartParameters(l, req); err != nil {
		return nil, err
	}
	l.confine(ctx, nil, e)
	if _, err := l.checkPaths(ctx); err != nil {
		return nil, err
	}
	if req.From != "" {
		if err := s.admits(ctx, l); err != nil {
			return nil, err
		}
		if l.from, err = journal.NewFrom(ctx, s.config.Repository, l.job, e, req.From); err != nil {
			return nil, s.refused(ctx, err, l)
		}
	}
	return l, nil
}

// restartParameters sets the parameters of a restart: the execution's, with the changes of the
// request (rule L3r).
func (s *Service) restartParameters(l *launch, req RestartRequest) (err error) {
	changed := req.Params
	if len(changed) > 0 {
		if req.Given != nil {
			if err := req.Given(l.specs(), changed); err != nil {
				return err
			}
		}
		given, secrets, err := withoutSecrets(l.definition, RunRequest{Params: changed, Task: req.Task})
		if err != nil {
			return err
		}
		l.given, changed = secrets, typed(l.specs(), given.Params, req.Folder)
		if err := keepsIdentity(l, changed); err != nil {
			return &Refusal{Reason: ReasonParameters, Execution: l.named.ID, Err: err, Actions: []Action{{Kind: ActHelp, Job: l.job.Name, File: l.path}}}
		}
	}
	l.params, err = parametersAgain(l.job, l.named, changed)
	return err
}

// keepsIdentity refuses invalid changes, and changes of identifying parameters, which would name
// another instance. It names all of them.
func keepsIdentity(l *launch, changed map[string]string) error {
	params, err := job.ValidateParameters(optional(l.specs()), changed)
	errs := []error{err}
	for _, now := range params.All() {
		if had, _ := l.named.Params.Get(now.Name); now.Identifying && now.Text() != had.Text() {
			errs = append(errs, &core.ParameterError{Name: now.Name, Err: fmt.Errorf(
				"it identifies the instance, and execution %d had %q: a restart keeps it; run the job with the other value instead", l.named.ID, had.Text())})
		}
	}
	return errors.Join(errs...)
}

func (r RestartRequest) check() error {
	switch {
	case r.IfComplete && r.From == "":
		return &RequestError{Field: "if_complete", Reason: "it is for a restart from an element of the flow: from is missing"}
	case r.From != "" && r.FromStart:
		return &RequestError{Field: "from", Value: r.From, Reason: "it does not go with from_start"}
	}
	return nil
}

// admits refuses, before anything is planned, a restart that the launch would refuse now.
func (s *Service) admits(ctx context.Context, l *launch) error {
	newest, err := s.newestAttempt(ctx, l.named)
	if err != nil {
		return err
	}
	refused := newest.Refusal(l.job.Restartable)
	if l.options.IfComplete {
		refused = newest.RefusalIfComplete(l.job.Restartable)
	}
	if refused != nil {
		return s.refused(ctx, refused, l)
	}
	return nil
}

// notFrom refuses a restart from an element. It adds the locations of the elements in the file, and
// the possible actions.
func (s *Service) notFrom(err error, l *launch) error {
	var refused *journal.FromError
	errors.As(err, &refused)
	placed := *refused
	if refused.Cause == journal.FromUnknown {
		placed.Near = nearest.Name(refused.Element, refused.Known)
	}
	placed.Known, placed.Reached = s.places(l, refused.Known), s.places(l, refused.Reached)
	r := &Refusal{Reason: ReasonFrom, Execution: l.named.ID, Err: &placed}
	again := Action{Kind: ActRestart, Execution: l.named.ID, Status: l.named.Status, IfComplete: l.options.IfComplete}
	for _, instead := range []string{placed.Near, refused.Split} {
		if slices.Contains(refused.Reached, instead) {
			again.From = instead
			r.Actions = append(r.Actions, again)
		}
	}
	if refused.Cause != journal.FromUnknown && l.named.Status != core.StatusCompleted {
		r.Actions = append(r.Actions, Action{Kind: ActRestart, Execution: l.named.ID, Status: l.named.Status})
	}
	r.Actions = append(r.Actions, Action{Kind: ActShow, Execution: l.named.ID, Status: l.named.Status})
	return r
}

func (s *Service) places(l *launch, names []string) []string {
	placed := slices.Clone(names)
	for i, name := range placed {
		if l.file == nil {
			continue
		}
		if place := l.file.PlaceOf(name); place != "" {
			placed[i] += " (" + place + ")"
		}
	}
	return placed
}

// record reads an execution that the caller named, after Prepare.
func (s *Service) record(ctx context.Context, id core.JobExecutionID) (*core.JobExecution, error) {
	if err := s.Prepare(ctx); err != nil {
		return nil, err
	}
	return s.found(ctx, id)
}

// found is record without Prepare, for calls that write nothing.
func (s *Service) found(ctx context.Context, id core.JobExecutionID) (*core.JobExecution, error) {
	e, err := s.config.Repository.Execution(ctx, id)
	if errors.Is(err, core.ErrNotFound) {
		return nil, &Refusal{Reason: ReasonNotFound, Execution: id, Err: err, Actions: []Action{{Kind: ActHistory}}}
	}
	return e, err
}

// checkRestart refuses as a launch would. Running or not restartable executions are left for the
// launch to judge.
func (s *Service) checkRestart(ctx context.Context, e *core.JobExecution, req RestartRequest) error {
	if e.RedriveOf != 0 {
		return &Refusal{Reason: ReasonRedrive, Execution: e.ID, Actions: []Action{s.restartAction(e, false)},
			Err: fmt.Errorf("execution %d is a redrive of execution %d: it goes on as one", e.ID, e.RedriveOf)}
	}
	newest, err := s.newestAttempt(ctx, e)
	if err != nil {
		return err
	}
	if newest.Execution.ID != e.ID {
		return s.notNewest(ctx, &core.NotNewestError{JobName: e.JobName, Execution: e.ID, Newest: newest.Execution.ID, Status: newest.Execution.Status})
	}
	refused := newest.Refusal(true)
	if req.IfComplete {
		refused = newest.RefusalIfComplete(true)
	}
	reason := reasonOf(refused)
	if reason == "" || reason == ReasonRunning {
		return nil
	}
	r := &Refusal{Reason: reason, Execution: e.ID, Err: refused, Actions: []Action{{Kind: ActShow, Execution: e.ID, Status: e.Status}}}
	if r.Actions = append(r.Actions, s.actionsFor(e, &newest)...); reason == ReasonComplete {
		if req.From != "" {
			r.Actions = append(r.Actions, Action{Kind: ActRestart, Execution: e.ID, Status: e.Status, File: req.File, From: req.From, IfComplete: true})
		}
		r.Actions = append(r.Actions, anew(e)...)
	}
	return r
}

func identifyingText(params core.Parameters) string {
	var words []string
	for _, p := range params.Identifying().All() {
		words = append(words, p.Name+"="+p.Text())
	}
	return strings.Join(words, " ")
}
