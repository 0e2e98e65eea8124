package repository_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func TestWhatCameBeforeCountsWhatOnlyTheCheckpointKnew(t *testing.T) {
	t.Parallel()
	eachPair(t, func(c *cross) {
		first := c.claimed("a")
		one := core.Counters{Read: 5, Filter: 1, Write: 3, WriteSkip: 1, Commit: 2, Rollback: 1}
		require.NoError(c, c.commit(first, 1, ports.Checkpoint{Counters: one, Position: position(5)}))
		// The process dies: the repository does not know of this work when the next one begins.
		lost := c.attempt("lost") // it dies as well, before its claim
		require.Zero(c, lost.Step.Before)
		second := c.claimed("b")
		require.Equal(c, one, second.Step.Before)
		require.Equal(c, one, c.stored(second).Before)

		two := core.Counters{Read: 2, Write: 2, Commit: 1}
		require.NoError(c, c.commit(second, 2, ports.Checkpoint{Counters: two, Position: position(7)}))
		require.NoError(c, second.SyncHistory(c.Context(), nil))
		c.end(second, core.StatusFailed, two)
		third := c.claimed("c")
		require.Equal(c, one.Add(two), third.Step.Before, "nothing is counted twice")
		require.Equal(c, one.Add(two), c.stored(third).Total())
	})
}

func TestAStopIsHeardWhenTheRepositoryIsTold(t *testing.T) {
	t.Parallel()
	eachPair(t, func(c *cross) {
		a := c.claimed("a")
		told := 0
		p := ports.Checkpoint{Position: position(1), OnStop: func() { told++ }}
		require.NoError(c, c.commit(a, 1, p))
		require.NoError(c, a.SyncHistory(c.Context(), nil))
		require.Zero(c, told)
		_, err := c.repo.RequestStop(c.Context(), a.Data.Job.ID, ports.By{Actor: "test"})
		require.NoError(c, err)
		require.NoError(c, c.commit(a, 2, p))
		require.Zero(c, told, "the database of the data does not know")
		require.NoError(c, a.SyncHistory(c.Context(), nil))
		require.Equal(c, 1, told)
	})
}

func TestASweepDeletesTheCheckpointsOfPurgedInstancesOnly(t *testing.T) {
	t.Parallel()
	eachPair(t, func(c *cross) {
		ctx := c.Context()
		first := c.claimed("a")
		skip := ports.Checkpoint{Counters: core.Counters{ReadSkip: 1}, Skipped: []core.SkippedItem{{Phase: core.PhaseRead}}}
		require.NoError(c, c.commit(first, 1, skip)) // staged, and never moved
		c.end(first, core.StatusFailed, core.Counters{})
		swept, err := c.stores.CollectGarbage(ctx, "data")
		require.NoError(c, err)
		require.Zero(c, swept, "it is needed by the restart")

		purged, err := c.repo.Purge(ctx, ports.PurgeFilter{EndedBefore: time.Now().Add(time.Hour), Statuses: []core.Status{core.StatusFailed}}, "ada")
		require.NoError(c, err)
		require.Equal(c, ports.Purged{Instances: 1, Executions: 1, Steps: 1}, purged)
		second := c.claimed("b")
		require.Empty(c, second.Step.Position, "another instance")
		require.NoError(c, c.commit(second, 2, ports.Checkpoint{Position: position(1)}))
		swept, err = c.stores.CollectGarbage(ctx, "data")
		require.NoError(c, err)
		require.Equal(c, int64(1), swept)
		for table, left := range map[string]int{"surfin_checkpoint": 1, "surfin_checkpoint_skip": 0} {
			var n int
			require.NoError(c, c.data.Conn().QueryRowContext(ctx, "SELECT count(*) FROM "+table).Scan(&n))
			require.Equal(c, left, n, table)
		}
		require.NoError(c, c.commit(second, 3, ports.Checkpoint{Position: position(2)}))
	})
}
