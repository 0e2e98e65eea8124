package repository_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type heard struct {
	mu   sync.Mutex
	list []ports.Ready
}

func (h *heard) Announce(_ context.Context, list ...ports.Ready) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range list {
		r.Since = time.Time{} // the queue position is tested with the engines
		h.list = append(h.list, r)
	}
	return nil
}

// Rule E7.
func TestTheLastPartsOfTwoStepsThatEndAtOnceAnnounceTheExecution(t *testing.T) {
	t.Parallel()
	testengine.EachDatabase(t, func(t *testing.T, db tx.Database) {
		h := &heard{}
		r := repository.New(db, repository.Options{Announcer: h})
		require.NoError(t, r.Migrate(t.Context()))
		me := core.Owner{Host: "here", PID: 1}
		launched, err := r.Launch(t.Context(), ports.LaunchRequest{JobName: "a", Owner: me, Lease: time.Hour})
		require.NoError(t, err)
		ref := ports.JobRef{ID: launched.Execution.ID, Owner: me, Epoch: launched.Execution.Epoch}
		_, err = r.ChangeJob(t.Context(), ref, ports.JobChange{To: core.StatusStarted})
		require.NoError(t, err)
		for _, name := range []string{"x", "y"} {
			manager, err := r.StartStep(t.Context(), ref, ports.StepStart{Name: name})
			require.NoError(t, err)
			_, err = r.PlanPartitions(t.Context(), ref, ports.PartitionPlan{
				Manager: ports.StepRef{ID: manager.ID, Owner: me, Epoch: manager.Epoch}, Step: name, Parts: []core.Partition{{Name: "p"}}, ForWorkers: true,
			})
			require.NoError(t, err)
		}
		require.Len(t, h.list, 2)
		_, err = r.Park(t.Context(), ref, ports.Parking{})
		require.NoError(t, err)
		require.Len(t, h.list, 2)

		first, ended := make(chan struct{}), make(chan error, 2)
		manager := tx.NewManager(db)
		for i, part := range h.list[:2] {
			a, err := r.AssignPartition(t.Context(), ports.AssignRequest{Owner: me, Lease: time.Hour, Part: part.Part, Epoch: part.Epoch})
			require.NoError(t, err)
			end := ports.StepRef{ID: a.Step.ID, Owner: me, Epoch: a.Step.Epoch}
			go func() {
				if i == 1 {
					<-first
				}
				ended <- manager.Do(t.Context(), tx.Attr{}, func(ctx context.Context) error {
					_, err := r.EndStep(ctx, end, ports.StepChange{To: core.StatusCompleted})
					if i == 0 {
						close(first)
						time.Sleep(100 * time.Millisecond) // the other one has to wait for the lock; without a lock it would have ended
					}
					return err
				})
			}()
		}
		require.NoError(t, <-ended)
		require.NoError(t, <-ended)
		require.Equal(t, []ports.Ready{{Execution: ref.ID, Epoch: ref.Epoch}}, h.list[2:])
	})
}
