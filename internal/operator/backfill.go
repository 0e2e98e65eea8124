package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// DefaultKeyWait is how long a backfill's instance waits for another execution
// with its key.
const DefaultKeyWait = time.Hour

const (
	maxBackfill = 10_000
	waitPause   = time.Second
)

// BackfillRequest requests an instance for each value in a range of one parameter.
type BackfillRequest struct {
	// Hooks are called by one goroutine at a time, except OnTarget. When Stop
	// is closed, no other instance begins.
	RunRequest
	// Param is of type date or int. From and To are included. Step is in days
	// for a date; 0 means 1.
	Param, From, To string
	Step            int64
	// Parallel is the number of instances at once; 0 means 1.
	Parallel int
	// Wait is how long an instance waits for another process's execution with
	// its key (rule L12); 0 means DefaultKeyWait. Instances of this backfill
	// wait without a limit.
	Wait time.Duration
	// Done is called when an instance has ended, by one goroutine at a time;
	// may be nil.
	Done func(BackfillRun)
}

// BackfillRun is the result of one instance.
type BackfillRun struct {
	Value     string     `json:"value"`
	Skipped   bool       `json:"skipped,omitempty"`
	Execution *Execution `json:"execution,omitempty"`
	Read      int64      `json:"read"`
	Written   int64      `json:"written"`
	// Problem is why none ran, or its record could not be read.
	Problem string `json:"problem,omitempty"`
}

// Failed reports whether the instance is not complete.
func (r BackfillRun) Failed() bool {
	return !r.Skipped && (r.Execution == nil || r.Execution.Status != core.StatusCompleted)
}

// Backfilled is the result of a range.
type Backfilled struct {
	Runs []BackfillRun `json:"runs"`
	// NotBegun counts instances that did not begin.
	NotBegun int `json:"not_begun"`
}

// Failed returns the number of begun instances that are not complete.
func (b *Backfilled) Failed() (failed int) {
	for _, r := range b.Runs {
		if r.Failed() {
			failed++
		}
	}
	return failed
}

// Backfill runs the instances of a range: it skips complete ones, resumes those
// that failed or stopped, and launches the others. All parameters are checked
// before the first launch. Only an error of the database ends it early, with
// results.
func (s *runs) Backfill(ctx context.Context, req BackfillRequest) (*Backfilled, error) {
	_, _, instances, err := s.backfillOf(ctx, &req, maxBackfill)
	if err != nil {
		return nil, err
	}
	if err := s.schema.Prepare(ctx); err != nil {
		return nil, err
	}
	b := &backfill{launches: s, req: req, instances: instances, runs: make([]BackfillRun, len(instances)), begun: make([]bool, len(instances))}
	notice := req.OnNotice
	b.req.OnNotice = func(n Notice) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if notice != nil {
			notice(n)
		}
	}
	var workers sync.WaitGroup
	for range min(max(req.Parallel, 1), len(instances)) {
		workers.Go(func() { b.work(ctx) })
	}
	workers.Wait()
	all := &Backfilled{Runs: []BackfillRun{}, NotBegun: len(instances)}
	for i, run := range b.runs {
		if b.begun[i] {
			all.Runs = append(all.Runs, run)
			all.NotBegun--
		}
	}
	if b.err == nil && ctx.Err() != nil && all.NotBegun+all.Failed() > 0 {
		b.err = context.Cause(ctx)
	}
	return all, b.err
}

// startValue starts one instance as Backfill does.
func (s *runs) startValue(ctx context.Context, req RunRequest, param string) (*Running, error) {
	value := req.Params[param]
	_, _, instances, err := s.backfillOf(ctx, &BackfillRequest{RunRequest: req, Param: param, From: value, To: value}, 1)
	if err != nil {
		return nil, err
	}
	req.backfill, req.Exactly = true, &instances[0].params
	return s.Start(ctx, req)
}

// backfillOf are the instances of a range, at most so many, with their job.
func (s *runs) backfillOf(ctx context.Context, req *BackfillRequest, most int) (d definition, j *model.Job, instances []instanceOf, err error) {
	if d, err = s.jobs.find(ctx, req.source()); err != nil {
		return d, nil, nil, err
	}
	if j, err = s.jobs.compile(d, Hooks{}); err != nil {
		return d, nil, nil, err
	}
	instances, err = instancesOf(j.Parameters, req, most)
	if err != nil {
		err = &Refusal{Reason: refusal.Parameters, Err: err, Actions: []Action{{Kind: refusal.ActHelp, File: req.File}}}
	}
	return d, j, instances, err
}

// given are the parameters of an instance as texts.
func (r *BackfillRequest) given(value string) map[string]string {
	given := maps.Clone(r.Params)
	if given == nil {
		given = map[string]string{}
	}
	given[r.Param] = value
	return given
}

type instanceOf struct {
	value  string
	given  map[string]string
	params core.Parameters
}

func instancesOf(specs []core.ParameterSpec, req *BackfillRequest, most int) ([]instanceOf, error) {
	values, err := rangeOf(specs, req, most)
	if err != nil {
		return nil, err
	}
	instances := make([]instanceOf, len(values))
	for i, value := range values {
		given := typed(specs, req.given(value), req.Folder)
		params, err := job.ValidateParameters(specs, given)
		if err != nil {
			return nil, err
		}
		instances[i] = instanceOf{value, given, params}
	}
	return instances, nil
}

func rangeOf(specs []core.ParameterSpec, req *BackfillRequest, most int) ([]string, error) {
	var spec *core.ParameterSpec
	for i := range specs {
		if specs[i].Name == req.Param {
			spec = &specs[i]
		}
	}
	switch {
	case spec == nil:
		return nil, fmt.Errorf("parameter %s: the job has no such parameter", req.Param)
	case spec.Type != core.TypeDate && spec.Type != core.TypeInt:
		return nil, fmt.Errorf("parameter %s: a range needs a date or an int, not a %s", req.Param, spec.Type)
	case !spec.Identifying:
		return nil, fmt.Errorf("parameter %s is not identifying: all its values belong to one instance", req.Param)
	}
	values, err := valuesBetween(spec.Type, req.From, req.To, req.Step, most)
	if wrong, is := errors.AsType[*RequestError](err); is {
		return nil, fmt.Errorf("parameter %s: %s", req.Param, wrong.Reason)
	}
	return values, err
}

type backfill struct {
	launches  *runs
	req       BackfillRequest
	instances []instanceOf

	mu    sync.Mutex
	next  int
	runs  []BackfillRun
	begun []bool
	err   error
}

func (b *backfill) work(ctx context.Context) {
	for {
		i, ok := b.take(ctx)
		if !ok {
			return
		}
		run, err := b.run(ctx, b.instances[i])
		b.mu.Lock()
		b.runs[i] = run
		b.err = errors.Join(b.err, err)
		if b.req.Done != nil {
			b.req.Done(run)
		}
		b.mu.Unlock()
	}
}

func (b *backfill) take(ctx context.Context) (int, bool) {
	select {
	case <-b.req.Stop:
		return 0, false
	case <-ctx.Done():
		return 0, false
	default:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == len(b.instances) || b.err != nil {
		return 0, false
	}
	i := b.next
	b.next++
	b.begun[i] = true
	return i, true
}

func (b *backfill) run(ctx context.Context, of instanceOf) (BackfillRun, error) {
	req := b.req.RunRequest
	req.backfill = true
	req.Exactly = &of.params // Params has only the secret ones left
	r := BackfillRun{Value: of.value}
	running, err := b.start(ctx, req)
	var refused *Refusal
	switch {
	case errors.As(err, &refused):
		r.Skipped = refused.Reason == refusal.Complete
		if !r.Skipped {
			r.Problem = err.Error()
		}
		return r, nil
	case err != nil:
		r.Problem = err.Error()
		return r, err
	}
	if r.Execution, err = running.Follow(ctx, b.req.Stop); err == nil {
		err = b.count(ctx, &r)
	}
	if err != nil {
		r.Problem = err.Error()
	}
	return r, err
}

func (b *backfill) start(ctx context.Context, req RunRequest) (*Running, error) {
	begin, said := time.Now(), core.JobExecutionID(0)
	waited := time.Duration(0) // for executions of other processes
	for {
		running, err := b.launches.Start(ctx, req)
		excluded, is := errors.AsType[*ports.ExclusiveError](err)
		if !is {
			return running, err
		}
		holder := excluded.Running.ExecutionID
		own := b.launches.active.has(holder)
		if !own && waited >= cmp.Or(b.req.Wait, DefaultKeyWait) {
			return nil, fmt.Errorf("%w (waited %v)", err, waited.Round(time.Second))
		}
		if !own && said != holder {
			said = holder
			b.req.OnNotice(Notice{Kind: NoticeKeyHeld, Execution: holder})
		}
		pause := model.NextLook(time.Since(begin), waitPause)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-b.req.Stop:
			timer.Stop()
			return nil, err
		case <-ctx.Done():
			timer.Stop()
			return nil, err
		}
		if !own {
			waited += pause
		}
	}
}

func (b *backfill) count(ctx context.Context, r *BackfillRun) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), planTime)
	defer cancel()
	view, err := b.launches.history.Summary(ctx, SummaryRequest{Execution: r.Execution.ID})
	if err != nil {
		return err
	}
	for _, step := range view.Steps {
		r.Read, r.Written = r.Read+step.Read, r.Written+step.Written
	}
	return nil
}
