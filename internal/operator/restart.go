package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/job/journal"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/refusal"
)

type restarts struct {
	judge     *judge
	jobs      *jobs
	admission *admission
	records   journal.Repository
}

// restartOf writes nothing: a dry run calls it, too.
func (s *restarts) restartOf(ctx context.Context, req RestartRequest) (*launch, error) {
	if err := req.check(); err != nil {
		return nil, err
	}
	e, err := s.judge.found(ctx, req.Execution)
	if err != nil {
		return nil, err
	}
	if err := s.admission.checkRestart(ctx, e, req); err != nil {
		return nil, err
	}
	l := &launch{hooks: req.Hooks, named: e, options: job.Options{
		FromStart: req.FromStart, From: req.From, IfComplete: req.IfComplete, AcceptChanges: req.AcceptChanges, Task: req.Task, On: req.On, Request: req.Key, Bound: boundTo(e.ID, req.Epoch),
	}}
	if l.definition, err = s.jobs.ofExecution(ctx, req.source(), e, req.Hooks); err != nil {
		return nil, err
	}
	if l.job, err = s.jobs.compile(l.definition, req.Hooks); err != nil {
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
		if err := s.admission.admits(ctx, l); err != nil {
			return nil, err
		}
		if l.from, err = journal.NewFrom(ctx, s.records, l.job, e, req.From); err != nil {
			return nil, s.admission.refused(ctx, err, l)
		}
	}
	return l, nil
}

// restartParameters: rule L3r.
func (s *restarts) restartParameters(l *launch, req RestartRequest) (err error) {
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
			return &Refusal{Reason: refusal.Parameters, Execution: l.named.ID, Err: err, Actions: []Action{{Kind: refusal.ActHelp, Job: l.job.Name, File: l.path}}}
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
			errs = append(errs, &ports.ParameterError{Name: now.Name, Err: fmt.Errorf(
				"it identifies the instance, which has %[2]q (execution %[1]d): a restart keeps it; run the job with the new value instead", l.named.ID, had.Text())})
		}
	}
	return errors.Join(errs...)
}

func (r RestartRequest) check() error {
	switch {
	case r.IfComplete && r.From == "":
		return &RequestError{Field: "if_complete", Reason: "only for a restart from an element of the flow: set from"}
	case r.From != "" && r.FromStart:
		return &RequestError{Field: "from", Value: r.From, Reason: "cannot be combined with from_start"}
	}
	return nil
}
