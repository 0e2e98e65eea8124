package repository_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Rule T8a.
func TestACheckpointBesideTheDataIsPartOfTheTransactionThatWasBegun(t *testing.T) {
	t.Parallel()
	eachPair(t, func(c *cross) {
		a := c.claimed("a")
		require.NoError(c, c.commit(a, 1, ports.Checkpoint{Position: position(1)}))
		for _, script := range []string{"SELECT 1; COMMIT; BEGIN", "SELECT 1; ROLLBACK; BEGIN", "SELECT 1; ROLLBACK"} {
			err := tx.NewManager(c.data).Do(c.Context(), tx.Attr{}, func(ctx context.Context) error {
				if _, err := tx.ConnOf(ctx, c.data).ExecContext(ctx, script); err != nil {
					return err
				}
				return a.Services.Checkpoints.Checkpoint(ctx, a.Ref, ports.Checkpoint{Position: position(2)})
			})
			if c.data.Dialect() == tx.MySQL { // takes no scripts
				require.ErrorContains(c, err, "1064")
				continue
			}
			require.ErrorIs(c, err, tx.ErrForeignEnd, script)
			require.NotErrorIs(c, err, core.ErrLostOwner, script)
		}
		require.NoError(c, c.commit(a, 2, ports.Checkpoint{Position: position(2)}))
		require.Equal(c, 2, c.people())
		_, found, err := a.Services.Checkpoints.Reclaim(c.Context(), a.Ref)
		require.NoError(c, err)
		require.JSONEq(c, string(position(2)), string(found.Position))
		err = c.commit(a, 3, ports.Checkpoint{Position: position(3)})
		require.NoError(c, err)
	})
}
