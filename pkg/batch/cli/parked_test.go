package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	command "github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/cli"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

// Rule W12.
func TestAnExecutionThatIsParkedWithoutALiveWorkerIsShownSo(t *testing.T) {
	t.Setenv("DATABASE_URL", testdb.SQLite(t))
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	write("child.yaml", "job: child\nflow:\n- step: one\n  tasklet: {sql: select 1}\n")
	parent := write("parent.yaml", "job: parent\nflow:\n- job: work\n  file: child.yaml\n  remote: true\n")
	s, err := settings.Load(settings.Source{Dir: dir, Environ: os.Environ()})
	require.NoError(t, err)
	var started atomic.Int64
	app, err := batch.New(t.Context(), s, batch.Observe(core.ObserverFunc(func(_ context.Context, e core.Event) {
		if _, is := e.(core.WorkerStarted); is {
			started.Add(1)
		}
	})))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, app.Close(context.WithoutCancel(t.Context()))) })
	running, err := app.Start(t.Context(), batch.RunRequest{File: parent})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		e, err := app.Repository.Execution(t.Context(), 1)
		require.NoError(t, err)
		return e.Status == core.StatusParked
	}, time.Minute, 5*time.Millisecond)

	program, err := cli.NewCommand()
	require.NoError(t, err)
	surfin := func(args ...string) string {
		var out, errs strings.Builder
		code := command.Main(t.Context(), program, args, strings.NewReader(""), &out, &errs)
		require.Equal(t, 0, code, "%s%s", out.String(), errs.String())
		return out.String() + errs.String()
	}
	const lacks = "no live worker of engine local: start `cli.test worker`"
	shown := surfin("show", "1")
	require.Contains(t, shown, "parked      it waits for 1 child job; "+lacks)
	require.Contains(t, shown, "work: execution 2 (")
	require.Contains(t, shown, "run its child jobs:")
	require.NotContains(t, shown, "run its parts")
	require.Contains(t, surfin("list"), "2, 1: parked; "+lacks)
	top := surfin("top", "--once")
	require.Contains(t, top, lacks)
	require.Contains(t, top, "execution 2: ")

	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- app.Work(context.WithoutCancel(t.Context()), stop, runtime.Options{Types: []string{}, Poll: 50 * time.Millisecond, Drain: -1})
	}()
	ran, err := running.Wait()
	require.NoError(t, err)
	require.Equal(t, core.StatusCompleted, ran.Status)
	workers, err := app.Tasks.Workers(t.Context())
	require.NoError(t, err)
	require.Len(t, workers, 1)
	require.True(t, workers[0].Parts)
	require.Empty(t, workers[0].Types)
	require.EqualValues(t, 1, started.Load(), "observers hear of a worker before its first work")
	close(stop)
	require.NoError(t, <-ended)
}
