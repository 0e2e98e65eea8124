package operator

import (
	"encoding/json"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/workslot"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/repository/tasks"
)

func TestALaunchThatMustNotRunBesideAnotherIsRefusedWithItsWaysOut(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url)
		s.write("alone.yaml", "job: alone\nparameters: {n: {type: int}}\nexclusive: job\nflow:\n- step: broken\n  tasklet: {sql: select * from nowhere}\n")
		path := filepath.Join(s.dir, "alone.yaml")
		failed := s.run("alone.yaml", map[string]string{"n": "1"})
		require.Equal(t, core.StatusFailed, failed.Status)
		owner, err := job.CurrentOwner()
		require.NoError(t, err)
		running, err := s.e.Repository.Launch(t.Context(), ports.LaunchRequest{JobName: "alone", Owner: owner, Lease: time.Hour, Exclusive: core.ExclusiveJob})
		require.NoError(t, err)

		refused := func(err error) {
			t.Helper()
			var r *Refusal
			require.ErrorAs(t, err, &r)
			require.Equal(t, refusal.Exclusive, r.Reason)
			require.ErrorAs(t, err, new(*ports.ExclusiveError))
			id := running.Execution.ID
			require.Equal(t, []Action{{Kind: refusal.ActShow, Execution: id, Status: core.StatusStarted}, {Kind: refusal.ActStop, Execution: id}, {Kind: refusal.ActRecover}}, r.Actions)
		}
		_, err = s.s.Start(t.Context(), RunRequest{File: path, Params: map[string]string{"n": "2"}})
		refused(err)
		_, err = s.s.Restart(t.Context(), RestartRequest{Execution: failed.ID})
		refused(err)
		plan, err := s.s.Plan(t.Context(), PlanRequest{File: path, Params: map[string]string{"n": "2"}})
		require.NoError(t, err)
		refused(plan.Refused)
		e, err := s.s.Explain(t.Context(), ExplainRequest{Execution: failed.ID})
		require.NoError(t, err)
		require.Equal(t, refusal.Exclusive, e.Refused)
		require.Equal(t, running.Execution.ID, e.RefusedBy)
		require.NotNil(t, e.Restart)
		require.Equal(t, refusal.ActRestart, e.Actions[len(e.Actions)-1].Kind)

		dead := func(core.Owner) bool { // the execution and its process end while the refusal is explained
			_, err := s.e.Repository.ChangeJob(t.Context(), ports.JobRef{ID: running.Execution.ID, Owner: owner, Epoch: 1}, ports.JobChange{To: core.StatusFailed, ExitCode: core.ExitFailed})
			require.NoError(t, err)
			return true
		}
		s.change(func(c *Config) { c.Dead = dead })
		_, err = s.s.Start(t.Context(), RunRequest{File: path, Params: map[string]string{"n": "2"}})
		var r *Refusal
		require.ErrorAs(t, err, &r)
		require.Equal(t, []Action{{Kind: refusal.ActShow, Execution: running.Execution.ID, Status: core.StatusFailed}}, r.Actions)
	})
}

func TestATaskWaitsForTheExecutionThatItsJobMustNotRunBeside(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url)
		s.write("alone.yaml", "job: alone\nparameters: {n: {type: int}}\nexclusive: job\nflow:\n- step: one\n  tasklet: {sql: select 1}\n")
		_, err := s.s.Register(t.Context(), RegisterRequest{File: filepath.Join(s.dir, "alone.yaml")})
		require.NoError(t, err)
		owner, err := job.CurrentOwner()
		require.NoError(t, err)
		running, err := s.e.Repository.Launch(t.Context(), ports.LaunchRequest{JobName: "alone", Owner: owner, Lease: time.Hour, Exclusive: core.ExclusiveJob})
		require.NoError(t, err)
		idle := make(chan struct{})
		ctx := workslot.WithSlot(t.Context(), leaves(sync.OnceFunc(func() { close(idle) })))
		done := make(chan task.Outcome)
		go func() {
			o, err := s.jobTask(ctx, 1, JobTask{Job: "alone", Params: map[string]string{"n": "2"}})
			if err != nil {
				o.Reason = err.Error()
			}
			done <- o
		}()
		<-idle
		_, err = s.e.Repository.ChangeJob(t.Context(), ports.JobRef{ID: running.Execution.ID, Owner: owner, Epoch: 1}, ports.JobChange{To: core.StatusFailed, ExitCode: core.ExitFailed})
		require.NoError(t, err)
		o := <-done
		require.Equal(t, task.OutcomeSuccess, o.Kind, o.Reason)
	})
}

func TestATaskOfAQueueWaitsItsTurn(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url)
		s.carry("select 1")
		queue, err := tasks.New(s.e.Database, repository.DefaultPrefix, tasks.Options{})
		require.NoError(t, err)
		var ids []task.ID
		for _, key := range []string{"2026-11-20T02:30", "2026-11-21T02:30"} {
			done, _, err := queue.Submit(t.Context(), task.Submission{Tasks: []task.Spec{{Type: task.TypeJob, Origin: task.Origin{JobDefinition: 1, ScheduledFor: key}}}})
			require.NoError(t, err)
			ids = append(ids, done.Tasks...)
		}
		payload := json.RawMessage(`{"job": "daily", "params": {"day": "2026-11-21"}, "in_turn": true}`)
		idle := make(chan struct{})
		ctx := workslot.WithSlot(t.Context(), leaves(sync.OnceFunc(func() { close(idle) })))
		done := make(chan task.Outcome, 1)
		go func() {
			o, err := NewJobHandler(s.s, queue).Execute(ctx, task.Task{ID: ids[1], Spec: task.Spec{Type: task.TypeJob, Payload: payload, Origin: task.Origin{JobDefinition: 1}}})
			if err != nil {
				o.Reason = err.Error()
			}
			done <- o
		}()
		<-idle
		require.Empty(t, s.executions())
		_, _, err = queue.Cancel(t.Context(), ids[0], "tester", "over")
		require.NoError(t, err)
		o := <-done
		require.Equal(t, task.OutcomeSuccess, o.Kind, o.Reason)
	})
}
