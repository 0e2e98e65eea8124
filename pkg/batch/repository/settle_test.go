package repository_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func TestALostCommitBesideTheDataIsSettledByTheNextLaunch(t *testing.T) {
	t.Parallel()
	eachPair(t, func(c *cross) {
		a := c.claimed("a")
		require.NoError(c, c.commit(a, 1, ports.Checkpoint{Counters: core.Counters{Read: 1, Write: 1, Commit: 1}, Position: position(1)}))
		_, err := c.repo.EndStep(c.Context(), a.Ref, ports.StepChange{To: core.StatusUnknown, ExitCode: core.ExitUnknown, Settles: true})
		require.NoError(c, err)
		_, err = c.repo.ChangeJob(c.Context(), a.ref, ports.JobChange{To: core.StatusUnknown, ExitCode: core.ExitUnknown, Settles: true})
		require.NoError(c, err)

		b := c.claimed("b")
		require.Equal(c, position(1), b.Step.Position, "what the checkpoint tells")
		require.Equal(c, core.StatusFailed, c.stored(a).Status)
		require.Error(c, c.commit(a, 9, ports.Checkpoint{Position: position(9)}), "the attempt that was lost")
		require.NoError(c, c.commit(b, 2, ports.Checkpoint{Counters: core.Counters{Read: 1, Write: 1, Commit: 1}, Position: position(2)}))
		require.Equal(c, 2, c.people())
	})
}
