package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Choice is the instance that Run would run.
type Choice struct {
	JobName string     `json:"job"`
	Params  Parameters `json:"parameters"`
	// Resumes is the last execution of the instance if a run would make another attempt; 0 if there
	// is none, or it is complete or abandoned.
	Resumes core.JobExecutionID `json:"resumes,omitempty"`
}

// Choose returns the instance that a Run of the request runs, and launches nothing:
//
//   - With Again, the newest of the instances with these parameters if it has not completed, else
//     one more.
//   - With Next, the instance after the newest one, made by the job's incrementer.
//   - For a job with an incrementer, the newest instance if it has not completed and the parameters
//     name no other, else the next one.
//   - Else the instance of the parameters, with the defaults of those not given.
//
// The newest instance is the one created last, whatever was restarted or purged since; redrives do
// not count (rule L3a).
func (s *Service) Choose(ctx context.Context, req RunRequest) (*Choice, error) {
	l, err := s.choose(ctx, req)
	if err != nil {
		return nil, err
	}
	c := &Choice{JobName: l.job.Name, Params: Parameters{l.params}}
	last, err := s.resumed(ctx, l)
	if last != nil {
		c.Resumes = last.ID
	}
	return c, err
}

// resumed returns the last execution of the chosen instance, or nil if it would not be resumed.
func (s *Service) resumed(ctx context.Context, l *launch) (*core.JobExecution, error) {
	if has, err := s.hasHistory(ctx); !has {
		return nil, err
	}
	last, err := s.lastExecution(ctx, l.job.Name, l.params.Key())
	if err != nil || last == nil || !canGoOn(l.job, last.Status) {
		return nil, err
	}
	return last, nil
}

// asBegun replaces the job file of the request by the last attempt's, if the instance is resumed
// and the history has that file.
func (s *Service) asBegun(ctx context.Context, l *launch) error {
	last, err := s.resumed(ctx, l)
	if err != nil || last == nil || last.Definition.Text == "" {
		return err
	}
	d, err := s.ofHistory(last)
	if err != nil {
		return err
	}
	d.given = l.given
	l.definition = d
	l.job, err = s.compile(l.definition, s.watched(l.hooks))
	return err
}

func (s *Service) choose(ctx context.Context, req RunRequest) (*launch, error) {
	d, err := s.find(ctx, req.source())
	if err != nil {
		return nil, err
	}
	if req, d.given, err = withoutSecrets(d, req); err != nil {
		return nil, err
	}
	l := &launch{definition: d, hooks: req.Hooks, options: job.Options{Backfill: req.backfill, FromStart: req.FromStart, AcceptChanges: req.AcceptChanges, Task: req.Task, On: req.On, Request: req.Key}}
	if l.job, err = s.compile(d, s.watched(req.Hooks)); err != nil {
		return nil, err
	}
	req.Params = typed(l.job.Parameters, req.Params, req.Folder)
	if l.params, err = s.instance(ctx, l, req); err != nil {
		return l, err
	}
	if req.AsBegun && !req.FromStart {
		if err := s.asBegun(ctx, l); err != nil {
			return l, err
		}
	}
	l.confine(ctx, req.Params, l.follows)
	_, err = l.checkPaths(ctx)
	return l, err
}

// withoutSecrets removes the values of secret parameters from a request: they are not stored or
// shown with a launch.
func withoutSecrets(d definition, req RunRequest) (RunRequest, map[string]string, error) {
	given := map[string]string{}
	for _, spec := range d.specs() {
		if !spec.Secret {
			continue
		}
		if value, ok := req.Params[spec.Name]; ok {
			given[spec.Name] = value
		}
		if req.Exactly == nil {
			continue
		}
		if p, ok := req.Exactly.Get(spec.Name); ok {
			given[spec.Name] = p.Text()
		}
	}
	if len(given) == 0 {
		return req, nil, nil
	}
	isGiven := func(name, _ string) bool { _, ok := given[name]; return ok }
	if req.Params = maps.Clone(req.Params); req.Params != nil {
		maps.DeleteFunc(req.Params, isGiven)
	}
	if req.Task != 0 {
		return req, nil, &Refusal{Reason: ReasonParameters, Err: fmt.Errorf("the secret parameters %s cannot be given by a task, whose payload is stored: give the workers these secrets",
			strings.Join(slices.Sorted(maps.Keys(given)), ", "))}
	}
	if req.Exactly != nil {
		left, err := core.NewParameters(slices.DeleteFunc(req.Exactly.All(), func(p core.Parameter) bool { return isGiven(p.Name, "") })...)
		if err != nil {
			return req, nil, err
		}
		req.Exactly = &left
	}
	return req, given, nil
}

func (d definition) specs() []core.ParameterSpec {
	if d.job != nil {
		return d.job.Parameters
	}
	return d.file.Parameters()
}

func (s *Service) instance(ctx context.Context, l *launch, req RunRequest) (core.Parameters, error) {
	if req.Exactly != nil {
		return placed(l.job.Parameters, *req.Exactly)
	}
	if !req.Again && (req.Next || l.job.Incrementer != nil) {
		return s.incremented(ctx, l, req)
	}
	params, err := job.ValidateParameters(l.job.Parameters, req.Params)
	if err != nil {
		return params, parametersRefused(err, l)
	}
	if req.Again {
		return s.again(ctx, l.job, params)
	}
	return params, nil
}

func parametersRefused(err error, l *launch) error {
	return &Refusal{Reason: ReasonParameters, Err: err, Actions: []Action{{Kind: ActHelp, Job: l.job.Name, File: l.path}}}
}

// again returns the parameters of the newest repetition if it can continue, else of one more. If
// two processes find the same number, one is refused, as always (rule L1).
func (s *Service) again(ctx context.Context, j *model.Job, params core.Parameters) (core.Parameters, error) {
	if has, err := s.hasHistory(ctx); !has {
		return params, err
	}
	newest, err := s.lastOf(ctx, ports.InstanceFilter{JobName: j.Name, BaseKey: params.BaseKey()})
	if err != nil || newest == nil {
		return params, err
	}
	n := againNumber(newest.Params)
	if !canGoOn(j, newest.Status) {
		n++
	}
	return withAgain(params, n)
}

// hasHistory reports whether the tables of the history exist. A dry run does not create them.
func (s *Service) hasHistory(ctx context.Context) (bool, error) {
	if s.config.Schema == nil || s.prepared.Load() {
		return true, nil
	}
	err := s.config.Schema.CheckSchema(ctx)
	if errors.Is(err, core.ErrSchemaMissing) {
		return false, nil
	}
	return err == nil, err
}

func againNumber(params core.Parameters) int64 {
	p, _ := params.Get(core.AgainName)
	n, _ := p.Value.(int64) //nolint:errcheck // absent is 0
	return n
}

// lastOf returns the last execution of the newest instance that the filter selects, or nil.
func (s *Service) lastOf(ctx context.Context, filter ports.InstanceFilter) (*core.JobExecution, error) {
	for filter.Limit = 1; ; {
		page, err := s.config.Repository.Instances(ctx, filter)
		if err != nil {
			return nil, fmt.Errorf("find the newest instance: %w", err)
		}
		if len(page) == 0 {
			return nil, nil
		}
		last, err := s.lastExecution(ctx, page[0].JobName, page[0].Key)
		if err != nil || last != nil {
			return last, err
		}
		filter.Before = page[0].ID // it was deleted in between
	}
}

func (s *Service) lastExecution(ctx context.Context, name, key string) (*core.JobExecution, error) {
	last, err := s.config.Repository.LastExecution(ctx, name, key)
	switch {
	case errors.Is(err, core.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("find the last execution of an instance: %w", err)
	}
	return last, nil
}

func withAgain(params core.Parameters, n int64) (core.Parameters, error) {
	if n == 0 {
		return params, nil
	}
	number := core.Parameter{Name: core.AgainName, Type: core.TypeInt, Value: n, Identifying: true}
	return core.NewParameters(append(params.All(), number)...)
}

// canGoOn reports whether to attempt the instance again (the repository may refuse, if it runs or
// its outcome is unknown).
func canGoOn(j *model.Job, s core.Status) bool {
	switch s {
	case core.StatusCompleted, core.StatusAbandoned:
		return false
	case core.StatusFailed, core.StatusStopped:
		return j.Restartable
	case core.StatusStarting, core.StatusStarted, core.StatusParked, core.StatusStopping, core.StatusUnknown:
	}
	return true
}

// incremented returns the parameters of the newest instance if that is selected and has not
// completed, else the incrementer's.
func (s *Service) incremented(ctx context.Context, l *launch, req RunRequest) (core.Parameters, error) {
	if l.job.Incrementer == nil {
		return core.Parameters{}, &Refusal{Reason: ReasonNoIncrementer, Err: fmt.Errorf("job %s: %w", l.job.Name, core.ErrNoIncrementer),
			Actions: []Action{{Kind: ActIncrementer, File: l.path}, {Kind: ActAgain, File: l.path, Params: req.Params, Paths: pathNames(l.job.Parameters, req.Params)}}}
	}
	given, err := job.ValidateParameters(optional(l.job.Parameters), req.Params)
	if err != nil {
		return core.Parameters{}, parametersRefused(fmt.Errorf("next instance of job %s: %w", l.job.Name, err), l)
	}
	last, follow, err := s.newest(ctx, l.job.Name)
	if err != nil {
		return core.Parameters{}, err
	}
	if !req.Next && last != nil && canGoOn(l.job, last.Status) && isMeant(last.Params, given) {
		l.hooks.notice(Notice{Kind: NoticeResumed, Execution: last.ID, Status: last.Status})
		l.follows = last
		return parametersAgain(l.job, resumable(l.job, last), req.Params)
	}
	l.follows = follow
	return s.following(ctx, l, follow, given)
}

// resumable returns the execution with the parameters with which a run resumes it: the identifying
// ones, and those that the job inherits. The others are given, or have their defaults, as in a job
// without an incrementer.
func resumable(j *model.Job, last *core.JobExecution) *core.JobExecution {
	if len(j.Parameters) == 0 {
		return last
	}
	kept := slices.DeleteFunc(last.Params.All(), func(p core.Parameter) bool {
		return !p.Identifying && !slices.Contains(j.Inherit, p.Name)
	})
	params, err := core.NewParameters(kept...)
	if err != nil { // a subset of valid parameters
		return last
	}
	resumed := *last
	resumed.Params = params
	return &resumed
}

// maxPassed is the maximum number of consecutive instances that cannot run again and that an
// incrementer passes.
const maxPassed = 1000

// following applies the incrementer, starting from follow, until it makes parameters whose instance
// is new or can continue. An older one may have been created out of turn.
func (s *Service) following(ctx context.Context, l *launch, follow *core.JobExecution, given core.Parameters) (params core.Parameters, err error) {
	for range maxPassed {
		if params, err = nextParameters(l.job, follow, given); err != nil {
			return params, parametersRefused(fmt.Errorf("next instance of job %s: %w", l.job.Name, err), l)
		}
		if follow == nil { // the job has no instance
			return params, nil
		}
		last, err := s.lastExecution(ctx, l.job.Name, params.Key())
		if err != nil || last == nil || canGoOn(l.job, last.Status) || follow.Params.Key() == params.Key() {
			return params, err
		}
		follow = last
	}
	return params, nil
}

// newest returns the last execution of the newest instance of a job (nil if there is none or it was
// deleted), and the execution that the next instance follows. A repetition has the parameters of an
// older instance, and counts only if there is nothing else. A redrive never counts, and an instance
// of a backfill only if there is no other.
func (s *Service) newest(ctx context.Context, name string) (newest, follow *core.JobExecution, err error) {
	if has, err := s.hasHistory(ctx); !has {
		return nil, nil, err
	}
	filter := ports.InstanceFilter{JobName: name, NoRedrives: true, NoBackfills: true}
	if newest, err = s.lastOf(ctx, filter); err == nil && newest == nil {
		filter.NoBackfills = false
		newest, err = s.lastOf(ctx, filter)
	}
	if err != nil {
		return nil, nil, err
	}
	follow = newest
	if newest != nil && againNumber(newest.Params) > 0 {
		base, err := s.lastOf(ctx, ports.InstanceFilter{JobName: name, OnlyBase: true, NoBackfills: filter.NoBackfills})
		if err != nil {
			return nil, nil, err
		}
		follow = base
	}
	purged, err := s.config.Repository.LastPurged(ctx, name)
	switch {
	case errors.Is(err, core.ErrNotFound):
		return newest, cmp.Or(follow, newest), nil
	case err != nil:
		return nil, nil, err
	}
	if newest != nil && newest.InstanceID < purged.InstanceID {
		newest = nil
	}
	if follow == nil || follow.InstanceID < purged.InstanceID {
		follow = purged
	}
	return newest, follow, nil
}

// optional declares the same parameters without defaults, and requires none, so that missing ones
// are left to the incrementer.
func optional(specs []core.ParameterSpec) []core.ParameterSpec {
	list := make([]core.ParameterSpec, len(specs))
	for i, spec := range specs {
		spec.Default, spec.Required = nil, false
		list[i] = spec
	}
	return list
}

// isMeant reports whether every given identifying parameter equals the one in params.
func isMeant(params, given core.Parameters) bool {
	for _, p := range given.All() {
		if had, ok := params.Get(p.Name); p.Identifying && (!ok || !same(had, p)) {
			return false
		}
	}
	return true
}

func same(a, b core.Parameter) bool {
	return a.Type == b.Type && a.Text() == b.Text()
}
