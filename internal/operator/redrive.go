package operator

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/redrive"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// redriveName is the identifying parameter that makes a redrive its own instance: EXECUTION.STEP.N.
// The dot keeps a declared parameter from having this name.
const redriveName = "run.redrive"

// redrivenStep returns the step of a redrive, whose name may have dots; empty if it is not a
// redrive.
func redrivenStep(params core.Parameters) string {
	mark, ok := params.Get(redriveName)
	if !ok {
		return ""
	}
	_, rest, _ := strings.Cut(fmt.Sprint(mark.Value), ".")
	if end := strings.LastIndex(rest, "."); end >= 0 {
		return rest[:end]
	}
	return ""
}

// Redrive runs the remaining skipped items of an execution through the processors and writers of
// their step, with the execution's parameters, and returns when the new execution exists. That is
// an execution of its own, which another Redrive continues if it has not completed.
func (s *Service) Redrive(ctx context.Context, req RedriveRequest) (*Running, error) {
	e, err := s.record(ctx, req.Execution)
	if err != nil {
		return nil, err
	}
	if e.RedriveOf != 0 {
		return nil, &Refusal{Reason: ReasonRedrive, Execution: e.ID, Actions: []Action{s.restartAction(e, false)},
			Err: fmt.Errorf("execution %d is a redrive itself: what it skipped again is left in execution %d", e.ID, e.RedriveOf)}
	}
	d, err := s.redriveFile(ctx, req, e)
	if err != nil {
		return nil, err
	}
	if req.Given != nil {
		if err := req.Given(d.specs(), req.Params); err != nil {
			return nil, err
		}
	}
	given, secrets, err := withoutSecrets(d, RunRequest{Params: req.Params})
	if err != nil {
		return nil, err
	}
	d.given = secrets
	params, err := declaredAgain(&model.Job{Parameters: d.file.Parameters()}, e, typed(d.file.Parameters(), given.Params, req.Folder))
	if err != nil {
		return nil, &Refusal{Reason: ReasonParameters, Execution: e.ID, Err: fmt.Errorf("the parameters of execution %d: %w", e.ID, err)}
	}
	plan, err := s.planRedrive(ctx, req)
	if err != nil {
		return nil, err
	}
	l := &launch{definition: d, hooks: req.Hooks, named: e, options: job.Options{Request: req.Key}}
	if l.params, err = s.redriveParameters(ctx, req, plan, params); err != nil {
		return nil, err
	}
	if l.job, err = s.compileRedrive(ctx, d, e, plan, req.Hooks); err != nil {
		return nil, err
	}
	l.confine(ctx, given.Params, e)
	if _, err := l.checkPaths(ctx); err != nil {
		return nil, err
	}
	l.definition.file = nil // its definition is not compared: the remaining work is planned again
	return s.launch(ctx, l)
}

func withRedrive(params core.Parameters, of core.JobExecutionID, step string, n int64) (core.Parameters, error) {
	mark := core.Parameter{Name: redriveName, Type: core.TypeString, Identifying: true, Value: fmt.Sprintf("%d.%s.%d", of, step, n)}
	return core.NewParameters(append(params.All(), mark)...)
}

func redriveNumber(params core.Parameters) int64 {
	mark, _ := params.Get(redriveName)
	text := fmt.Sprint(mark.Value)
	n, err := strconv.ParseInt(text[strings.LastIndex(text, ".")+1:], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// redriveFile reads the job file, or takes a missing one from the history.
func (s *Service) redriveFile(ctx context.Context, req RedriveRequest, e *core.JobExecution) (definition, error) {
	d, err := s.stored(ctx, req.source(), e, req.Hooks)
	if err != nil {
		return d, err
	}
	wrong := func(format string, args ...any) (definition, error) {
		return d, &Refusal{Reason: ReasonFile, Execution: e.ID, Err: fmt.Errorf(format, args...)}
	}
	if d.file == nil {
		return wrong("execution %d is of a job of Go code, whose skipped items cannot be redriven", e.ID)
	}
	if d.file.Name() != e.JobName {
		return wrong("%s is job %s, and execution %d is of job %s", d.path, d.file.Name(), e.ID, e.JobName)
	}
	if now := d.file.Definition(); now.Hash != e.Definition.Hash {
		req.notice(Notice{Kind: NoticeChanged, Execution: e.ID, File: d.path, Actions: compareActions(e.ID, e.Definition, now, d.path)})
	}
	return d, nil
}

func (s *Service) compileRedrive(ctx context.Context, d definition, of *core.JobExecution, plan *redrive.Plan, hooks Hooks) (*model.Job, error) {
	ran, err := s.config.Repository.Steps(ctx, plan.Execution)
	if err != nil {
		return nil, fmt.Errorf("read the steps of execution %d: %w", plan.Execution, err)
	}
	steps := make(map[string]core.StepExecution, len(ran))
	for _, step := range ran {
		steps[step.Name] = step
	}
	written := &Targets{next: hooks.OnTarget}
	j, err := d.file.CompileRedrive(s.depsOf(d, watch(s.config.Registry, written.Add)), jobfile.Redrive{Plan: plan, Instance: of.InstanceID, Steps: steps, Watch: written.watchFiles})
	if err != nil {
		return nil, &Refusal{Reason: ReasonFile, Execution: plan.Execution, Err: err}
	}
	return s.located(j, d), nil
}

func (s *Service) planRedrive(ctx context.Context, req RedriveRequest) (*redrive.Plan, error) {
	id := req.Execution
	refuse := func(reason Reason, err error, actions ...Action) error {
		return &Refusal{Reason: reason, Execution: id, Err: err, Actions: actions}
	}
	plan, err := redrive.New(ctx, s.config.Repository, redrive.Request{Execution: id, Step: req.Step, Edited: req.Edited})
	var steps *redrive.StepsError
	switch {
	case errors.Is(err, redrive.ErrNothing):
		if plan, err := s.restOfRedrive(ctx, req); plan != nil || err != nil {
			return plan, err
		}
		return nil, refuse(ReasonNothingSkipped, fmt.Errorf("execution %d: %w", id, err), Action{Kind: ActSkips, Execution: id})
	case errors.As(err, &steps):
		var actions []Action
		for _, name := range steps.Steps {
			actions = append(actions, Action{Kind: ActRedrive, Execution: id, Step: name})
		}
		return nil, refuse(ReasonWhichStep, fmt.Errorf("execution %d: %w", id, err), actions...)
	case err != nil && req.Edited != nil:
		rest, other := s.restOfRedrive(ctx, req)
		if other != nil || rest == nil {
			return nil, errors.Join(refuse(ReasonItems, err), other)
		}
		return nil, refuse(ReasonItems, err, Action{Kind: ActRedrive, Execution: id, Step: rest.Step})
	case err != nil:
		return nil, err
	case plan.Items == 0:
		return nil, refuse(ReasonItems, &ItemsError{Refused: plan.Refused}, Action{Kind: ActExport, Execution: id})
	}
	if len(plan.Refused) > 0 {
		items := make([]string, len(plan.Refused))
		for i, r := range plan.Refused {
			items[i] = r.Error()
		}
		req.notice(Notice{Kind: NoticeNotRedriven, Execution: id, Items: items})
	}
	return plan, nil
}

// maxNamedItems is the maximum number of items that cannot be redriven and that a message names.
const maxNamedItems = 5

// ItemsError means that none of the skipped items can be redriven as stored.
type ItemsError struct{ Refused []redrive.Refusal }

// Error names the first items.
func (e *ItemsError) Error() string { return errors.Join(e.Unwrap()...).Error() }

// Unwrap returns one error for each of the first items.
func (e *ItemsError) Unwrap() []error {
	var errs []error
	for _, r := range e.Refused[:min(len(e.Refused), maxNamedItems)] {
		errs = append(errs, r)
	}
	if more := len(e.Refused) - maxNamedItems; more > 0 {
		errs = append(errs, fmt.Errorf("and %d more", more))
	}
	return errs
}
