package conformance_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// elsewhere is the owner of seeded executions: a process of another host, with
// a lease that lasts.
func elsewhere() core.Owner {
	return core.Owner{Host: "elsewhere", Boot: "b", PID: 1, Start: "s", Nonce: "n"}
}

func (r *lifeRun) seedOp(a *action) *seen {
	r.t.Helper()
	if to := core.Status(a.Status); to.IsRunning() && a.Steps == nil && r.isEnded(a.As) {
		return r.held(a, to)
	}
	ctx, repository := r.t.Context(), r.engine.Repository
	params, err := r.params(&action{Params: a.Params})
	require.NoError(r.t, err)
	launched, err := repository.Launch(ctx, ports.LaunchRequest{
		JobName: r.jobName(a), Params: params, Restartable: true, Owner: elsewhere(), Lease: time.Hour,
		Definition: r.definition(),
	})
	require.NoError(r.t, err, "the seed")
	exec := launched.Execution
	r.current = exec.ID
	ref := ports.JobRef{ID: exec.ID, Owner: exec.Owner, Epoch: exec.Epoch}
	if a.JobContext != nil {
		c := core.NewExecutionContext()
		require.NoError(r.t, put(c, a.JobContext))
		require.NoError(r.t, repository.SaveJobContext(ctx, ref, c))
	}
	to := core.Status(a.Status)
	if to == "" {
		to = core.StatusStarted
	}
	if to != core.StatusStarting {
		_, err = repository.ChangeJob(ctx, ref, ports.JobChange{To: core.StatusStarted})
		require.NoError(r.t, err)
		r.seedSteps(ref, a)
	}
	switch to {
	case core.StatusStarting, core.StatusStarted:
	case core.StatusStopping:
		_, err = repository.RequestStop(ctx, exec.ID, ports.By{Actor: "test"})
	case core.StatusAbandoned:
		_, err = repository.ChangeJob(ctx, ref, ports.JobChange{To: core.StatusFailed, ExitCode: core.ExitFailed})
		require.NoError(r.t, err)
		err = repository.Abandon(ctx, exec.ID, ports.By{Actor: "conformance"})
	default:
		_, err = repository.ChangeJob(ctx, ref, ports.JobChange{To: to, ExitCode: exitOr(a.ExitCode, to)})
	}
	require.NoError(r.t, err, "the seed")
	for name, status := range a.Steps { // a job that is over may have ended them
		r.forceStep(exec.ID, name, status)
	}
	if a.Ended != nil && *a.Ended != to.IsOver() {
		r.force(exec.ID, to, *a.Ended)
	}
	if a.Lease == "expired" {
		r.engine.Exec(fmt.Sprintf("update surfin_job_execution set lease_until = created_at where id = %d", exec.ID))
	}
	return r.look(exec.ID, nil)
}

func (r *lifeRun) seedSteps(ref ports.JobRef, a *action) {
	r.t.Helper()
	names := sortedKeys(a.Steps)
	if len(names) == 0 && a.StepContext != nil {
		names = []string{"s1"}
	}
	for _, name := range names {
		s, err := r.engine.Repository.StartStep(r.t.Context(), ref, ports.StepStart{Name: name})
		require.NoError(r.t, err)
		step := ports.StepRef{ID: s.ID, Owner: s.Owner, Epoch: s.Epoch}
		if a.StepContext != nil {
			c := core.NewExecutionContext()
			require.NoError(r.t, put(c, a.StepContext))
			require.NoError(r.t, r.engine.Repository.SaveStepContext(r.t.Context(), step, c))
		}
		status, exit, _ := strings.Cut(a.Steps[name], ":")
		if to := core.Status(status); to != "" && to.IsOver() && to != core.StatusAbandoned {
			_, err := r.engine.Repository.EndStep(r.t.Context(), step, ports.StepChange{To: to, ExitCode: exitOr(exit, to)})
			require.NoError(r.t, err)
		}
	}
}

func exitOr(exit string, status core.Status) string {
	if exit == "" {
		return string(status)
	}
	return exit
}

func (r *lifeRun) force(id core.JobExecutionID, to core.Status, ended bool) {
	r.t.Helper()
	active, end := "1", "null"
	if to.IsOver() {
		active = "null"
	}
	if ended {
		end = "created_at"
	}
	r.engine.Exec(fmt.Sprintf("update surfin_job_execution set status = '%s', exit_code = '%s', active = %s, ended_at = %s where id = %d",
		to, exitOr("", to), active, end, id))
}

func (r *lifeRun) forceStep(id core.JobExecutionID, name, state string) {
	r.t.Helper()
	status, exit, _ := strings.Cut(state, ":")
	to, end := core.Status(status), "null"
	if to.IsOver() {
		end = "started_at"
	}
	r.engine.Exec(fmt.Sprintf("update surfin_step_execution set status = '%s', exit_code = '%s', ended_at = %s where job_execution_id = %d and name = '%s'",
		to, exitOr(exit, to), end, id, name))
}

func (r *lifeRun) seedInstanceOp(a *action) *seen {
	s := r.seedOp(a)
	for _, table := range []string{"job_execution_param where job_execution_id", "audit where job_execution_id", "job_execution where id"} {
		r.engine.Exec(fmt.Sprintf("delete from surfin_%s = %d", table, s.exec.ID))
	}
	return r.look(0, nil)
}

func (r *lifeRun) setStatusOp(a *action) *seen {
	id := r.target(a)
	to := core.Status(a.Status)
	r.force(id, to, to.IsOver() && (a.Ended == nil || *a.Ended))
	return r.look(id, nil)
}

func (r *lifeRun) isEnded(alias string) bool {
	return slices.ContainsFunc(r.scenario.Actions, func(a action) bool { return a.Op == "end" && a.Target == alias })
}

func (r *lifeRun) held(a *action, to core.Status) *seen {
	r.t.Helper()
	for _, s := range *r.spec().Steps {
		r.scripts[s.Name] = &script{acts: []act{{word: actSlow}}}
	}
	gate := make(chan struct{})
	r.gate, r.release = gate, sync.OnceFunc(func() { close(gate) })
	params, err := r.params(&action{Params: a.Params})
	require.NoError(r.t, err)
	o := r.operator(&action{})
	running, err := o.Start(r.t.Context(), operator.RunRequest{Name: r.jobName(a), Exactly: &params})
	require.NoError(r.t, err, "the seed")
	id := running.Execution().ID
	r.running[id], r.current = running, id
	select {
	case <-r.blocked:
	case <-time.After(flowTime):
		require.Fail(r.t, "the seed does not get to work")
	}
	if to == core.StatusStopping {
		_, err = o.Stop(r.t.Context(), id)
		require.NoError(r.t, err)
	}
	return r.look(id, nil)
}

func (r *lifeRun) endOp(a *action) *seen {
	id := r.target(a)
	if _, runs := r.running[id]; runs {
		r.release()
		return r.waitFor(id)
	}
	exec, err := r.engine.Repository.Execution(r.t.Context(), id)
	require.NoError(r.t, err)
	to := cmp.Or(core.Status(a.Status), core.StatusCompleted)
	ref := ports.JobRef{ID: exec.ID, Owner: exec.Owner, Epoch: exec.Epoch}
	_, err = r.engine.Repository.ChangeJob(r.t.Context(), ref, ports.JobChange{To: to, ExitCode: exitOr(a.ExitCode, to)})
	return r.look(id, err)
}

func (r *lifeRun) saveContextsOp(a *action) *seen {
	return r.seedOp(&action{Op: "seed", Status: string(core.StatusStarted), JobContext: a.JobContext, StepContext: a.StepContext})
}

// reloadOp reads the execution as another process would.
func (r *lifeRun) reloadOp(a *action) *seen { return r.look(r.target(a), nil) }
