package repository_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

func TestARoundThatDiedBeforeItsClaimDoesNotGoOnWhereTheOneBeforeEnded(t *testing.T) {
	t.Parallel()
	eachPair(t, func(c *cross) {
		first := c.claimed("first")
		require.NoError(c, c.commit(first, 1, ports.Checkpoint{Counters: core.Counters{Write: 1}, Position: item.Position("end")}))
		_, err := c.repo.EndStep(c.Context(), first.Ref, ports.StepChange{To: core.StatusCompleted, Counters: core.Counters{Write: 1}})
		require.NoError(c, err)

		died := c.attempt("died") // a repetition from the start
		require.Nil(c, died.Data.Earlier)
		again := c.claimed("again")
		require.Equal(c, died.Step.ID, again.Data.Earlier.ID)
		require.Empty(c, again.Step.Position, "it begins anew")
		require.Zero(c, again.Step.Before)
		require.NoError(c, c.commit(again, 2, ports.Checkpoint{Counters: core.Counters{Write: 1}, Position: item.Position("one")}))

		unclaimed := c.attempt("unclaimed")
		require.Equal(c, died.Step.ID, unclaimed.Data.Earlier.First)
		last := c.claimed("last")
		require.Equal(c, died.Step.ID, last.Data.Earlier.First)
		require.Equal(c, item.Position("one"), last.Step.Position, "what the attempts of this round committed is gone on from")
	})
}
