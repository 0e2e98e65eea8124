package repositorytest

import (
	"context"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func checkpointTests() []test {
	return []test{
		{"a checkpoint commits with its transaction and not without", checkpointCommits},
		{"a checkpoint outside of a transaction is refused", checkpointNeedsTransaction},
		{"a checkpoint writes the context only if it changed", checkpointWritesChangedContext},
		{"a checkpoint finds no row where owner or epoch or status differ", checkpointIsGuarded},
		{"a stop request does not look like a lost owner to a checkpoint", checkpointSurvivesStop},
		{"a checkpoint tells of a stop request", checkpointTellsStop},
		{"a position or context that is too large is refused before the statement", checkpointLimits},
	}
}

func checkpointCommits(b *bench) {
	_, ref := b.started("a", 1)
	_, step := b.step(ref, "load", nil)
	counters := core.Counters{Read: 1, Filter: 2, Write: 3, ReadSkip: 4, ProcessSkip: 5, WriteSkip: 6, Commit: 7, Rollback: 8}
	require.NoError(b, b.checkpoint(step, ports.Checkpoint{Counters: counters, Position: item.Position(`{"at":1,"名":"é"}`)}))
	found := b.onlyStep(ref.ID)
	require.Equal(b, counters, found.Counters)
	require.Equal(b, item.Position(`{"at":1,"名":"é"}`), found.Position)

	err := tx.NewManager(b.db).Do(b.ctx, tx.Attr{}, func(ctx context.Context) error {
		require.NoError(b, b.repo.Checkpoint(ctx, step, ports.Checkpoint{Position: item.Position(`2`)}))
		return context.Canceled
	})
	require.ErrorIs(b, err, context.Canceled)
	require.Equal(b, found, b.onlyStep(ref.ID))
	require.Equal(b, b.db.Name(), b.repo.Database())
}

func checkpointNeedsTransaction(b *bench) {
	_, ref := b.started("a", 1)
	_, step := b.step(ref, "load", nil)
	require.ErrorIs(b, b.repo.Checkpoint(b.ctx, step, ports.Checkpoint{}), tx.ErrNoTransaction)
}

func checkpointWritesChangedContext(b *bench) {
	_, ref := b.started("a", 1)
	_, step := b.step(ref, "load", nil)
	keys := func() []string { return b.onlyStep(ref.ID).Context.Keys() }

	memory := core.NewExecutionContext()
	require.NoError(b, memory.Put("k", 1))
	require.NoError(b, b.checkpoint(step, ports.Checkpoint{Context: memory}))
	require.True(b, memory.Changed(), "marked as stored by the caller, after the commit")
	require.Equal(b, []string{"k"}, keys())

	memory.Stored()
	b.exec("UPDATE %sstep_execution SET context = ''")
	require.NoError(b, b.checkpoint(step, ports.Checkpoint{Context: memory}))
	require.NoError(b, b.checkpoint(step, ports.Checkpoint{}))
	require.Empty(b, keys(), "an unchanged context is not written")
	memory.Delete("k")
	require.NoError(b, memory.Put("l", 2))
	require.NoError(b, b.checkpoint(step, ports.Checkpoint{Context: memory}))
	require.Equal(b, []string{"l"}, keys())
	memory.Delete("l")
	require.NoError(b, b.checkpoint(step, ports.Checkpoint{Context: memory}))
	require.Empty(b, keys(), "a context that became empty is written")
}

func checkpointIsGuarded(b *bench) {
	_, ref := b.started("a", 1)
	_, step := b.step(ref, "load", nil)
	for _, wrong := range []ports.StepRef{
		{ID: step.ID + 1, Owner: step.Owner, Epoch: step.Epoch},
		{ID: step.ID, Owner: owner("b"), Epoch: step.Epoch},
		{ID: step.ID, Owner: step.Owner, Epoch: step.Epoch + 1},
	} {
		require.ErrorIs(b, b.checkpoint(wrong, ports.Checkpoint{Position: item.Position(`9`)}), core.ErrLostOwner)
	}
	for _, status := range statuses() {
		b.force("step_execution", int64(step.ID), status)
		err := b.checkpoint(step, ports.Checkpoint{Position: item.Position(`1`)})
		if status == core.StatusStarted {
			require.NoError(b, err)
		} else {
			require.ErrorIs(b, err, core.ErrLostOwner, status)
		}
	}
	require.Equal(b, item.Position(`1`), b.onlyStep(ref.ID).Position)
}

func checkpointSurvivesStop(b *bench) {
	_, ref := b.started("a", 1)
	_, step := b.step(ref, "load", nil)
	_, err := b.other().RequestStop(b.ctx, ref.ID, ports.By{Actor: "test"})
	require.NoError(b, err)
	require.NoError(b, b.checkpoint(step, ports.Checkpoint{Position: item.Position(`1`)}))
}

func checkpointTellsStop(b *bench) {
	_, ref := b.started("a", 1)
	_, step := b.step(ref, "load", nil)
	told := 0
	c := ports.Checkpoint{OnStop: func() { told++ }}
	require.NoError(b, b.checkpoint(step, c))
	require.Zero(b, told)
	_, err := b.other().RequestStop(b.ctx, ref.ID, ports.By{Actor: "test"})
	require.NoError(b, err)
	require.NoError(b, b.checkpoint(step, c))
	require.Equal(b, 1, told)
	c.Context = changed(b)
	require.NoError(b, b.checkpoint(step, c))
	require.Equal(b, 2, told)
	require.NoError(b, b.checkpoint(step, ports.Checkpoint{}))
}

func checkpointLimits(b *bench) {
	_, ref := b.started("a", 1)
	_, step := b.step(ref, "load", nil)
	require.NoError(b, b.checkpoint(step, ports.Checkpoint{Position: item.Position(strings.Repeat("1", ports.MaxPositionBytes))}))
	before := b.onlyStep(ref.ID)
	large := core.NewExecutionContext()
	require.NoError(b, large.Put("small", "x"))
	require.NoError(b, large.Put("huge", strings.Repeat("x", core.MaxContextBytes)))
	require.NoError(b, tx.NewManager(b.db).Do(b.ctx, tx.Attr{}, func(ctx context.Context) error {
		err := b.repo.Checkpoint(ctx, step, ports.Checkpoint{Position: item.Position(strings.Repeat("1", ports.MaxPositionBytes+1))})
		require.ErrorIs(b, err, core.ErrContextTooLarge)
		require.ErrorContains(b, err, "position")
		err = b.repo.Checkpoint(ctx, step, ports.Checkpoint{Context: large})
		require.ErrorIs(b, err, core.ErrContextTooLarge)
		require.ErrorContains(b, err, `"huge"`)
		return nil
	}))
	require.Equal(b, before, b.onlyStep(ref.ID))
}
