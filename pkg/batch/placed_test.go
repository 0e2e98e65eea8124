package batch_test

import (
	"context"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

var onEU1 = &core.Placement{Labels: map[string]string{"disk": "eu1"}}

// placedWorker runs a worker with the label disk=eu1 until the test is over.
func placedWorker(t *testing.T, app *batch.App, slots int) {
	t.Helper()
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- app.Work(context.WithoutCancel(t.Context()), stop, runtime.Options{Poll: 50 * time.Millisecond, Slots: slots, Labels: onEU1.Labels})
	}()
	t.Cleanup(func() {
		close(stop)
		require.NoError(t, <-ended)
	})
}

// Rules L13, PL2.
func TestPlacedWorkOfFinallyIsAssignedAfterAStop(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		trail, begun, proceed := make(chan string, 100), make(chan struct{}), make(chan struct{})
		mark := func(name string) batch.Component {
			return batch.TaskletOf(func(context.Context, *batch.StepContribution) error {
				trail <- name
				return nil
			})
		}
		parts := batch.With{Partition: &batch.Partitioned{By: batch.Use("count", 2), Remote: true, On: onEU1}}
		job := batch.NewJob("cleaning").
			Step("long", batch.TaskletOf(func(context.Context, *batch.StepContribution) error {
				close(begun)
				<-proceed
				return nil
			}, batch.NoTransaction())).
			Step("never", mark("never")).
			Finally(batch.NewFlow().Step("clean", mark("part"), parts).Step("sweep", batch.Tasks{Handler: "sweep", Items: []any{1, 2}, On: onEU1}))
		sweep := batch.Handler("sweep", func() task.HandlerFunc {
			return func(context.Context, task.Task) (task.Outcome, error) {
				trail <- "task"
				return task.Success(), nil
			}
		})
		app := newApp(t, settingsFor(t, url), batch.Jobs(job), sweep)
		require.NoError(t, app.Prepare(t.Context()))
		placedWorker(t, app, 2)
		running, err := app.Start(t.Context(), batch.RunRequest{Name: "cleaning"})
		require.NoError(t, err)
		<-begun
		_, err = app.Stop(t.Context(), running.Execution().ID)
		require.NoError(t, err)
		close(proceed)
		require.Equal(t, core.StatusStopped, ended(t, running).Status)
		close(trail)
		var names []string
		for name := range trail {
			names = append(names, name)
		}
		require.ElementsMatch(t, []string{"part", "part", "task", "task"}, names)
	})
}

// Rule PL4.
func TestAWorkerGivesPlacedWorkBackThatItCannotBegin(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{
		"child.yaml": {Data: []byte("job: child\nflow:\n- {job: kid, file: kid.yaml, remote: true, on: {disk: eu1}}\n")},
		"kid.yaml":   {Data: []byte("job: kid\nflow: [{step: mark, tasklet: mark}]\n")},
		"parts.yaml": {Data: []byte("job: parts\nflow:\n- {step: mark, tasklet: mark, partition: {by: {count: {parts: 2}}, remote: true, on: {disk: eu1}}}\n")},
	}
	for name, n := range map[string]int{"child": 1, "parts": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, url string) {
				t.Parallel()
				marks := make(chan string, 10)
				mark := batch.Tasklet("mark", func() batch.TaskletFunc {
					return func(context.Context, *batch.StepContribution) error {
						marks <- name
						return nil
					}
				})
				able := newApp(t, settingsFor(t, url), mark, batch.JobFiles(batch.FS(files, name+".yaml")))
				require.NoError(t, able.Prepare(t.Context()))
				placedWorker(t, newApp(t, settingsFor(t, url)), 8)
				running, err := able.Start(t.Context(), batch.RunRequest{Name: name})
				require.NoError(t, err)
				require.Eventually(t, func() bool {
					list, err := able.Repository.PlacedOf(t.Context(), running.Execution().ID)
					require.NoError(t, err)
					return slices.ContainsFunc(list, func(p ports.Placed) bool { return p.State == ports.PlaceOrphaned })
				}, time.Minute, 5*time.Millisecond, "it is not given back")
				placedWorker(t, able, 1)
				require.Equal(t, core.StatusCompleted, ended(t, running).Status)
				require.Len(t, marks, n)
			})
		})
	}
}

// Rule PL5.
func TestAPlacedTaskSaysThatNoWorkerThatFitsHasItsDecider(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		box := batch.Handler("mail", newMail)
		lacks := newApp(t, settingsFor(t, url), fx.Supply(&letters{}), box)
		has := newApp(t, settingsFor(t, url), fx.Supply(&letters{}), box, batch.TaskDecider("never", never))
		require.NoError(t, has.Prepare(t.Context()))
		placedWorker(t, lacks, 1)
		require.Eventually(t, func() bool {
			workers, err := has.Tasks.Workers(t.Context())
			require.NoError(t, err)
			return len(workers) == 1
		}, time.Minute, 5*time.Millisecond)
		accepted, err := has.Tasks.Submit(t.Context(), task.Submission{Type: "mail", Decider: "never", Tasks: []task.Spec{{On: onEU1}}})
		require.NoError(t, err)
		list, err := has.Tasks.Tasks(t.Context(), task.Filter{Limit: 1})
		require.NoError(t, err)
		waits, err := has.Tasks.Waits(t.Context(), list)
		require.NoError(t, err)
		require.Equal(t, map[task.ID]string{accepted.Tasks[0]: `no live worker with the labels disk=eu1 has the decider "never"`}, waits)
	})
}

func ended(t *testing.T, running *batch.Running) *batch.Execution {
	t.Helper()
	var exec *batch.Execution
	var err error
	over := make(chan struct{})
	go func() {
		defer close(over)
		exec, err = running.Wait()
	}()
	select {
	case <-over:
	case <-time.After(time.Minute):
		require.FailNow(t, "it does not end")
	}
	require.NoError(t, err)
	return exec
}
