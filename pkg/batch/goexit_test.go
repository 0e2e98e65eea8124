package batch_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// leaver ends its goroutine, like FailNow of a test.
type leaver struct{}

func (leaver) BeforeStep(context.Context, *core.StepExecution) error {
	runtime.Goexit()
	return nil
}

type leavingAfter struct{}

func (leavingAfter) AfterStep(context.Context, *core.StepExecution) error {
	runtime.Goexit()
	return nil
}

type leavingProcessor struct{}

func (leavingProcessor) Process(_ context.Context, r batch.Row) (batch.Row, error) {
	if r.At(0).Any() == int64(3) {
		runtime.Goexit()
	}
	return r, nil
}

// Rule C13.
func TestAComponentThatEndsItsGoroutineHasFailed(t *testing.T) {
	t.Parallel()
	fine := batch.TaskletOf(nothing)
	items := func(concurrency int) batch.Chunk {
		return batch.Chunk{
			Size: 10, Concurrency: concurrency,
			Reader:     batch.Use("query", batch.Config{"sql": "select id from src", "key": []string{"id"}, "item": batch.Config{"id": "int"}}),
			Processors: []batch.Component{batch.Use("leave")}, Writers: []batch.Component{batch.Use("table", "dst")},
		}
	}
	source := batch.Use("sql", "create table src(id int primary key); insert into src values (1), (2), (3), (4); create table dst(id int)")
	for name, job := range map[string]*batch.Job{
		"tasklet": batch.NewJob("x").Step("a", batch.TaskletOf(batch.TaskletFunc(func(context.Context, *batch.StepContribution) error {
			runtime.Goexit()
			return nil
		}))),
		"split": batch.NewJob("x").Split("s", []*batch.Flow{
			batch.NewFlow().Step("a", batch.TaskletOf(batch.TaskletFunc(func(context.Context, *batch.StepContribution) error {
				runtime.Goexit()
				return nil
			}))),
			batch.NewFlow().Step("b", fine),
		}),
		"processor":      batch.NewJob("x").Step("t", source).Step("a", items(1)),
		"processors":     batch.NewJob("x").Step("t", source).Step("a", items(2)),
		"listener":       batch.NewJob("x").Step("a", fine, batch.With{Listeners: []batch.Component{batch.ListenerOf(leaver{})}}),
		"listener after": batch.NewJob("x").Step("a", fine, batch.With{Listeners: []batch.Component{batch.ListenerOf(leavingAfter{})}}),
		"decider": batch.NewJob("x").Step("b", fine).DecideBy("a", batch.DeciderOf(func(context.Context, *batch.View) (string, error) {
			runtime.Goexit()
			return "", nil
		}), batch.With{On: batch.On{"x": batch.End("")}}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, url string) {
				t.Parallel()
				app := newApp(t, settingsFor(t, url), batch.Jobs(job),
					batch.Processor[batch.Row, batch.Row]("leave", func() leavingProcessor { return leavingProcessor{} }))
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				e, err := app.Run(ctx, batch.RunRequest{Name: "x"})
				require.NoError(t, err)
				require.Equal(t, core.StatusFailed, e.Status)
				require.Contains(t, e.Error, "ended its goroutine (with runtime.Goexit")
				stored, err := app.Repository.Execution(t.Context(), e.ID)
				require.NoError(t, err)
				require.Equal(t, core.StatusFailed, stored.Status)
			})
		})
	}
}

type leavingObserver struct{}

func (leavingObserver) Observe(context.Context, core.Event) { runtime.Goexit() }

func TestAnObserverThatEndsItsGoroutineEndsNothingElse(t *testing.T) {
	t.Parallel()
	app := newApp(t, settingsFor(t, testdb.SQLite(t)), batch.Jobs(batch.NewJob("x").Step("a", batch.TaskletOf(nothing))),
		batch.Observe(leavingObserver{}))
	e, err := app.Run(t.Context(), batch.RunRequest{Name: "x"})
	require.NoError(t, err)
	require.Equal(t, core.StatusCompleted, e.Status)
}
