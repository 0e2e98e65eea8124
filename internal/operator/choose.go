package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type chooser struct {
	schema  *schema
	judge   *judge
	jobs    *jobs
	records interface {
		Instances(ctx context.Context, filter ports.InstanceFilter) ([]ports.JobInstance, error)
		LastPurged(ctx context.Context, jobName string) (*core.JobExecution, error)
	}
}

// Choice is the instance that Run would run.
type Choice struct {
	JobName string     `json:"job"`
	Params  Parameters `json:"parameters"`
	// Resumes is the last execution if a run would make another attempt, or 0.
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
func (s *chooser) Choose(ctx context.Context, req RunRequest) (*Choice, error) {
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

func (s *chooser) resumed(ctx context.Context, l *launch) (*core.JobExecution, error) {
	if has, err := s.schema.hasHistory(ctx); !has {
		return nil, err
	}
	last, err := s.judge.lastExecution(ctx, l.job.Name, l.params.Key())
	if err != nil || last == nil || !continues(last, l.job.Restartable) {
		return nil, err
	}
	return last, nil
}

func (s *chooser) asBegun(ctx context.Context, l *launch) error {
	last, err := s.resumed(ctx, l)
	if err != nil || last == nil || last.Definition.Text == "" {
		return err
	}
	d, err := s.jobs.ofHistory(last)
	if err != nil {
		return err
	}
	d.given = l.given
	l.definition = d
	l.job, err = s.jobs.compile(l.definition, l.hooks)
	return err
}

func (s *chooser) choose(ctx context.Context, req RunRequest) (*launch, error) {
	d, err := s.jobs.find(ctx, req.source())
	if err != nil {
		return nil, err
	}
	if req, d.given, err = withoutSecrets(d, req); err != nil {
		return nil, err
	}
	l := &launch{definition: d, hooks: req.Hooks, options: job.Options{Backfill: req.backfill, FromStart: req.FromStart, AcceptChanges: req.AcceptChanges, Task: req.Task, On: req.On, Request: req.Key}}
	if l.job, err = s.jobs.compile(d, req.Hooks); err != nil {
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

func (s *chooser) instance(ctx context.Context, l *launch, req RunRequest) (core.Parameters, error) {
	if req.Exactly != nil {
		return storedPaths(l.job.Parameters, *req.Exactly)
	}
	if !req.Again && (req.Next || l.job.Incrementer != nil) {
		return s.incremented(ctx, l, req)
	}
	params, err := job.ValidateParameters(l.job.Parameters, req.Params)
	if err != nil {
		return params, l.parametersRefused(err)
	}
	if req.Again {
		return s.again(ctx, l.job, params)
	}
	return params, nil
}

// If two processes find the same number, one is refused, as always (rule L1).
func (s *chooser) again(ctx context.Context, j *model.Job, params core.Parameters) (core.Parameters, error) {
	if has, err := s.schema.hasHistory(ctx); !has {
		return params, err
	}
	newest, err := s.lastOf(ctx, ports.InstanceFilter{JobName: j.Name, BaseKey: params.BaseKey()})
	if err != nil || newest == nil {
		return params, err
	}
	n := againNumber(newest.Params)
	if !continues(newest, j.Restartable) {
		n++
	}
	return withAgain(params, n)
}

func (s *chooser) lastOf(ctx context.Context, filter ports.InstanceFilter) (*core.JobExecution, error) {
	for filter.Limit = 1; ; {
		page, err := s.records.Instances(ctx, filter)
		if err != nil {
			return nil, fmt.Errorf("find the newest instance: %w", err)
		}
		if len(page) == 0 {
			return nil, nil
		}
		last, err := s.judge.lastExecution(ctx, page[0].JobName, page[0].Key)
		if err != nil || last != nil {
			return last, err
		}
		filter.Before = page[0].ID // it was deleted in between
	}
}

func (s *chooser) incremented(ctx context.Context, l *launch, req RunRequest) (core.Parameters, error) {
	if l.job.Incrementer == nil {
		return core.Parameters{}, &Refusal{Reason: refusal.NoIncrementer, Err: fmt.Errorf("job %s: %w", l.job.Name, ports.ErrNoIncrementer),
			Actions: []Action{{Kind: refusal.ActIncrementer, File: l.path}, {Kind: refusal.ActAgain, File: l.path, Params: req.Params, Paths: pathNames(l.job.Parameters, req.Params)}}}
	}
	given, err := job.ValidateParameters(optional(l.job.Parameters), req.Params)
	if err != nil {
		return core.Parameters{}, l.parametersRefused(fmt.Errorf("next instance of job %s: %w", l.job.Name, err))
	}
	last, follow, err := s.newest(ctx, l.job.Name)
	if err != nil {
		return core.Parameters{}, err
	}
	if !req.Next && last != nil && continues(last, l.job.Restartable) && matches(last.Params, given) {
		l.hooks.notice(Notice{Kind: NoticeResumed, Execution: last.ID, Status: last.Status})
		l.follows = last
		return parametersAgain(l.job, resumable(l.job, last), req.Params)
	}
	l.follows = follow
	return s.following(ctx, l, follow, given)
}

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

// maxPassed bounds the consecutive instances that cannot run again and that an
// incrementer passes.
const maxPassed = 1000

func (s *chooser) following(ctx context.Context, l *launch, follow *core.JobExecution, given core.Parameters) (params core.Parameters, err error) {
	for range maxPassed {
		if params, err = nextParameters(l.job, follow, given); err != nil {
			return params, l.parametersRefused(fmt.Errorf("next instance of job %s: %w", l.job.Name, err))
		}
		if follow == nil { // the job has no instance
			return params, nil
		}
		last, err := s.judge.lastExecution(ctx, l.job.Name, params.Key())
		if err != nil || last == nil || continues(last, l.job.Restartable) || follow.Params.Key() == params.Key() {
			return params, err
		}
		follow = last
	}
	return params, nil
}

// A redrive never counts; a repetition, or an instance of a backfill, only if
// there is no other.
func (s *chooser) newest(ctx context.Context, name string) (newest, follow *core.JobExecution, err error) {
	if has, err := s.schema.hasHistory(ctx); !has {
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
	purged, err := s.records.LastPurged(ctx, name)
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
