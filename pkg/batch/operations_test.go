package batch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

type waiting struct{ running chan struct{} }

func (w *waiting) Execute(ctx context.Context, _ *core.StepContribution) error {
	close(w.running)
	<-ctx.Done()
	return ctx.Err()
}

func (w *waiting) Stop(context.Context) error { return nil }

const endlessText = `
job: numbers
flow:
- step: forever
  chunk: {size: 2, reader: endless, writer: {table: {name: orders, create: true}}}
`

type endless struct {
	began chan struct{}
	n     int64
}

func (e *endless) Read(context.Context) (Order, error) {
	if e.n++; e.n == 1 {
		close(e.began)
	}
	return Order{ID: e.n}, nil
}

func TestWhatStartBeganIsStoppedAbandonedAndRefusedByTheApplication(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		began := make(chan struct{})
		app := newApp(t, settingsFor(t, url, "SURFIN_LEASE=1h", "SURFIN_HEARTBEAT=10m"),
			batch.Reader[Order]("endless", func() *endless { return &endless{began: began} }))
		ctx := t.Context()
		running, err := app.Start(ctx, batch.RunRequest{File: jobFile(t, endlessText)})
		require.NoError(t, err)
		id := running.Execution().ID
		<-began
		stopped, err := app.Stop(ctx, id)
		require.NoError(t, err)
		require.Equal(t, id, stopped.ID)
		exec, err := running.Wait()
		require.NoError(t, err)
		require.Equal(t, core.StatusStopped, exec.Status)

		abandoned, err := app.Abandon(ctx, id)
		require.NoError(t, err)
		require.Equal(t, core.StatusAbandoned, abandoned.Status)
		_, err = app.Restart(ctx, batch.RestartRequest{Execution: id})
		require.ErrorIs(t, err, ports.ErrAbandoned)
		recovered, err := app.Recover(ctx)
		require.NoError(t, err)
		require.Empty(t, recovered)
		purged, err := app.Purge(ctx, batch.PurgeRequest{EndedBefore: time.Now().Add(time.Hour)})
		require.NoError(t, err)
		require.Equal(t, operator.Purged{Instances: 1, Executions: 1, Steps: 1}, purged)
		_, err = app.Restart(ctx, batch.RestartRequest{Execution: id})
		require.ErrorIs(t, err, core.ErrNotFound)
	})
}

func TestCloseWaitsForTheChunkInHandOfWhatRuns(t *testing.T) {
	t.Parallel()
	url, began := testdb.SQLite(t), make(chan struct{})
	file := jobFile(t, endlessText)
	app, err := batch.New(t.Context(), settingsFor(t, url), batch.Reader[Order]("endless", func() *endless { return &endless{began: began} }))
	require.NoError(t, err)
	running, err := app.Start(t.Context(), batch.RunRequest{File: file})
	require.NoError(t, err)
	<-began
	require.NoError(t, app.Close(context.Background()))
	exec, err := running.Wait()
	require.NoError(t, err)
	require.Equal(t, core.StatusStopped, exec.Status)
}

func TestAModuleProvidesAnApp(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		began := make(chan struct{})
		var app *batch.App
		whole := fx.New(fx.NopLogger, batch.Module(settingsFor(t, url)), fx.Populate(&app),
			batch.Item[Order]("order"), batch.Reader[Order]("endless", func() *endless { return &endless{began: began} }))
		require.NoError(t, whole.Err())
		require.NoError(t, whole.Start(t.Context()))
		running, err := app.Start(t.Context(), batch.RunRequest{File: jobFile(t, endlessText)})
		require.NoError(t, err)
		<-began
		require.NoError(t, whole.Stop(context.Background()))
		exec, err := running.Wait()
		require.NoError(t, err)
		require.Equal(t, core.StatusStopped, exec.Status)
		require.NoError(t, app.Close(context.Background()))
	})
}

func TestCloseWaitsNoLongerThanItsContext(t *testing.T) {
	t.Parallel()
	w := &waiting{running: make(chan struct{})}
	app, err := batch.New(t.Context(), settingsFor(t, testdb.SQLite(t)), batch.Tasklet("wait", func() *waiting { return w }, batch.NoTransaction()))
	require.NoError(t, err)
	running, err := app.Start(t.Context(), batch.RunRequest{File: jobFile(t, "job: w\nflow:\n- {step: wait, tasklet: wait, timeout: 5s}\n")})
	require.NoError(t, err)
	<-w.running
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, app.Close(ctx), context.Canceled)
	<-running.Done()
}

func TestAJobIsFoundByItsNameInTheHistory(t *testing.T) {
	t.Parallel()
	url, ctx := testdb.SQLite(t), t.Context()
	file := jobFile(t, "job: nightly\nparameters: {run: {type: int, default: 1}}\nincrementer: run\nflow:\n- {step: one, tasklet: {sql: select 1}}\n")
	first := newApp(t, settingsFor(t, url))
	_, err := first.Run(ctx, batch.RunRequest{File: file})
	require.NoError(t, err)

	app := newApp(t, settingsFor(t, url))
	running, err := app.Start(ctx, batch.RunRequest{Name: "nightly"})
	require.NoError(t, err)
	exec, err := running.Wait()
	require.NoError(t, err)
	require.Equal(t, core.StatusCompleted, exec.Status)
	run, _ := exec.Params.Get("run")
	require.Equal(t, int64(2), run.Value)
	_, err = app.Start(ctx, batch.RunRequest{Name: "weekly"})
	require.ErrorIs(t, err, ports.ErrNoSuchJob)
}

// A job in parallel to the caller: it is stopped, and continues at its position.
func ExampleApp_Start() {
	began := make(chan struct{})
	withApp(endlessText, func(ctx context.Context, app *batch.App, file string) error {
		running, err := app.Start(ctx, batch.RunRequest{File: file})
		if err != nil {
			return err
		}
		<-began
		if _, err := app.Stop(ctx, running.Execution().ID); err != nil {
			return err
		}
		execution, err := running.Wait()
		if err != nil {
			return err
		}
		fmt.Println(execution.Status, execution.ExitCode)
		return nil
	}, began)
	// Output: STOPPED STOPPED
}

// A failed job is fixed, and restarted with its parameters.
func ExampleApp_Restart() {
	withApp(`
job: pay
parameters: {day: {type: date}}
flow:
- step: book
  tasklet: {sql: "insert into ledger (day) values (${params.day})"}
`, func(ctx context.Context, app *batch.App, file string) error {
		failed, err := app.Run(ctx, batch.RunRequest{File: file, Params: map[string]string{"day": "2026-11-20"}})
		if err != nil {
			return err
		}
		fmt.Println(failed.Status)
		mended := "job: pay\nparameters: {day: {type: date}}\nflow:\n- step: book\n  tasklet: {sql: \"create table ledger (day date)\"}\n"
		if err := os.WriteFile(file, []byte(mended), 0o600); err != nil {
			return err
		}
		running, err := app.Restart(ctx, batch.RestartRequest{Execution: failed.ID})
		if err != nil {
			return err
		}
		execution, err := running.Wait()
		if err != nil {
			return err
		}
		fmt.Println(execution.Status, "attempt", execution.Attempt)
		_, err = app.Restart(ctx, batch.RestartRequest{Execution: failed.ID})
		fmt.Println(errors.Is(err, ports.ErrNotMostRecent))
		return nil
	}, nil)
	// Output:
	// FAILED
	// COMPLETED attempt 2
	// true
}

// Old executions that completed or were abandoned are deleted, with their instances.
func ExampleApp_Purge() {
	withApp("job: one\nflow:\n- {step: one, tasklet: {sql: select 1}}\n", func(ctx context.Context, app *batch.App, file string) error {
		if _, err := app.Run(ctx, batch.RunRequest{File: file}); err != nil {
			return err
		}
		purged, err := app.Purge(ctx, batch.PurgeRequest{EndedBefore: time.Now().Add(-90 * 24 * time.Hour)})
		if err != nil {
			return err
		}
		fmt.Println(purged.Executions, "executions are older than 90 days")
		lost, err := app.Recover(ctx)
		fmt.Println(len(lost), "have lost their process")
		return err
	}, nil)
	// Output:
	// 0 executions are older than 90 days
	// 0 have lost their process
}

func withApp(text string, f func(ctx context.Context, app *batch.App, file string) error, began chan struct{}) {
	file, done := testexample.File("job.yaml", text)
	defer done()
	ctx := context.Background()
	err := func() (err error) {
		s, err := settings.Load(settings.Source{Dir: filepath.Dir(file)})
		if err != nil {
			return err
		}
		app, err := batch.New(ctx, s, batch.Reader[Order]("endless", func() *endless { return &endless{began: began} }))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, app.Close(ctx)) }()
		return f(ctx, app, file)
	}()
	if err != nil {
		fmt.Println(err)
	}
}

func TestARestartByTheApplicationIsRefusedWhenTheFileChangedInWhatWasDone(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		app := newApp(t, settingsFor(t, url))
		const text = `
job: changing
flow:
- step: done
  tasklet: {shell: {command: ["true"]}}
- step: fails
  tasklet: {shell: {command: ["false"]}}
`
		file := jobFile(t, text)
		exec, err := app.Run(t.Context(), batch.RunRequest{File: file})
		require.NoError(t, err)
		require.Equal(t, core.StatusFailed, exec.Status)

		require.NoError(t, os.WriteFile(file, []byte(strings.Replace(text, "step: done", "step: renamed", 1)), 0o600))
		_, err = app.Restart(t.Context(), batch.RestartRequest{Execution: exec.ID})
		var changed *jobfile.ChangedError
		require.ErrorAs(t, err, &changed)
		require.Equal(t, exec.ID, changed.Execution)
		require.ErrorContains(t, err, "step done has completed, and is no longer in the file")

		require.NoError(t, os.WriteFile(file, []byte(strings.Replace(text, `"false"`, `"true"`, 1)), 0o600))
		running, err := app.Restart(t.Context(), batch.RestartRequest{Execution: exec.ID})
		require.NoError(t, err)
		exec, err = running.Wait()
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	})
}

// Rule F4.
func TestARestartIsRefusedAsTheChildJudgesItsChangedFile(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		app := newApp(t, settingsFor(t, url))
		const child = "job: inner\nflow:\n- {step: done, tasklet: {shell: {command: [\"true\"]}}}\n- {step: fails, tasklet: {shell: {command: [\"false\"]}}}\n"
		file := jobFile(t, "job: outer\nflow:\n- {job: call, file: inner.yaml}\n")
		inner := filepath.Join(filepath.Dir(file), "inner.yaml")
		require.NoError(t, os.WriteFile(inner, []byte(child), 0o600))
		exec, err := app.Run(t.Context(), batch.RunRequest{File: file})
		require.NoError(t, err)
		require.Equal(t, core.StatusFailed, exec.Status)

		restart := func(text string) (*operator.Execution, []operator.Notice, error) {
			require.NoError(t, os.WriteFile(inner, []byte(text), 0o600))
			var notices []operator.Notice
			running, err := app.Restart(t.Context(), batch.RestartRequest{Execution: exec.ID, Hooks: operator.Hooks{OnNotice: func(n operator.Notice) { notices = append(notices, n) }}})
			if err != nil {
				return nil, notices, err
			}
			exec, err := running.Wait()
			require.NoError(t, err)
			return exec, notices, nil
		}
		_, _, err = restart(strings.Replace(child, "step: done", "step: renamed", 1))
		var refused *operator.Refusal
		require.ErrorAs(t, err, &refused)
		const said = "step call runs job inner, whose step done has completed, and is no longer in the file"
		require.Equal(t, refusal.Changed, refused.Reason)
		require.Equal(t, []string{said}, refused.Details)
		require.Contains(t, refused.Diff, "--- execution 2\n+++ "+inner+"\n")
		require.Contains(t, refused.Diff, "-- {step: done, tasklet")
		explained, err := app.Explain(t.Context(), operator.ExplainRequest{Execution: exec.ID})
		require.NoError(t, err)
		require.Equal(t, refusal.Changed, explained.Refused, "what it promises is what a restart does")
		require.Equal(t, refused.Diff, explained.Diff)
		require.Equal(t, said, explained.Changes[0].String())

		exec, notices, err := restart(strings.Replace(child, `"false"`, `"true"`, 1))
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Len(t, notices, 1)
		require.Equal(t, []jobfile.Change{{Step: "call", What: "has a changed job file, which the launch of that job checks"}}, notices[0].Changes)
		require.Equal(t, []operator.Action{{Kind: refusal.ActCompare, Execution: 1, File: inner, Name: "inner.yaml"}}, notices[0].Actions)

		require.NoError(t, os.Remove(inner))
		explained, err = app.Explain(t.Context(), operator.ExplainRequest{Execution: exec.ID})
		require.NoError(t, err)
		require.Equal(t, operator.FileGone, explained.FileChange)
		require.Equal(t, inner, explained.ChangedFile)
	})
}
