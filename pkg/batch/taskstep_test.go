package batch_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

type squares struct {
	mu    sync.Mutex
	asked map[int]int
	do    func(ctx context.Context, n int) error
}

func (s *squares) Execute(ctx context.Context, t task.Task) (task.Outcome, error) {
	var item struct{ N int }
	if err := t.Decode(&item); err != nil {
		return task.Outcome{}, err
	}
	s.mu.Lock()
	s.asked[item.N]++
	do := s.do
	s.mu.Unlock()
	if do != nil {
		if err := do(ctx, item.N); err != nil {
			return task.Failure(err.Error()), nil
		}
	}
	value, err := json.Marshal(item.N * item.N)
	return task.Success().WithArtifact(task.JSON(value)), err
}

func (s *squares) set(do func(ctx context.Context, n int) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.do = do
}

func (s *squares) counts() map[int]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[int]int{}
	for n, times := range s.asked {
		counts[n] = times
	}
	return counts
}

func newSquares() *squares { return &squares{asked: map[int]int{}} }

func (s *squares) handler() fx.Option { return batch.Handler("square", func() *squares { return s }) }

const squaresJob = `
job: squares
flow:
- step: numbers
  tasklet: {sql: "create table number (n int primary key); insert into number values (1), (2), (3), (4); create table answer (total int, ok int, list text)"}
- step: square
  tasks:
    handler: square
    items: {query: {sql: select n as "N" from number, key: ["N"], item: {N: int}}}
    budget: {max_attempts: 1}
  expect: balanced and out.total == 4
- step: keep
  tasklet:
    sql: insert into answer values (${steps.square.out.total}, ${steps.square.out.succeeded}, ${steps.square.out.results ?? 'none'})
`

// Rules TS2, TS4, TS5.
func TestAStepOfTasksRunsThemItselfAndARestartRepeatsTheFailedOnes(t *testing.T) {
	t.Parallel()
	url := testdb.SQLite(t)
	s := newSquares()
	s.set(func(_ context.Context, n int) error {
		if n == 3 {
			return errThree
		}
		return nil
	})
	app, dir := app(t, url, s.handler())
	file := write(t, dir, "job.yaml", squaresJob)
	misspelt := write(t, dir, "misspelt.yaml", strings.Replace(squaresJob, "handler: square", "handler: sqare", 1))
	_, err := app.Run(t.Context(), batch.RunRequest{File: misspelt})
	require.ErrorContains(t, err, "misspelt.yaml:8:14: there is no handler sqare of tasks in this application")
	require.ErrorContains(t, err, "did you mean square?")
	off := write(t, dir, "off.yaml", strings.Replace(squaresJob, "handler: square", "handler: shell", 1))
	_, err = app.Run(t.Context(), batch.RunRequest{File: off})
	require.ErrorContains(t, err, "off.yaml:8:14: the handler shell of tasks is switched off")
	require.ErrorContains(t, err, "tasks.shell: true (SURFIN_TASKS_SHELL=true) switches it on")
	exec, err := app.Run(t.Context(), batch.RunRequest{File: file})
	require.NoError(t, err)
	require.Equal(t, core.StatusFailed, exec.Status)
	require.Contains(t, exec.Error, "step square: 1 of 4 tasks of group 1 did not succeed: task 3 is FAILED: three is too many")
	first := stepsOf(t, app, exec)["square"]
	require.Equal(t, []int64{4, 3}, []int64{first.Counters.Read, first.Counters.Write})

	write(t, dir, "job.yaml", squaresJob+"# the group stays, whatever the file's text\n")
	s.set(nil)
	exec, err = app.Run(t.Context(), batch.RunRequest{File: file})
	require.NoError(t, err)
	require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	second := stepsOf(t, app, exec)["square"]
	require.Equal(t, []int64{4, 4, 0, 1}, []int64{second.Total().Read, second.Total().Write, second.Counters.Read, second.Counters.Write})
	require.Equal(t, map[int]int{1: 1, 2: 1, 3: 2, 4: 1}, s.counts())
	require.Equal(t, "[1,4,9,16]", second.Out["results"])
	groups, err := app.Tasks.Groups(t.Context(), 0, 0)
	require.NoError(t, err)
	require.Len(t, groups, 1)
}

const errThree = testError("three is too many")

type testError string

func (e testError) Error() string { return string(e) }

func working(t *testing.T, app *batch.App) {
	t.Helper()
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- app.Work(context.WithoutCancel(t.Context()), stop, runtime.Options{Poll: 50 * time.Millisecond, Slots: 1, Drain: -1})
	}()
	t.Cleanup(func() {
		close(stop)
		require.NoError(t, <-ended)
	})
}

// launch submits the job as a task, and returns its execution once it is parked.
func launch(t *testing.T, app *batch.App) core.JobExecution {
	t.Helper()
	payload, err := json.Marshal(map[string]any{"job": "squares"})
	require.NoError(t, err)
	_, err = app.Tasks.Submit(t.Context(), task.Submission{Tasks: []task.Spec{{Type: task.TypeJob, Payload: payload}}})
	require.NoError(t, err)
	return until(t, app, core.StatusParked)
}

func until(t *testing.T, app *batch.App, status core.Status) (exec core.JobExecution) {
	t.Helper()
	require.Eventually(t, func() bool {
		list, err := app.Repository.Executions(t.Context(), ports.ExecutionFilter{Limit: 1})
		require.NoError(t, err)
		if len(list) == 0 {
			return false
		}
		exec = list[0]
		return exec.Status == status
	}, time.Minute, 10*time.Millisecond, "%s", status)
	return exec
}

// Rules TS3, TS5.
func TestAStepOfTasksIsParkedOnAWorkerAndAStopCancelsItsGroup(t *testing.T) {
	t.Parallel()
	url := testdb.Postgres(t)
	s := newSquares()
	s.set(func(ctx context.Context, n int) error {
		if n == 1 {
			return nil
		}
		<-ctx.Done()
		return context.Cause(ctx)
	})
	files := fstest.MapFS{"squares.yaml": {Data: []byte(squaresJob)}}
	app, _ := app(t, url, s.handler(), batch.JobFiles(batch.FS(files, "squares.yaml")))
	require.NoError(t, app.Prepare(t.Context()))
	working(t, app)
	parked := launch(t, app)
	require.Eventually(t, func() bool { return len(s.counts()) == 2 }, time.Minute, 10*time.Millisecond, "one slot: the second task hangs")
	shown, err := app.Show(t.Context(), operator.ShowRequest{Execution: parked.ID})
	require.NoError(t, err)
	require.Equal(t, &operator.StepTasks{Group: 2, States: map[string]int{"SUCCEEDED": 1, "RUNNING": 1, "PENDING": 2}}, shown.Steps[1].Tasks)
	one := 1
	require.Equal(t, &operator.Waiting{OpenWork: ports.OpenWork{Tasks: 3}, Engine: "local", Workers: &one}, shown.Waiting)
	progress, err := app.Progress(t.Context(), operator.ProgressRequest{})
	require.NoError(t, err)
	require.Equal(t, shown.Steps[1].Tasks, progress[0].Tasks)
	_, err = app.Stop(t.Context(), parked.ID)
	require.NoError(t, err)
	stopped := until(t, app, core.StatusStopped)
	require.Equal(t, parked.ID, stopped.ID)
	g, err := app.Tasks.Status(t.Context(), 2)
	require.NoError(t, err)
	require.Equal(t, task.GroupStatus{
		ID: 2, State: task.GroupCancelled, Total: 4, Succeeded: 1, Canceled: 3, ByState: map[task.State]int{task.Succeeded: 1, task.Canceled: 3},
	}, *g)

	s.set(nil)
	running, err := app.Restart(t.Context(), batch.RestartRequest{Execution: stopped.ID})
	require.NoError(t, err)
	exec, err := running.Wait()
	require.NoError(t, err)
	require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	require.Equal(t, map[int]int{1: 1, 2: 2, 3: 1, 4: 1}, s.counts())
}

const waitsJob = `
job: squares
flow:
- split: both
  branches:
  - - step: square
      tasks: {handler: square, items: [{N: 1}, {N: 2}]}
  - - step: parts
      partition: {by: {count: 2}, remote: true}
      tasklet: {sql: select 1}
- flow: nested
  steps:
  - job: kid
    file: kid.yaml
    remote: true
`

func TestWhatWaitsForWorkersNeedsNoSlot(t *testing.T) {
	t.Parallel()
	s := newSquares()
	files := fstest.MapFS{"squares.yaml": {Data: []byte(waitsJob)}, "kid.yaml": {Data: []byte("job: kid\nflow:\n- step: one\n  tasklet: {sql: select 1}\n")}}
	app, _ := app(t, testdb.SQLite(t), s.handler(), batch.JobFiles(batch.FS(files, "squares.yaml")))
	require.NoError(t, app.Prepare(t.Context()))
	working(t, app)
	payload, err := json.Marshal(map[string]any{"job": "squares"})
	require.NoError(t, err)
	_, err = app.Tasks.Submit(t.Context(), task.Submission{Tasks: []task.Spec{{Type: task.TypeJob, Payload: payload}}})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		e, err := app.Repository.Execution(t.Context(), 1)
		return err == nil && e.Status.IsOver()
	}, time.Minute, 20*time.Millisecond)
	exec, err := app.Repository.Execution(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	require.Equal(t, map[int]int{1: 1, 2: 1}, s.counts())
}

// Rule TS5.
func TestWhoAbandonsAnExecutionCancelsItsTasks(t *testing.T) {
	t.Parallel()
	app, _ := app(t, testdb.SQLite(t), newSquares().handler())
	require.NoError(t, app.Prepare(t.Context()))
	owner := core.Owner{Host: "h", PID: 1}
	launched, err := app.Repository.Launch(t.Context(), ports.LaunchRequest{JobName: "lost", Restartable: true, Owner: owner, Lease: time.Hour})
	require.NoError(t, err)
	ref := ports.JobRef{ID: launched.Execution.ID, Owner: owner, Epoch: launched.Execution.Epoch}
	_, err = app.Repository.ChangeJob(t.Context(), ref, ports.JobChange{To: core.StatusStarted})
	require.NoError(t, err)
	step, err := app.Repository.StartStep(t.Context(), ref, ports.StepStart{Name: "square"})
	require.NoError(t, err)
	accepted, err := app.Tasks.Submit(t.Context(), task.Submission{Step: step.ID, Tasks: []task.Spec{{Type: "square"}, {Type: "square"}}})
	require.NoError(t, err)
	_, err = app.Repository.ChangeJob(t.Context(), ref, ports.JobChange{To: core.StatusFailed, Error: "lost"})
	require.NoError(t, err)
	_, err = app.Abandon(t.Context(), ref.ID)
	require.NoError(t, err)
	g, err := app.Tasks.Status(t.Context(), accepted.Group)
	require.NoError(t, err)
	require.Equal(t, 2, g.Canceled)
}

// Rule TS5.
func TestAStepOfTasksThatBeginsAnewCancelsItsEarlierGroup(t *testing.T) {
	t.Parallel()
	s := newSquares()
	app, dir := app(t, testdb.SQLite(t), s.handler())
	file := write(t, dir, "job.yaml", squaresJob+"  expect: false\n")
	exec, err := app.Run(t.Context(), batch.RunRequest{File: file})
	require.NoError(t, err)
	require.Equal(t, core.StatusFailed, exec.Status)
	earlier := stepsOf(t, app, exec)["square"].ID
	left, err := app.Tasks.Submit(t.Context(), task.Submission{Step: earlier, Tasks: []task.Spec{{Type: "square"}}})
	require.NoError(t, err)
	write(t, dir, "job.yaml", strings.Replace(squaresJob, "create table", "drop table if exists number; drop table if exists answer; create table", 1))
	exec, err = app.Run(t.Context(), batch.RunRequest{File: file, FromStart: true})
	require.NoError(t, err)
	require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	g, err := app.Tasks.Status(t.Context(), left.Group)
	require.NoError(t, err)
	require.Equal(t, 1, g.Canceled)
}
