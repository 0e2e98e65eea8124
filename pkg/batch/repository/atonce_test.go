package repository_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestAStepThatStartsWhileItsJobEndsDoesNotOutliveIt(t *testing.T) {
	t.Parallel()
	db := connect(t, testdb.Postgres(t))
	repo := repository.New(db, repository.Options{})
	require.NoError(t, repo.Migrate(t.Context()))
	for _, before := range []int{0, 2} { // steps that have ended
		owner := core.Owner{Host: "h"}
		launched, err := repo.Launch(t.Context(), ports.LaunchRequest{JobName: "load", Owner: owner, Lease: time.Hour, New: before == 0, Restartable: true})
		require.NoError(t, err)
		ref := ports.JobRef{ID: launched.Execution.ID, Owner: owner, Epoch: launched.Execution.Epoch}
		_, err = repo.ChangeJob(t.Context(), ref, ports.JobChange{To: core.StatusStarted})
		require.NoError(t, err)
		for range before {
			step, err := repo.StartStep(t.Context(), ref, ports.StepStart{Name: "before"})
			require.NoError(t, err)
			_, err = repo.EndStep(t.Context(), ports.StepRef{ID: step.ID, Owner: owner, Epoch: step.Epoch}, ports.StepChange{To: core.StatusCompleted})
			require.NoError(t, err)
		}
		ended := make(chan error, 1)
		require.NoError(t, tx.NewManager(db).Do(t.Context(), tx.Attr{}, func(ctx context.Context) error {
			if _, err := repo.StartStep(ctx, ref, ports.StepStart{Name: "late"}); err != nil {
				return err
			}
			go func() {
				_, err := repo.ChangeJob(t.Context(), ref, ports.JobChange{To: core.StatusFailed, ExitCode: core.ExitFailed})
				ended <- err
			}()
			require.Eventually(t, func() bool {
				var waits bool
				return db.Conn().QueryRowContext(t.Context(), testdb.Waiting(tx.Postgres)).Scan(&waits) == nil && waits
			}, time.Minute, 10*time.Millisecond)
			return nil
		}))
		require.NoError(t, <-ended)
		steps, err := repo.Steps(t.Context(), ref.ID)
		require.NoError(t, err)
		require.Equal(t, core.StatusFailed, steps[len(steps)-1].Status)
		require.Len(t, steps, before+1)
	}
}
