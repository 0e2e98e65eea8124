package repositorytest

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func leaseTests() []test {
	return []test{
		{"a heartbeat extends the lease by the database's clock", heartbeatExtends},
		{"a heartbeat tells of a stop request", heartbeatTellsStop},
		{"a heartbeat of who is not the owner is refused", heartbeatIsGuarded},
		{"a stop request is answered for every state", stopInEveryState},
		{"a stop request reaches the child jobs that run, and those that are launched later", stopOfChildren},
		{"the owner finishes what it was asked to stop", ownerFinishesStopping},
		{"where there is one writer a running instance is refused without waiting for it", runningRefusedWithoutWaiting},
		{"where there is one writer a take-over that waited for it names the owner", waitingNamesOwner},
	}
}

func heartbeatExtends(b *bench) {
	req := b.request("a", 1)
	req.Lease = time.Minute
	launched, err := b.repo.Launch(b.ctx, req)
	require.NoError(b, err)
	exec := launched.Execution
	stop, err := b.repo.Heartbeat(b.ctx, jobRef(exec), time.Hour)
	require.NoError(b, err)
	require.False(b, stop)
	extended := b.execution(exec.ID).LeaseUntil.Sub(exec.LeaseUntil)
	require.GreaterOrEqual(b, extended, 59*time.Minute)
	require.Less(b, extended, 60*time.Minute)

	_, err = b.repo.Heartbeat(b.ctx, jobRef(exec), 0)
	require.ErrorContains(b, err, "not positive")
}

func heartbeatTellsStop(b *bench) {
	exec, ref := b.started("a", 1)
	answer, err := b.other().RequestStop(b.ctx, exec.ID, ports.By{Actor: "test"})
	require.NoError(b, err)
	require.Equal(b, core.Applied, answer)
	stop, err := b.repo.Heartbeat(b.ctx, ref, time.Hour)
	require.NoError(b, err)
	require.True(b, stop)
	found := b.execution(exec.ID)
	require.Equal(b, core.StatusStopping, found.Status)
	require.True(b, found.StopRequested)
}

func heartbeatIsGuarded(b *bench) {
	exec, ref := b.started("a", 1)
	for _, wrong := range []ports.JobRef{
		{ID: ref.ID + 1, Owner: ref.Owner, Epoch: ref.Epoch},
		{ID: ref.ID, Owner: owner("b"), Epoch: ref.Epoch},
		{ID: ref.ID, Owner: ref.Owner, Epoch: ref.Epoch + 1},
	} {
		_, err := b.repo.Heartbeat(b.ctx, wrong, 2*time.Hour)
		require.ErrorIs(b, err, core.ErrLostOwner)
	}
	require.Equal(b, exec.LeaseUntil, b.execution(exec.ID).LeaseUntil)
	b.change(ref, ports.JobChange{To: core.StatusCompleted})
	_, err := b.repo.Heartbeat(b.ctx, ref, time.Hour)
	require.ErrorIs(b, err, core.ErrLostOwner)
}

func stopInEveryState(b *bench) {
	exec := b.launch("a", 1)
	for _, status := range statuses() {
		b.force("job_execution", int64(exec.ID), status)
		b.events.take()
		answer, err := b.repo.RequestStop(b.ctx, exec.ID, ports.By{Actor: "test"})
		seen := legal(ports.MoveRequestStop, status)
		require.Equal(b, []core.Transitioned{{
			Machine: "job execution", Move: ports.MoveRequestStop, ID: int64(exec.ID), To: core.StatusStopping, Current: status, Answer: seen, Trigger: "request stop",
		}}, b.events.take())
		want := seen
		if status == core.StatusStopping {
			want = core.Duplicate
		}
		require.Equal(b, want, answer, status)
		if want == core.Rejected {
			require.ErrorContains(b, err, string(status))
		} else {
			require.NoError(b, err, status)
		}
	}
	answer, err := b.repo.RequestStop(b.ctx, exec.ID+1, ports.By{Actor: "test"})
	require.Equal(b, core.Rejected, answer)
	require.ErrorIs(b, err, core.ErrNotFound)
}

func stopOfChildren(b *bench) {
	parent, _ := b.started("a", 1)
	child := func(day int64, of core.JobExecutionID) *core.JobExecution {
		req := b.request("a", day)
		req.JobName, req.Parent = "child", of
		launched, err := b.repo.Launch(b.ctx, req)
		require.NoError(b, err)
		require.Equal(b, of, launched.Execution.Parent)
		return launched.Execution
	}
	running, over, other := child(1, parent.ID), child(2, parent.ID), child(3, b.launch("a", 2).ID)
	grandchild := child(4, running.ID)
	b.change(jobRef(over), ports.JobChange{To: core.StatusFailed})
	_, err := b.other().RequestStop(b.ctx, parent.ID, ports.By{Actor: "test"})
	require.NoError(b, err)
	late := child(5, parent.ID)
	for id, want := range map[core.JobExecutionID]bool{
		running.ID: true, grandchild.ID: true, late.ID: true, over.ID: false, other.ID: false,
	} {
		require.Equal(b, want, b.execution(id).StopRequested, "execution %d", id)
	}
	require.Equal(b, core.StatusFailed, b.execution(over.ID).Status)
}

func ownerFinishesStopping(b *bench) {
	for day, end := range []core.Status{core.StatusStopped, core.StatusCompleted, core.StatusFailed, core.StatusUnknown} {
		_, ref := b.started("a", int64(day))
		_, step := b.step(ref, "one", nil)
		_, err := b.repo.RequestStop(b.ctx, ref.ID, ports.By{Actor: "test"})
		require.NoError(b, err)
		b.end(step, ports.StepChange{To: core.StatusStopped})
		b.change(ref, ports.JobChange{To: end})
	}
	exec := b.launch("a", 99)
	_, err := b.repo.RequestStop(b.ctx, exec.ID, ports.By{Actor: "test"})
	require.NoError(b, err)
	answer, err := b.repo.ChangeJob(b.ctx, jobRef(exec), ports.JobChange{To: core.StatusStarted})
	require.Equal(b, core.Rejected, answer)
	found, mine := ports.FoundIn(err)
	require.True(b, mine)
	require.Equal(b, core.StatusStopping, found)
	b.change(jobRef(exec), ports.JobChange{To: core.StatusStopped})
}

func (b *bench) heldWriter(limit time.Duration, f func(ctx context.Context)) {
	b.Helper()
	if !b.db.SingleWriter() {
		b.Skip("this database has many writers")
	}
	require.NoError(b, tx.NewManager(b.db).Do(b.ctx, tx.Attr{}, func(context.Context) error {
		ctx, cancel := context.WithTimeout(b.ctx, limit)
		defer cancel()
		f(ctx)
		return nil
	}))
}

func runningRefusedWithoutWaiting(b *bench) {
	exec, _ := b.started("a", 1)
	other := b.other()
	b.heldWriter(20*time.Second, func(ctx context.Context) {
		_, err := other.Launch(ctx, b.request("b", 1))
		var running *ports.AlreadyRunningError
		require.ErrorAs(b, err, &running)
		require.Equal(b, exec.ID, running.ExecutionID)
		require.NotErrorIs(b, err, context.DeadlineExceeded)
	})
}

func waitingNamesOwner(b *bench) {
	exec, _ := b.started("a", 1)
	other := b.other()
	b.heldWriter(200*time.Millisecond, func(ctx context.Context) {
		req := b.request("b", 1)
		req.Dead = dead
		_, err := other.Launch(ctx, req)
		require.ErrorIs(b, err, context.DeadlineExceeded)
		var running *ports.AlreadyRunningError
		require.ErrorAs(b, err, &running)
		require.Equal(b, exec.ID, running.ExecutionID)
		require.Equal(b, owner("a"), running.Owner)
	})
	require.Equal(b, core.StatusStarted, b.execution(exec.ID).Status)
}
