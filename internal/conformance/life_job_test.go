package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func (r *lifeRun) spec() *lifeJob {
	spec := lifeJob{}
	if r.scenario.Job != nil {
		spec = *r.scenario.Job
	}
	if spec.Steps == nil {
		spec.Steps = &[]lifeStep{{Name: "s1"}}
	}
	return &spec
}

func (r *lifeRun) job(spec *lifeJob, name string) (*model.Job, error) {
	j := &model.Job{
		Name: name, Restartable: spec.Restartable == nil || *spec.Restartable,
		Definition: r.definition(),
		Parameters: r.declared(spec),
		Listeners: func(context.Context, *core.View) ([]any, error) {
			return []any{&lifeListener{run: r, throws: spec.ListenerThrows}}, nil
		},
	}
	if spec.Incrementer != "" {
		j.Incrementer = job.Count(spec.Incrementer)
		for _, p := range j.Parameters { // the incrementers of the peers keep the other parameters
			if p.Name != spec.Incrementer {
				j.Inherit = append(j.Inherit, p.Name)
			}
		}
	}
	seen := map[string]int{}
	for i := range *spec.Steps {
		s := &(*spec.Steps)[i]
		built, err := r.step(s, name)
		if err != nil {
			return nil, err
		}
		e := &model.StepElement{ID: s.Name, Step: built, AllowStartIfComplete: s.AllowStartIfComplete, StartLimit: s.StartLimit}
		if seen[s.Name]++; seen[s.Name] > 1 {
			e.ID = fmt.Sprintf("%s#%d", s.Name, seen[s.Name])
		}
		if n := len(j.Flow.Elements); n > 0 {
			before := j.Flow.Elements[n-1].(*model.StepElement)
			before.Next = []model.Transition{{Pattern: "*", Success: true, Target: model.Target{Kind: model.TargetElement, Name: e.ID}}}
		}
		j.Flow.Elements = append(j.Flow.Elements, e)
	}
	return j, nil
}

// declared are the job's parameters: the declared ones, and, unless it declares which others there may be,
// the given ones.
func (r *lifeRun) declared(spec *lifeJob) []core.ParameterSpec {
	byName := map[string]core.ParameterSpec{}
	if spec.OptionalParams == nil {
		for _, a := range r.scenario.Actions {
			specs, _ := a.Params.specs()
			for _, p := range specs {
				byName[p.Name] = p
			}
		}
	} else {
		for _, name := range *spec.OptionalParams {
			byName[name] = r.given(name)
		}
	}
	for _, name := range spec.RequiredParams {
		p := r.given(name)
		p.Required = true
		byName[name] = p
	}
	if spec.Incrementer != "" {
		byName[spec.Incrementer] = core.ParameterSpec{Name: spec.Incrementer, Type: core.TypeInt, Identifying: true}
	}
	var list []core.ParameterSpec
	for _, name := range sortedKeys(byName) {
		list = append(list, byName[name])
	}
	return list
}

func (r *lifeRun) given(name string) core.ParameterSpec {
	for _, a := range r.scenario.Actions {
		if p, ok := a.Params[name]; ok {
			return core.ParameterSpec{Name: name, Type: p.kind, Identifying: !p.nonIdentifying}
		}
	}
	return core.ParameterSpec{Name: name, Type: core.TypeString, Identifying: true}
}

func (r *lifeRun) step(s *lifeStep, jobName string) (model.Step, error) {
	switch {
	case s.ChildJob != nil:
		return r.childStep(s, jobName)
	case s.Partitions != nil:
		return r.partitioned(s)
	case s.hasItems():
		return r.chunkStep(s)
	}
	return r.tasklet(s)
}

func (r *lifeRun) tasklet(s *lifeStep) (model.Step, error) {
	attr := tx.Attr{}
	waits, err := r.prepare(s)
	if err != nil {
		return nil, err
	}
	if waits || s.TerminateOnly {
		attr.Propagation = tx.NotSupported
	}
	config := step.TaskletConfig{
		Name: s.Name, Database: r.engine.Database, Attr: attr,
		Assemble: func(context.Context, *model.StepRun) (core.Tasklet, error) {
			return core.TaskletFunc(func(ctx context.Context, c *core.StepContribution) error { return r.play(ctx, c, s) }), nil
		},
	}
	if s.Partitions == nil {
		config.Promote, config.Listeners = s.promotion(), r.listeners(s)
	}
	return step.NewTasklet(config)
}

// prepare makes the scripts of a step, and reports whether any waits for a stop.
func (r *lifeRun) prepare(s *lifeStep) (waits bool, err error) {
	for key, outcome := range s.outcomes() {
		script, err := r.script(key, outcome)
		if err != nil {
			return false, err
		}
		waits = waits || script.waits()
	}
	return waits, nil
}

func (s *lifeStep) outcomes() map[string][]string {
	if s.Partitions == nil {
		return map[string][]string{s.Name: s.Outcome}
	}
	outcomes := map[string][]string{}
	for _, name := range *s.Partitions {
		outcomes[core.PartName(s.Name, name)] = s.Outcome
		if own, has := s.PartitionOutcome[name]; has {
			outcomes[core.PartName(s.Name, name)] = own
		}
	}
	return outcomes
}

func (s *lifeStep) promotion() *model.Promotion {
	keys := map[string]string{}
	for key := range s.PutsJobContext {
		keys[key] = key
	}
	if s.Promote != nil {
		for key, to := range s.Promote.Keys {
			keys[key] = to
		}
		return &model.Promotion{Keys: keys, Statuses: s.Promote.Statuses, Strict: s.Promote.Strict}
	}
	if len(keys) == 0 {
		return nil
	}
	return &model.Promotion{Keys: keys, Statuses: []string{"*"}}
}

func (r *lifeRun) script(key string, outcomes []string) (*script, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s, ok := r.scripts[key]; ok {
		return s, nil
	}
	s, err := newScript(outcomes)
	if err == nil {
		r.scripts[key] = s
	}
	return s, err
}

func (r *lifeRun) blockers() int {
	for i := range *r.spec().Steps {
		s := &(*r.spec().Steps)[i]
		n := 0
		for key, outcome := range s.outcomes() {
			if script, err := r.script(key, outcome); err == nil && script.now().isBlocking() {
				n++
			}
		}
		if n > 0 {
			return n
		}
	}
	return 1
}

func (r *lifeRun) play(ctx context.Context, c *core.StepContribution, s *lifeStep) error {
	r.enter(c.Step.Name, c.Context)
	if r.gate != nil {
		r.blocked <- struct{}{}
		<-r.gate
	}
	if err := r.lookAtJob(ctx, c); err != nil {
		return err
	}
	script, err := r.script(c.Step.Name, s.Outcome)
	if err != nil {
		return err
	}
	a, n := script.take()
	part := ""
	index := 0
	if c.View != nil && c.View.Part != nil {
		part, index = c.View.Part.Name, c.View.Part.Index
		if err := r.persisted(ctx, c, expanded(s.PartitionContext, part, index)); err != nil {
			return err
		}
	}
	errs := []error{
		put(c.Context, s.PutsStepContext), put(c.Context, s.PutsJobContext), put(c.Context, expanded(s.PartitionPutsContext, part, index)),
	}
	for key, sequence := range s.StepContextSequence {
		errs = append(errs, c.Context.Put(key, sequence[min(n, len(sequence)-1)].value))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return stage{
		repository: r.engine.Repository.Ports(), blocked: func() { r.blocked <- struct{}{} }, stops: s.TerminateOnly && n == 0,
	}.play(ctx, c, a)
}

func (r *lifeRun) lookAtJob(ctx context.Context, c *core.StepContribution) error {
	exec, err := r.engine.Repository.Execution(ctx, c.Step.JobExecutionID)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.statusSeen[c.Step.Name] = exec.Status
	r.jobAtStart[c.Step.Name] = core.NewExecutionContext()
	if exec.Context != nil {
		r.jobAtStart[c.Step.Name] = exec.Context.Clone()
	}
	return nil
}

func (r *lifeRun) enter(name string, c *core.ExecutionContext) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.invoked = append(r.invoked, name)
	if c == nil {
		c = core.NewExecutionContext()
	}
	r.started[name] = c.Clone()
}

// startedWith is the initial context of a step or, after a colon, of a partition.
func (r *lifeRun) startedWith(name string) *core.ExecutionContext {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range sortedKeys(r.started) {
		if key == name || strings.HasPrefix(name, ":") && strings.HasSuffix(key, name) {
			return r.started[key]
		}
	}
	return nil
}

func (r *lifeRun) persisted(ctx context.Context, c *core.StepContribution, want contextValues) error {
	steps, err := r.engine.Repository.Steps(ctx, c.Step.JobExecutionID)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(steps, func(s core.StepExecution) bool { return s.ID == c.Step.ID })
	if at < 0 {
		return fmt.Errorf("partition %s runs without a record", c.Step.Name)
	}
	for key, value := range want {
		if stored, _ := steps[at].Context.Get(key); stored != value.value {
			return fmt.Errorf("partition %s runs before its context is stored: %s is %v", c.Step.Name, key, stored)
		}
	}
	return nil
}

func put(c *core.ExecutionContext, list contextValues) error {
	var errs []error
	for key, s := range list {
		errs = append(errs, c.Put(key, s.value))
	}
	return errors.Join(errs...)
}

func expanded(list contextValues, name string, index int) contextValues {
	out := contextValues{}
	for key, s := range list {
		if text, isText := s.value.(string); isText {
			s.value = strings.NewReplacer("{name}", name, "{i}", fmt.Sprint(index)).Replace(text)
		}
		out[key] = s
	}
	return out
}

func (r *lifeRun) childStep(s *lifeStep, jobName string) (model.Step, error) {
	spec := s.ChildJob.lifeJob
	if spec.Steps == nil {
		spec.Steps = &[]lifeStep{{Name: s.Name + "_child", Outcome: s.ChildJob.Outcome}}
	}
	child, err := r.job(&spec, jobName+"_child")
	if err != nil {
		return nil, err
	}
	child.Listeners = nil // those that count are the parent's
	return step.NewJob(step.JobConfig{
		Name: s.Name, Job: child, Promote: s.promotion(), Listeners: r.listeners(s),
		Params: func(context.Context, *core.View) (core.Parameters, error) {
			return job.ValidateParameters(s.ChildJob.Params.specs())
		},
	})
}

type lifeListener struct {
	run    *lifeRun
	throws texts
}

func (r *lifeRun) listeners(s *lifeStep) func(context.Context, *model.StepRun) ([]any, error) {
	return func(_ context.Context, run *model.StepRun) ([]any, error) {
		list := []any{stepListener{of: &lifeListener{run: r, throws: s.ListenerThrow}, at: run, stops: s.TerminateOnlyIn}}
		if slices.Contains(s.Listeners, noWorkFound) {
			list = append(list, step.NoWorkFound{})
		}
		return list, nil
	}
}

func (l *lifeListener) called(name string) error {
	l.run.mu.Lock()
	defer l.run.mu.Unlock()
	l.run.calls[name]++
	if slices.Contains(l.throws, name) {
		return fmt.Errorf("%s: %w", name, errListener)
	}
	return nil
}

func (l *lifeListener) BeforeJob(_ context.Context, exec *core.JobExecution) error {
	l.run.mu.Lock()
	l.run.atLaunch = core.NewExecutionContext()
	if exec.Context != nil {
		l.run.atLaunch = exec.Context.Clone()
	}
	l.run.mu.Unlock()
	return l.called("before_job")
}

func (l *lifeListener) AfterJob(context.Context, *core.JobExecution) error {
	return l.called("after_job")
}

// stepListener is the same for steps: a listener is used for all interfaces that it implements.
type stepListener struct {
	of    *lifeListener
	at    *model.StepRun
	stops string // the callback in which a stop request arrives
}

func (l stepListener) BeforeStep(ctx context.Context, _ *core.StepExecution) error {
	return l.called(ctx, "before_step")
}

func (l stepListener) AfterStep(ctx context.Context, _ *core.StepExecution) error {
	return l.called(ctx, "after_step")
}

func (l stepListener) called(ctx context.Context, name string) error {
	if l.stops == name {
		if err := l.of.run.terminated(ctx, l.at); err != nil {
			return err
		}
	}
	return l.of.called(name)
}
