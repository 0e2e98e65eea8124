package batch_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

// remoteChild is an application with a parent that has a child on workers. It has none: tests are the
// workers.
type remoteChild struct {
	*testing.T
	app    *batch.App
	parent string
}

func newRemoteChild(t *testing.T, url, parent string) *remoteChild {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "child.yaml", "job: child\nflow:\n- step: one\n  tasklet: {sql: select 1}\n")
	s, err := settings.Load(settings.Source{Dir: dir, Environ: []string{"DATABASE_URL=" + url, "SURFIN_LEASE=10s", "SURFIN_HEARTBEAT=100ms"}})
	require.NoError(t, err)
	s.AutoMigrate = settings.MigrateAlways
	app, err := batch.New(t.Context(), s)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, app.Close(context.WithoutCancel(t.Context()))) })
	return &remoteChild{t, app, write(t, dir, "parent.yaml", parent)}
}

func (r *remoteChild) start() *batch.Running {
	r.Helper()
	running, err := r.app.Start(r.Context(), batch.RunRequest{File: r.parent})
	require.NoError(r, err)
	return running
}

func (r *remoteChild) children() []core.JobExecution {
	r.Helper()
	list, err := r.app.Repository.Executions(r.Context(), ports.ExecutionFilter{JobName: "child"})
	require.NoError(r, err)
	return list
}

func (r *remoteChild) begin(n int, owner core.Owner) ports.JobRef {
	r.Helper()
	require.Eventually(r, func() bool { return len(r.children()) == n }, time.Minute, 5*time.Millisecond)
	id := r.children()[0].ID
	resumed, err := r.app.Repository.Resume(r.Context(), id, ports.ResumeRequest{Owner: owner, Lease: time.Hour})
	require.NoError(r, err)
	return ports.JobRef{ID: id, Owner: owner, Epoch: resumed.Execution.Epoch}
}

// Rule P7.
func TestAChildWhoseWorkersAreLostThreeTimesFailsItsParent(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		r := newRemoteChild(t, url, "job: parent\nflow:\n- job: work\n  file: child.yaml\n  remote: true\n")
		running := r.start()
		for n := range 3 {
			gone := core.Owner{Host: "gone", PID: n + 1}
			r.begin(n+1, gone)
			require.Eventually(t, func() bool {
				e, err := r.app.Repository.Execution(t.Context(), running.Execution().ID)
				require.NoError(t, err)
				return e.Status == core.StatusParked
			}, time.Minute, 5*time.Millisecond)
			require.NoError(t, r.app.Repository.RecoverChildren(t.Context(), "test", func(o core.Owner) bool { return o.Host == "gone" }))
		}
		parent, err := running.Wait()
		require.NoError(t, err)
		require.Equal(t, core.StatusFailed, parent.Status)
		require.Contains(t, parent.Error, ports.LostOwner)
		require.Len(t, r.children(), 3)
		for i, c := range r.children() {
			require.Equal(t, []any{core.StatusFailed, ports.LostOwner, 3 - i}, []any{c.Status, c.Error, c.Attempt})
		}
	})
}

// Rule P7: the process of a parent that keeps its slot dies while a worker
// runs the child.
func TestARestartedParentWaitsForTheChildThatStillRuns(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		r := newRemoteChild(t, url, "job: parent\nflow:\n- flow: inner\n  steps:\n  - job: work\n    file: child.yaml\n    remote: true\n")
		running := r.start()
		child := r.begin(1, core.Owner{Host: "another", PID: 1})
		lost, err := r.app.Repository.Recover(t.Context(), "test", func(o core.Owner) bool { return o.Host != "another" })
		require.NoError(t, err)
		require.Len(t, lost, 1)
		_, err = running.Wait()
		require.ErrorIs(t, err, core.ErrLostOwner)

		again, err := r.app.Restart(t.Context(), batch.RestartRequest{Execution: lost[0].ID})
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			steps, err := r.app.Repository.Steps(t.Context(), again.Execution().ID)
			require.NoError(t, err)
			return len(steps) == 1
		}, time.Minute, 5*time.Millisecond)
		_, err = r.app.Repository.ChangeJob(t.Context(), child, ports.JobChange{To: core.StatusCompleted, ExitCode: core.ExitCompleted})
		require.NoError(t, err)
		parent, err := again.Wait()
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, parent.Status, parent.Error)
		require.Len(t, r.children(), 1)
	})
}
