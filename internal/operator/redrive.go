package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/redrive"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type redrives struct {
	judge   *judge
	jobs    *jobs
	records redriveRecords
}

type redriveRecords interface {
	redrive.Items
	Executions(ctx context.Context, filter ports.ExecutionFilter) ([]core.JobExecution, error)
	Steps(ctx context.Context, id core.JobExecutionID) ([]core.StepExecution, error)
	Redrives(ctx context.Context, of core.JobExecutionID, limit int) ([]ports.Redrive, error)
}

const maxRedrives = 100

func (s *redrives) redriveOf(ctx context.Context, req RedriveRequest) (*launch, error) {
	l, _, err := s.planned(ctx, req)
	return l, err
}

func (s *redrives) planned(ctx context.Context, req RedriveRequest) (*launch, *redrive.Plan, error) {
	e, err := s.judge.record(ctx, req.Execution)
	if err != nil {
		return nil, nil, err
	}
	before, err := s.lastRedrive(ctx, e.ID) // before its items are read
	if err != nil {
		return nil, nil, err
	}
	bound := &ports.Bound{Execution: e.ID, Epoch: req.Epoch, Redrive: before.ID}
	if e.RedriveOf != 0 {
		return nil, nil, &Refusal{Reason: refusal.Redrive, Execution: e.ID, Actions: []Action{s.judge.restartAction(e, false)},
			Err: fmt.Errorf("execution %d is itself a redrive: redrive the items that it skipped from execution %d", e.ID, e.RedriveOf)}
	}
	if err := s.unmoved(ctx, e, req.Epoch); err != nil {
		return nil, nil, err
	}
	d, err := s.redriveFile(ctx, req, e)
	if err != nil {
		return nil, nil, err
	}
	if req.Given != nil {
		if err := req.Given(d.specs(), req.Params); err != nil {
			return nil, nil, err
		}
	}
	given, secrets, err := withoutSecrets(d, RunRequest{Params: req.Params})
	if err != nil {
		return nil, nil, err
	}
	d.given = secrets
	params, err := declaredAgain(&model.Job{Parameters: d.file.Parameters()}, e, typed(d.file.Parameters(), given.Params, req.Folder))
	if err != nil {
		return nil, nil, &Refusal{Reason: refusal.Parameters, Execution: e.ID, Err: fmt.Errorf("the parameters of execution %d: %w", e.ID, err)}
	}
	plan, err := s.planRedrive(ctx, req)
	if err != nil || req.partly && plan.Items == 0 {
		return nil, plan, err
	}
	l := &launch{definition: d, hooks: req.Hooks, named: e, options: job.Options{Task: req.Task, Request: req.Key, Bound: bound}}
	if l.params, err = s.redriveParameters(ctx, req, plan, params); err != nil {
		return nil, nil, err
	}
	if ended, err := s.hasEnded(ctx, before); err != nil {
		return nil, nil, err
	} else if ended { // it may have taken the items since they were read
		return s.planned(ctx, req)
	}
	if l.job, err = s.compileRedrive(ctx, d, e, plan, req.Hooks); err != nil {
		return nil, nil, err
	}
	l.confine(ctx, given.Params, e)
	if _, err := l.checkPaths(ctx); err != nil {
		return nil, nil, err
	}
	l.writers = writersOf(d, strings.Split(plan.Step, ":")[0], l.params)
	l.definition.file = nil // its definition is not compared: the remaining work is planned again
	return l, plan, nil
}

// lastRedrive returns a record without an ID if there is none.
func (s *redrives) lastRedrive(ctx context.Context, of core.JobExecutionID) (last ports.Redrive, err error) {
	found, err := s.records.Redrives(ctx, of, 1)
	if err == nil && len(found) > 0 {
		last = found[0]
	}
	return last, err
}

// hasEnded reports whether an execution that was active has ended since.
func (s *redrives) hasEnded(ctx context.Context, before ports.Redrive) (bool, error) {
	if before.ID == 0 || before.Status.IsOver() {
		return false, nil
	}
	now, err := s.judge.record(ctx, before.ID)
	return err == nil && now.Status.IsOver(), err
}

// isStale reports whether a launch was refused because of another redrive that was launched while this one was planned,
// so that it must be planned again: unless the caller's plan was for the items that the other one took.
func (s *redrives) isStale(ctx context.Context, req RedriveRequest, l *launch, refused error) (bool, error) {
	moved, is := errors.AsType[*ports.MovedError](refused)
	if !is {
		return false, nil
	}
	newest, err := s.newestRedrive(ctx, req.Execution, func(step string) bool { return req.Epoch == 0 || overlaps(step, redrivenStep(l.params)) })
	if err != nil {
		return false, err
	}
	taken := newest != nil && newest.ID > l.options.Bound.Redrive
	if req.Epoch == 0 {
		return taken, nil
	}
	last, err := s.lastRedrive(ctx, req.Execution)
	return !taken && moved.Newest == last.ID, err
}

// overtaken is the refusal of a launch if another redrive has completed its items since they were read: for the caller's
// plan the execution has moved.
func (s *redrives) overtaken(ctx context.Context, req RedriveRequest, l *launch, refused error) error {
	r, is := errors.AsType[*Refusal](refused)
	if !is || r.Reason != refusal.Complete || req.Epoch == 0 {
		return refused
	}
	newest, err := s.newestRedrive(ctx, req.Execution, func(step string) bool { return overlaps(step, redrivenStep(l.params)) })
	if err != nil || newest == nil {
		return errors.Join(refused, err)
	}
	return s.judge.moved(ctx, &ports.MovedError{Execution: req.Execution, Newest: newest.ID, Status: newest.Status, Epoch: newest.Epoch})
}

func (s *redrives) redriveFile(ctx context.Context, req RedriveRequest, e *core.JobExecution) (definition, error) {
	d, err := s.jobs.stored(ctx, req.source(), e, req.Hooks)
	if err != nil {
		return d, err
	}
	wrong := func(format string, args ...any) (definition, error) {
		return d, &Refusal{Reason: refusal.File, Execution: e.ID, Err: fmt.Errorf(format, args...)}
	}
	if d.file == nil {
		return wrong("execution %d ran a job built in Go: its skipped items cannot be redriven", e.ID)
	}
	if d.file.Name() != e.JobName {
		return wrong("%s defines job %s, but execution %d ran job %s", d.path, d.file.Name(), e.ID, e.JobName)
	}
	if now := d.file.Definition(); now.Hash != e.Definition.Hash {
		req.notice(Notice{Kind: NoticeChanged, Execution: e.ID, File: d.path, Actions: compareActions(e.ID, e.Definition, now, d.path)})
	}
	return d, nil
}

func (s *redrives) compileRedrive(ctx context.Context, d definition, of *core.JobExecution, plan *redrive.Plan, hooks Hooks) (*model.Job, error) {
	ran, err := s.records.Steps(ctx, plan.Execution)
	if err != nil {
		return nil, fmt.Errorf("read the steps of execution %d: %w", plan.Execution, err)
	}
	steps := make(map[string]core.StepExecution, len(ran))
	for _, step := range ran {
		steps[step.Name] = step
	}
	written := &Targets{next: hooks.OnTarget}
	j, err := d.file.CompileRedrive(s.jobs.depsOf(d, watch(s.jobs.registry, written.Add)), jobfile.Redrive{Plan: plan, Instance: of.InstanceID, Steps: steps, Watch: written.watchFiles})
	if err != nil {
		return nil, &Refusal{Reason: refusal.File, Execution: plan.Execution, Err: err}
	}
	return s.jobs.located(j, d), nil
}

func (s *redrives) planRedrive(ctx context.Context, req RedriveRequest) (*redrive.Plan, error) {
	id := req.Execution
	refuse := func(reason Reason, err error, actions ...Action) error {
		return &Refusal{Reason: reason, Execution: id, Err: err, Actions: actions}
	}
	plan, err := redrive.New(ctx, s.records, redrive.Request{Execution: id, Step: req.Step, Edited: req.Edited, Partly: req.partly})
	if moved := s.redrivenSince(ctx, req, err); moved != nil {
		return nil, moved
	}
	var steps *redrive.StepsError
	switch {
	case errors.Is(err, redrive.ErrNothing):
		if plan, err := s.restOfRedrive(ctx, req); plan != nil || err != nil {
			return plan, err
		}
		return nil, refuse(refusal.NothingSkipped, fmt.Errorf("execution %d: %w", id, err), Action{Kind: refusal.ActSkips, Execution: id})
	case errors.As(err, &steps):
		var actions []Action
		for _, name := range steps.Steps {
			actions = append(actions, Action{Kind: refusal.ActRedrive, Execution: id, Step: name})
		}
		return nil, refuse(refusal.WhichStep, fmt.Errorf("execution %d: %w", id, err), actions...)
	case err != nil && req.Edited != nil && !req.partly:
		rest, other := s.restOfRedrive(ctx, req)
		if other != nil || rest == nil {
			return nil, errors.Join(refuse(refusal.Items, err), other)
		}
		return nil, refuse(refusal.Items, err, Action{Kind: refusal.ActRedrive, Execution: id, Step: rest.Step})
	case err != nil:
		return nil, err
	case req.partly:
		return plan, nil
	case plan.Items == 0:
		return nil, refuse(refusal.Items, &ItemsError{Refused: plan.Refused}, Action{Kind: refusal.ActExport, Execution: id})
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

func (s *redrives) unmoved(ctx context.Context, e *core.JobExecution, epoch int64) error {
	if epoch == 0 {
		return nil
	}
	newest, err := s.judge.newestAttempt(ctx, e)
	if err != nil {
		return err
	}
	return s.judge.unmoved(ctx, e.ID, epoch, newest)
}

// redrivenSince refuses items that the caller saw as left and another redrive has taken since.
func (s *redrives) redrivenSince(ctx context.Context, req RedriveRequest, err error) error {
	done, taken := errors.AsType[*redrive.DoneError](err)
	if req.Epoch == 0 || !taken && !errors.Is(err, redrive.ErrNothing) {
		return nil
	}
	newest, err := s.newestRedrive(ctx, req.Execution, func(step string) bool {
		return req.Step == "" || overlaps(step, req.Step)
	})
	if err != nil || newest == nil || !taken && continues(newest, true) { // it has to publish its output
		return err
	}
	moved := &ports.MovedError{Execution: req.Execution, Newest: newest.ID, Status: newest.Status, Epoch: newest.Epoch}
	if taken {
		return s.judge.moved(ctx, fmt.Errorf("%w: %w", moved, done))
	}
	return s.judge.moved(ctx, moved)
}

const maxNamedItems = 5

// ItemsError means that none of the skipped items can be redriven as stored.
type ItemsError struct{ Refused []redrive.Refusal }

func (e *ItemsError) Error() string { return errors.Join(e.Unwrap()...).Error() }

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

// An incomplete redrive is continued: it may have rows in an unpublished file
// (rule C12b).
func (s *redrives) redriveParameters(ctx context.Context, req RedriveRequest, plan *redrive.Plan, params core.Parameters) (core.Parameters, error) {
	newest, err := s.newestRedrive(ctx, plan.Execution, func(step string) bool { return overlaps(step, plan.Step) })
	if err != nil {
		return params, err
	}
	if newest != nil && continues(newest, true) {
		again, err := withRedrive(params, plan.Execution, plan.Step, redriveNumber(newest.Params))
		if err == nil && again.Key() == newest.Params.Key() {
			return again, s.onlyDue(ctx, req, plan, newest)
		}
		return params, &Refusal{Reason: refusal.Redrive, Execution: plan.Execution,
			Err: fmt.Errorf("execution %d, a redrive of step %s, is %s: complete it with its own parameters before another redrive of these items, or abandon it",
				newest.ID, redrivenStep(newest.Params), newest.Status),
			Actions: []Action{{Kind: refusal.ActShow, Execution: newest.ID, Status: newest.Status}, s.judge.restartAction(newest, false), {Kind: refusal.ActAbandon, Execution: newest.ID}}}
	}
	same, err := s.newestRedrive(ctx, plan.Execution, func(step string) bool { return step == plan.Step })
	n := int64(1)
	if same != nil {
		n += redriveNumber(same.Params)
	}
	if err != nil {
		return params, err
	}
	return withRedrive(params, plan.Execution, plan.Step, n)
}

func overlaps(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+":") || strings.HasPrefix(b, a+":")
}

// A redrive that has committed all items still has to publish its output.
func (s *redrives) restOfRedrive(ctx context.Context, req RedriveRequest) (*redrive.Plan, error) {
	newest, err := s.newestRedrive(ctx, req.Execution, func(step string) bool { return req.Step == "" || step == req.Step })
	if err != nil || newest == nil || !continues(newest, true) {
		return nil, err
	}
	_, parts, err := s.partsOfRedrive(ctx, newest)
	if err != nil {
		return nil, err
	}
	return redrive.Nothing(s.records, req.Execution, redrivenStep(newest.Params), parts), nil
}

func (s *redrives) onlyDue(ctx context.Context, req RedriveRequest, plan *redrive.Plan, of *core.JobExecution) error {
	planned, due, err := s.partsOfRedrive(ctx, of)
	if err != nil || !planned {
		return err
	}
	if left := plan.Only(due); left > 0 {
		req.notice(Notice{Kind: NoticeNotRedriven, Execution: plan.Execution, Items: []string{
			fmt.Sprintf("%d skipped items belong to partitions that execution %d has completed: redrive them after it is complete", left, of.ID),
		}})
	}
	return nil
}

func (s *redrives) partsOfRedrive(ctx context.Context, of *core.JobExecution) (planned bool, due []string, err error) {
	seen := map[string]bool{}
	err = s.eachRedrive(ctx, of.RedriveOf, func(e *core.JobExecution) (more bool, err error) {
		if e.InstanceID != of.InstanceID {
			return true, nil
		}
		steps, err := s.records.Steps(ctx, e.ID)
		if err != nil {
			return false, fmt.Errorf("read the steps of execution %d: %w", e.ID, err)
		}
		for _, step := range steps {
			if !strings.Contains(step.Name, ":") || seen[step.Name] {
				continue
			}
			if seen[step.Name] = true; step.Status != core.StatusCompleted {
				due = append(due, step.Name)
			}
		}
		return true, nil
	})
	slices.Sort(due)
	return len(seen) > 0, due, err
}

func (s *redrives) newestRedrive(ctx context.Context, of core.JobExecutionID, match func(step string) bool) (newest *core.JobExecution, err error) {
	err = s.eachRedrive(ctx, of, func(e *core.JobExecution) (bool, error) {
		if match(redrivenStep(e.Params)) {
			newest = e
		}
		return newest == nil, nil
	})
	return newest, err
}

func (s *redrives) eachRedrive(ctx context.Context, of core.JobExecutionID, f func(e *core.JobExecution) (more bool, err error)) error {
	filter := ports.ExecutionFilter{RedriveOf: of, Limit: maxRedrives}
	for {
		page, err := s.records.Executions(ctx, filter)
		if err != nil {
			return fmt.Errorf("find the redrives of execution %d: %w", of, err)
		}
		for i := range page {
			if more, err := f(&page[i]); err != nil || !more {
				return err
			}
		}
		if len(page) < filter.Limit {
			return nil
		}
		filter.Before = page[len(page)-1].ID
	}
}
