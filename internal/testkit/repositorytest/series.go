package repositorytest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func seriesTests() []test {
	return []test{
		{"the samples of a step are stored by its owner only", seriesOfOwner},
		{"the samples of a part are stored by its worker, and a lost worker writes over nothing", seriesOfPart},
		{"purge deletes the samples of steps", seriesPurged},
	}
}

func (b *bench) storeSeries(ref ports.JobRef, id core.StepExecutionID, text string) {
	b.Helper()
	require.NoError(b, b.repo.StoreSeries(b.ctx, ref, []ports.StepSeries{{Step: id, Samples: []byte(text), Since: time.Minute}}))
}

func (b *bench) requireSeries(id core.StepExecutionID, want string) {
	b.Helper()
	found, err := b.repo.StoredSeries(b.ctx, id)
	require.NoError(b, err)
	require.Equal(b, want, string(found[id].Samples))
	if want != "" {
		require.InDelta(b, time.Minute.Seconds(), found[id].Since.Seconds(), 20)
	}
}

// Rule OP8.
func seriesOfOwner(b *bench) {
	exec, ref := b.started("a", 1)
	one, _ := b.step(ref, "one", nil)
	two, _ := b.step(ref, "two", nil)
	b.storeSeries(ref, one.ID, "first")
	b.requireSeries(one.ID, "first")
	require.NoError(b, b.repo.StoreSeries(b.ctx, ref, []ports.StepSeries{{Step: one.ID, Samples: []byte("second"), Since: time.Minute}, {Step: two.ID, Samples: []byte("two"), Since: time.Minute}}))
	b.requireSeries(one.ID, "second")
	b.requireSeries(two.ID, "two")

	other := ref
	other.Owner = owner("b")
	b.storeSeries(other, one.ID, "another owner")
	late := ref
	late.Epoch--
	b.storeSeries(late, one.ID, "another epoch")
	_, foreign := b.started("c", 2)
	b.storeSeries(foreign, one.ID, "another execution")
	b.requireSeries(one.ID, "second")

	steps, err := b.repo.SampledSteps(b.ctx, ports.SampledRequest{Execution: exec.ID, Limit: 1})
	require.NoError(b, err)
	require.Len(b, steps, 1)
	require.Equal(b, "second", string(steps[0].Samples))
	require.WithinDuration(b, one.StartedAt.Add(-time.Minute), steps[0].Since, 20*time.Second)
	steps, err = b.repo.SampledSteps(b.ctx, ports.SampledRequest{Execution: exec.ID, After: one.ID, Brief: true, Limit: 10})
	require.NoError(b, err)
	require.Len(b, steps, 1)
	require.Equal(b, two.ID, steps[0].ID)
	require.Empty(b, steps[0].Samples)

	b.change(ref, ports.JobChange{To: core.StatusCompleted})
	b.storeSeries(ref, one.ID, "after the end")
	b.requireSeries(one.ID, "after the end")
}

func seriesOfPart(b *bench) {
	job, manager, _ := b.managed(2, true)
	guard := func(a *ports.Assignment) ports.JobRef {
		return ports.JobRef{ID: a.Job.ID, Owner: a.Step.Owner, Epoch: a.Step.Epoch, Branch: a.Step.ID}
	}
	first := b.assign("v")
	b.storeSeries(guard(first), first.Step.ID, "first")
	b.storeSeries(guard(first), manager.ID, "of another step")
	b.requireSeries(manager.ID, "")
	b.lost(first)
	second := b.assign("w")
	require.Equal(b, first.Step.ID, second.Step.ID)
	b.storeSeries(guard(first), first.Step.ID, "late")
	b.requireSeries(first.Step.ID, "first")
	b.storeSeries(guard(second), first.Step.ID, "second")
	// A statement of the lost worker that began before.
	b.exec(fmt.Sprintf("UPDATE %%sstep_execution SET epoch = epoch - 1, owner = '%s' WHERE id = ", first.Step.Owner)+b.db.Dialect().Placeholder(1), int64(first.Step.ID))
	b.storeSeries(guard(first), first.Step.ID, "late")
	b.requireSeries(first.Step.ID, "second")

	steps, err := b.repo.SampledSteps(b.ctx, ports.SampledRequest{Execution: job.ID, Limit: 10})
	require.NoError(b, err)
	require.Len(b, steps, 3)
	require.True(b, steps[0].HasParts)
	require.Equal(b, manager.ID, steps[1].Manager)
	require.False(b, steps[1].HasParts || steps[1].IsBranch)
}

func seriesPurged(b *bench) {
	_, ref := b.started("a", 1)
	one, _ := b.step(ref, "one", nil)
	b.storeSeries(ref, one.ID, "first")
	b.change(ref, ports.JobChange{To: core.StatusCompleted})
	purged, err := b.repo.Purge(b.ctx, ports.PurgeFilter{EndedBefore: time.Now().Add(time.Hour)}, "ada")
	require.NoError(b, err)
	require.EqualValues(b, 1, purged.Steps)
	b.requireSeries(one.ID, "")
}
