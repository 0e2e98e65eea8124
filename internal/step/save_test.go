package step_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestATaskletSavesItsContextWhileItExecutes(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		var lost error
		_, err := e.Launcher.Run(t.Context(), testengine.Job("saving", e.Tasklet("save", tx.Attr{Propagation: tx.NotSupported},
			func(ctx context.Context, c *core.StepContribution) error {
				require.NoError(t, c.Context.Put("begun", true))
				require.NoError(t, c.Save(ctx))
				steps, err := e.Repository.Steps(ctx, c.Step.JobExecutionID)
				require.NoError(t, err)
				stored, _ := steps[0].Context.Get("begun")
				require.Equal(t, true, stored)
				e.Exec("update surfin_step_execution set epoch = epoch + 1") // another process has taken it over
				require.NoError(t, c.Context.Put("more", true))
				lost = c.Save(ctx)
				return lost
			})), core.Parameters{}, nil)
		require.ErrorIs(t, lost, core.ErrLostOwner, "%v", err)
	})
}
