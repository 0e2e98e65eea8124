package repositorytest

import (
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

func assignTests() []test {
	return []test{
		{"a partition belongs to one worker, with an epoch and a lease of its own", partsAreAssigned},
		{"a partition of a lost worker is the same record with its position and a new epoch", lostPartIsAssigned},
		{"a partition that loses its worker too often fails", poisonPartFails},
		{"a lost partition of a job that is to stop ends", lostPartIsStopped},
		{"a partition that is given back is assigned again", partIsReleased},
		{"a partition that is given back after a stop was requested ends", partReleasedAfterStopEnds},
		{"a job that is over takes all its partitions along", jobTakesParts},
		{"partitions of a local pool are assigned to no worker", localPartsStay},
	}
}

func partsAreAssigned(b *bench) {
	_, manager, planned := b.managed(6, true)
	var mu sync.Mutex
	got := map[core.StepExecutionID]string{}
	var all sync.WaitGroup
	for _, name := range []string{"v", "w", "x"} {
		repo := b.other()
		all.Go(func() {
			for {
				a, err := repo.AssignPartition(b.ctx, ports.AssignRequest{Owner: owner(name), Lease: time.Hour})
				if err != nil {
					b.Error(err)
				}
				if a == nil {
					return
				}
				mu.Lock()
				if got[a.Step.ID] != "" {
					b.Errorf("%s was assigned twice", a.Step.Name)
				}
				got[a.Step.ID] = name
				mu.Unlock()
			}
		})
	}
	all.Wait()
	require.Len(b, got, len(planned))
	steps, err := b.repo.Partitions(b.ctx, manager.ID)
	require.NoError(b, err)
	for _, s := range steps {
		require.Equal(b, core.StatusStarted, s.Status)
		require.Equal(b, owner(got[s.ID]), s.Owner)
		require.Equal(b, planned[0].Epoch+1, s.Epoch)
		require.Equal(b, 1, s.Assigned)
		require.False(b, s.LeaseUntil.IsZero())
		stop, err := b.repo.HeartbeatStep(b.ctx, stepRef(s), 2*time.Hour)
		require.NoError(b, err)
		require.False(b, stop)
	}
	wrong := stepRef(steps[0])
	wrong.Epoch--
	_, err = b.repo.HeartbeatStep(b.ctx, wrong, time.Hour)
	require.ErrorIs(b, err, core.ErrLostOwner)
}

func (b *bench) lost(a *ports.Assignment) {
	b.Helper()
	d := b.db.Dialect()
	b.exec("UPDATE %sstep_execution SET lease_until = started_at WHERE id = "+d.Placeholder(1), int64(a.Step.ID))
}

func lostPartIsAssigned(b *bench) {
	_, manager, _ := b.managed(1, true)
	first := b.assign("v")
	require.Equal(b, manager.ID, first.Manager.ID)
	counters := core.Counters{Read: 4, Write: 4, Commit: 1}
	require.NoError(b, b.checkpoint(stepRef(first.Step), ports.Checkpoint{Counters: counters, Position: item.Position(`4`)}))
	require.Nil(b, b.assign("w"), "its lease lives")
	b.lost(first)
	second := b.assign("w")
	require.Equal(b, first.Step.ID, second.Step.ID)
	require.Equal(b, first.Step.Epoch+1, second.Step.Epoch)
	require.Equal(b, item.Position(`4`), second.Step.Position)
	require.Equal(b, counters, second.Step.Counters)
	require.Equal(b, []core.Owner{owner("v")}, second.Step.AssignedFrom)
	require.ErrorIs(b, b.checkpoint(stepRef(first.Step), ports.Checkpoint{}), core.ErrLostOwner)
	_, err := b.repo.EndStep(b.ctx, stepRef(first.Step), ports.StepChange{To: core.StatusCompleted})
	require.ErrorIs(b, err, core.ErrLostOwner)

	third, err := b.repo.AssignPartition(b.ctx, ports.AssignRequest{Owner: owner("x"), Lease: time.Hour, Dead: func(o core.Owner) bool { return o == owner("w") }})
	require.NoError(b, err)
	require.Equal(b, owner("x"), third.Step.Owner, "a worker that is known to be dead is not waited for")
	require.Equal(b, []core.Owner{owner("v"), owner("w")}, third.Step.AssignedFrom)
}

func poisonPartFails(b *bench) {
	_, manager, _ := b.managed(1, true)
	for range ports.DefaultPartAttempts {
		b.lost(b.assign("w"))
	}
	require.Nil(b, b.assign("w"))
	steps, err := b.repo.Partitions(b.ctx, manager.ID)
	require.NoError(b, err)
	require.Equal(b, core.StatusFailed, steps[0].Status)
	require.Equal(b, "lost owner, for the 3. time", steps[0].Error)
	require.Zero(b, b.open(manager))
}

func lostPartIsStopped(b *bench) {
	ref, manager, _ := b.parked(1)
	a := b.assign("w")
	_, err := b.repo.RequestStop(b.ctx, ref.ID, ports.By{Actor: "test"})
	require.NoError(b, err)
	b.lost(a)
	require.Nil(b, b.assign("x"))
	require.Zero(b, b.open(manager))
	_, err = b.repo.EndStep(b.ctx, stepRef(a.Step), ports.StepChange{To: core.StatusCompleted})
	require.ErrorIs(b, err, core.ErrLostOwner)
}

func partIsReleased(b *bench) {
	_, manager, _ := b.managed(1, true)
	for range 2 * ports.DefaultPartAttempts { // no attempt has failed
		a := b.assign("w")
		require.NotNil(b, a)
		require.Empty(b, a.Step.Error)
		require.NoError(b, b.repo.ReleasePartition(b.ctx, stepRef(a.Step), "a file\x00 is missing"))
		steps, err := b.repo.Partitions(b.ctx, manager.ID)
		require.NoError(b, err)
		require.Equal(b, core.StatusStarting, steps[0].Status)
		require.Equal(b, "a file\uFFFD is missing", steps[0].Error, "why it was given back, until it is assigned")
		require.Error(b, b.repo.ReleasePartition(b.ctx, stepRef(a.Step), ""))
	}
	require.EqualValues(b, 1, b.open(manager))
}

func partReleasedAfterStopEnds(b *bench) {
	for _, byWorker := range []bool{true, false} {
		ref, manager, _ := b.parked(1)
		a := b.assign("w")
		_, err := b.repo.RequestStop(b.ctx, ref.ID, ports.By{Actor: "test"})
		require.NoError(b, err)
		require.NoError(b, b.repo.ReleasePartition(b.ctx, stepRef(a.Step), ""))
		if byWorker {
			require.Nil(b, b.assign("x"))
			require.Zero(b, b.open(manager))
		}
		resumed, err := b.resume("b", ref.ID)
		require.NoError(b, err)
		require.Equal(b, core.StatusStopping, resumed.Execution.Status)
		steps, err := b.repo.Partitions(b.ctx, manager.ID)
		require.NoError(b, err)
		require.Equal(b, core.StatusStopped, steps[0].Status)
		require.Zero(b, b.open(manager))
		b.change(jobRef(resumed.Execution), ports.JobChange{To: core.StatusStopped})
	}
}

func jobTakesParts(b *bench) {
	ref, manager, _ := b.managed(2, true)
	a := b.assign("w")
	b.change(ref, ports.JobChange{To: core.StatusFailed})
	_, err := b.repo.HeartbeatStep(b.ctx, stepRef(a.Step), time.Hour)
	require.ErrorIs(b, err, core.ErrLostOwner)
	require.ErrorIs(b, b.checkpoint(stepRef(a.Step), ports.Checkpoint{}), core.ErrLostOwner)
	require.Nil(b, b.assign("x"))
	require.Zero(b, b.open(manager))
}

func localPartsStay(b *bench) {
	_, _, planned := b.managed(2, false)
	require.Nil(b, b.assign("w"))
	require.NoError(b, b.repo.BeginStep(b.ctx, stepRef(planned[0])))
	require.Nil(b, b.assign("w"))
}
