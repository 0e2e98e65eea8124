package conformance_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func (r *lifeRun) jobName(a *action) string {
	if name := cmp.Or(a.Job, a.JobName); name != "" && (r.scenario.Job == nil || name != r.scenario.Job.Name) {
		return name
	}
	return r.name
}

func (r *lifeRun) params(a *action) (core.Parameters, error) {
	_, given := a.Params.specs()
	return job.ValidateParameters(r.typed(a.Params), given)
}

func (r *lifeRun) typed(given parameters) []core.ParameterSpec {
	specs := r.declared(r.spec())
	for i, p := range specs {
		if g, ok := given[p.Name]; ok {
			specs[i].Type, specs[i].Identifying = g.kind, !g.nonIdentifying
			if g.kind == "" {
				specs[i].Type = core.TypeString
			}
		}
	}
	return specs
}

func (r *lifeRun) launchOp(a *action) *seen {
	if r.spec().OptionalParams != nil { // parameters may be declared twice
		if err := r.validJob(); err != nil {
			return r.look(0, err)
		}
	}
	params, err := r.params(a)
	if err != nil {
		return r.look(0, err)
	}
	return r.begin(a, func(s *operator.Service) (*operator.Running, error) {
		return s.Start(r.t.Context(), operator.RunRequest{Name: r.jobName(a), Exactly: &params, FromStart: a.FromStart})
	})
}

func (r *lifeRun) nextOp(a *action) *seen {
	_, given := a.Params.specs()
	return r.begin(a, func(s *operator.Service) (*operator.Running, error) {
		return s.Start(r.t.Context(), r.next(operator.RunRequest{Name: r.jobName(a), Params: given}))
	})
}

func (r *lifeRun) restartOp(a *action) *seen {
	_, given := a.Params.specs()
	return r.begin(a, func(s *operator.Service) (*operator.Running, error) {
		return s.Restart(r.t.Context(), operator.RestartRequest{Execution: r.target(a), Params: given, FromStart: a.FromStart})
	})
}

// next asks for the next instance. If the job has no incrementer, a resume with it is refused.
func (r *lifeRun) next(req operator.RunRequest) operator.RunRequest {
	r.t.Helper()
	if made, known := r.jobs[req.Name]; known {
		j, err := made(r.t.Context())
		require.NoError(r.t, err)
		req.Next = j.Incrementer == nil
	}
	return req
}

// begin starts an execution, and waits for its end or, if it runs concurrently with the scenario, until it is
// at work.
func (r *lifeRun) begin(a *action, start func(s *operator.Service) (*operator.Running, error)) *seen {
	r.t.Helper()
	for len(r.blocked) > 0 { // of executions that are over
		<-r.blocked
	}
	blockers := r.blockers()
	running, err := start(r.operator(a))
	if err != nil {
		return r.look(0, err)
	}
	id := running.Execution().ID
	r.running[id], r.current = running, id
	if !a.Async {
		return r.waitFor(id)
	}
	for range blockers {
		select {
		case <-r.blocked:
		case <-running.Done():
		case <-time.After(flowTime):
			require.Fail(r.t, "the execution does not get to work")
		}
	}
	return r.look(id, nil)
}

func (r *lifeRun) waitFor(id core.JobExecutionID) *seen {
	r.t.Helper()
	running, known := r.running[id]
	require.True(r.t, known, "execution %d does not run in this process", id)
	select {
	case <-running.Done():
	case <-time.After(flowTime):
		running.Stop()
		require.Fail(r.t, "the execution does not end")
	}
	_, err := running.Wait()
	s := r.look(id, nil)
	s.waited = true
	s.failure = errors.Join(s.failure, err)
	return s
}

func (r *lifeRun) waitOp(a *action) *seen { return r.waitFor(r.target(a)) }

func (r *lifeRun) stopOp(a *action) *seen {
	id := r.target(a)
	_, err := r.operator(a).Stop(r.t.Context(), id)
	if a.StopHook != "" {
		require.ErrorIs(r.t, err, errHook, "the failure of the stop hook is not reported")
		err = nil
	}
	if err == nil && a.Wait {
		return r.waitFor(id)
	}
	return r.look(id, err)
}

func (r *lifeRun) abandonOp(a *action) *seen {
	id := r.target(a)
	_, err := r.operator(a).Abandon(r.t.Context(), id)
	return r.look(id, err)
}

func (r *lifeRun) recoverOp(a *action) *seen {
	_, err := r.operator(a).Recover(r.t.Context())
	return r.look(r.target(a), err)
}

func (r *lifeRun) runStepOp(a *action) *seen {
	whole := r.jobs[r.name]
	defer func() { r.jobs[r.name] = whole }()
	r.jobs[r.name] = func(context.Context) (*model.Job, error) {
		spec := r.spec()
		var steps []lifeStep
		for _, s := range *spec.Steps {
			if s.Name == a.Step {
				steps = append(steps, s)
			}
		}
		spec.Steps = &steps
		return r.job(spec, r.name)
	}
	return r.launchOp(a)
}

// raceOp launches from several owners at once. The winner is held at its work
// until the others have their answer.
func (r *lifeRun) raceOp(a *action) *seen {
	params, err := r.params(a)
	require.NoError(r.t, err)
	gate, count := make(chan struct{}), cmp.Or(a.Count, 2)
	r.gate, r.release = gate, sync.OnceFunc(func() { close(gate) })
	timer := time.AfterFunc(flowTime, r.release)
	defer timer.Stop()
	type answer struct {
		exec *core.JobExecution
		err  error
	}
	answers := make(chan answer, count)
	for range count {
		j, err := r.jobs[r.name](r.t.Context())
		require.NoError(r.t, err)
		launcher := r.launcher(nil) // an owner of its own
		go func() {
			exec, err := launcher.Run(context.WithoutCancel(r.t.Context()), j, params, nil)
			answers <- answer{exec, err}
		}()
	}
	var refusals []error
	for n := range count {
		if n == count-1 {
			r.release()
		}
		got := <-answers
		if got.err != nil {
			refusals = append(refusals, got.err)
		} else {
			r.current = got.exec.ID
		}
	}
	r.gate = nil
	s := r.look(0, nil)
	if len(refusals) < count {
		s = r.look(r.current, nil)
		s.waited = true
	}
	s.facts["succeeded"] = count - len(refusals)
	s.failure = everyOne(refusals)
	return s
}

func everyOne(errs []error) error {
	for symbol, is := range reasons() {
		all := symbol != "none" && len(errs) > 0
		for _, err := range errs {
			all = all && is(err)
		}
		if all {
			return errs[0]
		}
	}
	return errors.Join(errs...)
}

func (r *lifeRun) validateOp(a *action) *seen {
	if err := r.validJob(); err != nil {
		return r.look(0, err)
	}
	_, err := r.params(a)
	return r.look(0, err)
}

func (r *lifeRun) nextParamsOp(a *action) *seen {
	if a.Params != nil {
		s := r.seedOp(&action{Op: "seed", Params: a.Params, Status: string(core.StatusCompleted)})
		require.NoError(r.t, s.refusal)
	}
	choice, err := r.operator(a).Choose(r.t.Context(), operator.RunRequest{Name: r.name, Next: true})
	s := r.look(0, err)
	s.params = &core.Parameters{}
	if err == nil {
		s.params = &choice.Params.Parameters
	}
	return s
}

func (r *lifeRun) sameInstanceOp(a *action) *seen {
	s := r.seedOp(&action{Op: "seed", Params: a.Params, Status: string(core.StatusStarting)})
	other, err := job.ValidateParameters(a.Params2.specs())
	require.NoError(r.t, err)
	found, err := r.engine.Repository.Instance(r.t.Context(), r.name, other.Key())
	if err != nil {
		require.ErrorIs(r.t, err, core.ErrNotFound)
	}
	s.facts["same"] = err == nil && found.ID == s.exec.InstanceID
	return s
}

func (r *lifeRun) findInstanceOp(a *action) *seen {
	params, err := r.params(a)
	require.NoError(r.t, err)
	_, err = r.engine.Repository.Instance(r.t.Context(), r.jobName(a), params.Key())
	if err != nil {
		require.ErrorIs(r.t, err, core.ErrNotFound)
	}
	s := r.look(0, nil)
	s.facts["found"] = err == nil
	return s
}

func (r *lifeRun) deleteInstanceOp(a *action) *seen {
	params, err := r.params(a)
	require.NoError(r.t, err)
	instance, err := r.engine.Repository.Instance(r.t.Context(), r.name, params.Key())
	if err != nil {
		return r.look(0, err)
	}
	if _, err := r.operator(a).Purge(r.t.Context(), operator.PurgeRequest{Instance: instance.ID}); err != nil {
		return r.look(0, err)
	}
	left, err := r.engine.Repository.Executions(r.t.Context(), ports.ExecutionFilter{Instance: instance.ID})
	require.NoError(r.t, err)
	require.Empty(r.t, left)
	for _, table := range []string{"job_execution_param", "step_execution"} {
		rows := r.engine.Ints(fmt.Sprintf("select count(*) from surfin_%s where job_execution_id not in (select id from surfin_job_execution)", table))
		require.Equal(r.t, []int64{0}, rows, "rows of no execution in %s", table)
	}
	return r.look(0, nil)
}

func (r *lifeRun) inspectOp(a *action) *seen {
	if a.Target != "" {
		return r.look(r.target(a), nil)
	}
	r.asked = r.jobName(a)
	s := r.look(0, nil)
	found, err := r.engine.Repository.Instances(r.t.Context(), ports.InstanceFilter{JobName: r.asked, Limit: 1})
	require.NoError(r.t, err)
	if _, known := r.jobs[r.asked]; !known && len(found) == 0 {
		s.failure = fmt.Errorf("job %s: %w", r.asked, ports.ErrNoSuchJob)
	}
	return s
}

func (r *lifeRun) promoteOp(a *action) *seen {
	step := lifeStep{
		Name: "promoting", Outcome: texts{actCompleted + ":" + a.ExitCode}, PutsStepContext: a.StepContext,
		Promote: &lifePromotion{Keys: a.Keys, Statuses: a.Statuses, Strict: a.Strict},
	}
	steps := []lifeStep{step}
	if a.JobContext != nil {
		steps = []lifeStep{{Name: "before", PutsJobContext: a.JobContext}, step}
	}
	r.jobs[r.name] = func(context.Context) (*model.Job, error) { return r.job(&lifeJob{Steps: &steps}, r.name) }
	return r.launchOp(&action{Op: "launch"})
}

func tableOp(fill func(t *tables, rows [][]string)) func(r *lifeRun, a *action) *seen {
	return func(r *lifeRun, a *action) *seen {
		var t tables
		fill(&t, a.Cases)
		require.NoError(r.t, t.validate())
		problems := t.problems()
		if len(problems) > 0 {
			r.t.Log(problems)
		}
		s := r.look(0, nil)
		s.facts["all"] = len(problems) == 0
		return s
	}
}

func (r *lifeRun) history(d *differences, e *lifeExpectation, s *seen) {
	ctx := r.t.Context()
	executions, err := r.engine.Repository.Executions(ctx, ports.ExecutionFilter{JobName: r.asked, Limit: 1000})
	require.NoError(r.t, err)
	instances, err := r.engine.Repository.Instances(ctx, ports.InstanceFilter{JobName: r.asked, Limit: 1000})
	require.NoError(r.t, err)
	d.text("executions", e.Executions, len(executions))
	d.text("instances", e.Instances, len(instances))
	if e.NewestFirst != nil {
		var ids, want []core.JobExecutionID
		for _, exec := range executions {
			ids = append(ids, exec.ID)
		}
		for _, alias := range *e.NewestFirst {
			want = append(want, r.record(alias).ID)
		}
		d.that(fmt.Sprint(ids) == fmt.Sprint(want), "newest_first", "expected %v, got %v", want, ids)
	}
	if e.ExecutionParams != nil {
		d.that(len(executions) == len(e.ExecutionParams), "execution_params", "there are %d executions", len(executions))
		for i := range min(len(executions), len(e.ExecutionParams)) {
			d.params(fmt.Sprintf("execution_params %d", i+1), e.ExecutionParams[i], executions[i].Params, false)
		}
	}
	for _, alias := range sortedKeys(e.ParamsOf) {
		d.params("params_of "+alias, e.ParamsOf[alias], r.record(alias).Params, false)
	}
	r.attempts(d, e, s)
	written := r.written()
	d.text("written_total", e.WrittenTotal, len(written))
	d.text("written_count", e.WrittenCount, r.writtenCount(s, len(written)))
	d.list("written", e.Written, written)
	if e.StepExecutionCount == nil && e.LastStepExecutionOf == nil {
		return
	}
	d.that(s.exec != nil, "step_execution_count", "there is no execution")
	if s.exec == nil {
		return
	}
	steps, err := r.engine.Repository.LastSteps(ctx, s.exec.InstanceID, 0)
	require.NoError(r.t, err)
	for name, want := range e.StepExecutionCount {
		d.text("step_execution_count "+name, &want, steps[name].Attempts)
	}
	for name, alias := range e.LastStepExecutionOf {
		d.that(steps[name].Last.JobExecutionID == r.record(alias).ID, "last_step_execution_of", "%s is of execution %d", name, steps[name].Last.JobExecutionID)
	}
}

func (r *lifeRun) child(d *differences, e *lifeExpectation) {
	if e.ChildStatus == nil && e.ChildExitCode == nil && e.ChildExecutions == nil && e.ChildInstances == nil && e.ChildParams == nil {
		return
	}
	name := r.name + "_child"
	executions, err := r.engine.Repository.Executions(r.t.Context(), ports.ExecutionFilter{JobName: name, Limit: 1000})
	require.NoError(r.t, err)
	instances, err := r.engine.Repository.Instances(r.t.Context(), ports.InstanceFilter{JobName: name, Limit: 1000})
	require.NoError(r.t, err)
	d.text("child_executions", e.ChildExecutions, len(executions))
	d.text("child_instances", e.ChildInstances, len(instances))
	newest := core.JobExecution{}
	if len(executions) > 0 {
		newest = executions[0]
	}
	d.text("child_status", e.ChildStatus, newest.Status)
	d.text("child_exit_code", e.ChildExitCode, newest.ExitCode)
	if e.ChildParams != nil {
		d.params("child_params", e.ChildParams, newest.Params, true)
	}
}

// writtenCount is the number of committed items.
func (r *lifeRun) writtenCount(s *seen, all int) int64 {
	total, dealt := int64(0), false
	for i := range *r.spec().Steps {
		one := &(*r.spec().Steps)[i]
		if !one.isDealt() {
			continue
		}
		dealt = true
		for _, record := range s.steps {
			if strings.HasPrefix(record.Name, core.PartName(one.Name, "")) {
				total += record.Counters.Write
			}
		}
	}
	if !dealt {
		return int64(all)
	}
	return total
}
