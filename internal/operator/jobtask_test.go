package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/workslot"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/repository/tasks"
)

func (s *scene) carry(statement string) {
	s.t.Helper()
	s.write("daily.yaml", `job: daily
parameters:
  day: {type: date}
incrementer: day
flow:
- step: work
  tasklet: {sql: "`+statement+`"}
`)
	file, err := jobfile.Load(filepath.Join(s.dir, "daily.yaml"), s.registry)
	require.NoError(s.t, err)
	s.change(func(c *Config) { c.Files = map[string]*jobfile.File{"daily": file} })
}

func (s *scene) jobTask(ctx context.Context, id task.ID, asked JobTask) (task.Outcome, error) {
	s.t.Helper()
	payload, err := json.Marshal(asked)
	require.NoError(s.t, err)
	return NewJobHandler(s.s, nil).Execute(ctx, task.Task{ID: id, Spec: task.Spec{Type: task.TypeJob, Payload: payload}})
}

func TestATaskRunsAJobOnceAndItsRetriesRestartThat(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url)
		s.carry("insert into missing values (1)")
		first := map[string]string{"day": "2026-11-20"}
		o, err := s.jobTask(t.Context(), 1, JobTask{Job: "daily", Params: first})
		require.NoError(t, err)
		require.Equal(t, task.OutcomeFailure, o.Kind)
		require.True(t, o.Fatal, "a job without a budget is not restarted by itself")
		o, err = s.jobTask(t.Context(), 1, JobTask{Job: "daily", Params: first, Retry: true})
		require.NoError(t, err)
		require.False(t, o.Fatal)
		require.Contains(t, o.Reason, "missing")
		s.e.Exec("create table missing (n int)")
		for range 2 { // the second comes after the end: the first reply was lost
			o, err = s.jobTask(t.Context(), 1, JobTask{Job: "daily", Params: first, Retry: true})
			require.NoError(t, err)
			require.Equal(t, task.OutcomeSuccess, o.Kind, o.Reason)
		}
		// A task has one next instance, however often the task is tried.
		for range 2 {
			o, err = s.jobTask(t.Context(), 2, JobTask{Job: "daily", Next: true})
			require.NoError(t, err)
			require.Equal(t, task.OutcomeSuccess, o.Kind, o.Reason)
		}
		var got []int64
		for _, e := range s.executions() {
			got = append(got, e.Task)
		}
		require.Equal(t, []int64{2, 1, 1, 1}, got)

		o, err = s.jobTask(t.Context(), 3, JobTask{Job: "daily", Params: first})
		require.NoError(t, err)
		require.True(t, o.Fatal, "that day is complete")
		o, err = s.jobTask(t.Context(), 4, JobTask{Job: "nightly"})
		require.NoError(t, err)
		require.True(t, o.Fatal)
		require.Contains(t, o.Reason, "nightly")
		o, err = NewJobHandler(s.s, nil).Execute(t.Context(), task.Task{ID: 5, Spec: task.Spec{Payload: json.RawMessage(`{"job": "daily", "dya": 1}`)}})
		require.NoError(t, err)
		require.Contains(t, o.Reason, `unknown field "dya"`)
	})
}

func TestTheEndOfATaskStopsItsExecution(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.Postgres(t))
	s.carry("select pg_sleep(30)")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	done := make(chan task.Outcome, 1)
	go func() {
		o, err := s.jobTask(ctx, 1, JobTask{Job: "daily", Next: true, Params: map[string]string{"day": "2026-11-20"}})
		done <- taskports.OutcomeOf(o, err)
	}()
	require.Eventually(t, func() bool { l := s.executions(); return len(l) == 1 && l[0].Status == core.StatusStarted }, 20*time.Second, 10*time.Millisecond)
	cancel(core.ErrLostOwner)
	o := <-done
	require.Equal(t, task.OutcomeFailure, o.Kind)
	require.False(t, o.Fatal)
	require.True(t, s.executions()[0].Status.IsOver())
}

func TestATaskWaitsForItsExecutionElsewhere(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url)
		s.carry("select 1")
		launched, err := s.e.Repository.Launch(t.Context(), ports.LaunchRequest{
			JobName: "daily", Task: 1, Owner: core.Owner{Host: "elsewhere", PID: 1, Nonce: "n"}, Lease: time.Hour, Restartable: true,
		})
		require.NoError(t, err)
		idle := make(chan struct{}, 1000)
		done := make(chan task.Outcome, 1)
		go func() {
			o, err := s.jobTask(workslot.WithSlot(t.Context(), leaves(func() { idle <- struct{}{} })), 1, JobTask{Job: "daily"})
			if err != nil {
				t.Error(err)
			}
			done <- o
		}()
		select {
		case <-idle:
		case o := <-done:
			t.Fatal(o.Reason)
		}
		ref := ports.JobRef{ID: launched.Execution.ID, Owner: launched.Execution.Owner, Epoch: launched.Execution.Epoch}
		for _, to := range []core.Status{core.StatusStarted, core.StatusCompleted} {
			_, err = s.e.Repository.ChangeJob(t.Context(), ref, ports.JobChange{To: to})
			require.NoError(t, err)
		}
		require.Equal(t, task.OutcomeSuccess, (<-done).Kind)
		require.Len(t, s.executions(), 1)
	})
}

func TestAFailureThatNobodyHeardOfIsNotRestarted(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url)
		s.carry("insert into missing values (1)")
		queue, err := tasks.New(s.e.Database, repository.DefaultPrefix, tasks.Options{})
		require.NoError(t, err)
		payload := json.RawMessage(`{"job": "daily", "params": {"day": "2026-11-20"}}`)
		_, waiting, err := queue.Submit(t.Context(), task.Submission{Tasks: []task.Spec{{Type: task.TypeJob, Payload: payload}}})
		require.NoError(t, err)
		by := taskports.Claimant{Worker: "w", Capacity: 1, Types: []string{task.TypeJob}, Lease: time.Minute}
		claimed, _, err := queue.Claim(t.Context(), waiting[0], by)
		require.NoError(t, err)
		handler := NewJobHandler(s.s, queue)
		var o task.Outcome
		for range 2 { // the first worker dies before it reports
			o, err = handler.Execute(t.Context(), claimed.Task)
			require.NoError(t, err)
			require.True(t, o.Fatal)
			require.Contains(t, o.Reason, "missing")
			require.Len(t, s.executions(), 1)
		}
		_, err = queue.End(t.Context(), claimed.Ref, o, func(c task.Case) (string, task.Decision) {
			return "backoff", task.Backoff{}.Decide(c)
		})
		require.NoError(t, err)
		_, _, err = queue.Rerun(t.Context(), claimed.Task.ID, "anna", "again")
		require.NoError(t, err)
		_, err = handler.Execute(t.Context(), claimed.Task)
		require.NoError(t, err)
		require.Len(t, s.executions(), 2)
	})
}

type leaves func()

func (l leaves) Leave()                     { l() }
func (leaves) Return(context.Context) error { return nil }

func (leaves) Fork() (begin func(context.Context), end func()) {
	return func(context.Context) {}, func() {}
}

// Rule L3a.
func TestAScheduleIsNotBehindForGoodAfterFailures(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url)
		s.carry("insert into days values (${params.day})")
		queue, err := tasks.New(s.e.Database, repository.DefaultPrefix, tasks.Options{})
		require.NoError(t, err)
		payload, err := json.Marshal(JobTask{Job: "daily", CatchUp: true})
		require.NoError(t, err)
		nights := 0
		night := func(want task.OutcomeKind, day string) {
			t.Helper()
			nights++
			spec := task.Spec{Type: task.TypeJob, Payload: payload, Origin: task.Origin{JobDefinition: 1, ScheduledFor: fmt.Sprint(nights)}}
			done, _, err := queue.Submit(t.Context(), task.Submission{Tasks: []task.Spec{spec}})
			require.NoError(t, err)
			o, err := NewJobHandler(s.s, queue).Execute(t.Context(), task.Task{ID: done.Tasks[0], Spec: spec})
			require.NoError(t, err)
			require.Equal(t, want, o.Kind, o.Reason)
			last, err := s.s.lastOf(t.Context(), ports.InstanceFilter{JobName: "daily"})
			require.NoError(t, err)
			made, _ := last.Params.Get("day")
			require.Equal(t, day, made.Text())
		}
		s.e.Exec("CREATE TABLE days (x date)")
		_, err = s.s.Run(t.Context(), RunRequest{Name: "daily", Params: map[string]string{"day": "2026-11-01"}})
		require.NoError(t, err)
		night(task.OutcomeSuccess, "2026-11-02")
		s.e.Exec("ALTER TABLE days RENAME TO away")
		night(task.OutcomeFailure, "2026-11-03")
		night(task.OutcomeFailure, "2026-11-03")
		s.e.Exec("ALTER TABLE away RENAME TO days")
		night(task.OutcomeSuccess, "2026-11-05") // 3, which failed, and 4 and 5
		night(task.OutcomeSuccess, "2026-11-06")
		s.e.Exec("ALTER TABLE days RENAME TO away")
		night(task.OutcomeFailure, "2026-11-07")
		s.e.Exec("ALTER TABLE away RENAME TO days")
		for range 2 { // an operator catches up manually: with 7, and then with 8
			_, err = s.s.Run(t.Context(), RunRequest{Name: "daily"})
			require.NoError(t, err)
		}
		night(task.OutcomeSuccess, "2026-11-09")
		require.Equal(t, []int64{9}, s.e.Ints("SELECT count(*) FROM days"))
		require.Equal(t, []int64{9}, s.e.Ints("SELECT count(DISTINCT x) FROM days"))
	})
}
