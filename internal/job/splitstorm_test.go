package job_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// The number of takes is bounded, since a worker that takes a part faster than
// a step commits lets none end.
func TestWorkersTakeBranchesFromEachOther(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		const branches, steps, thefts = 4, 4, 100
		b := newBranching(t, url)
		split := &model.SplitElement{Name: "both", OnWorkers: true}
		for i := range branches {
			var flow model.Flow
			for k := range steps {
				name := fmt.Sprintf("s%d_%d", i, k)
				b.do[name] = func(_ context.Context, c *core.StepContribution) error { return c.Context.Put("key", name) }
				flow.Elements = append(flow.Elements, b.step(name, to(fmt.Sprintf("s%d_%d", i, k+1))))
			}
			flow.Elements[steps-1].(*model.StepElement).Next = nil
			split.Branches = append(split.Branches, flow)
		}
		j := testengine.Job("storm")
		j.Flow.Elements = []model.Element{split}
		r := b.launch(t, j)
		<-b.parked
		var taken atomic.Int32
		dead := func(core.Owner) bool { return rand.IntN(2) == 0 && taken.Add(1) <= thefts }
		var workers sync.WaitGroup
		for w := range branches {
			workers.Go(func() {
				for pid := 1000 * w; !r.isOver(5 * time.Millisecond); pid++ {
					b.storm(t, j, worker(pid), dead)
				}
			})
		}
		exec := r.wait(t)
		workers.Wait()
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		stored, err := b.e.Repository.Execution(t.Context(), exec.ID)
		require.NoError(t, err)
		require.Len(t, stored.Context.Keys(), branches*steps)
		require.Equal(t, []int64{branches * steps}, b.e.Ints("select count(*) from done"))
		require.Equal(t, []int64{branches * steps}, b.e.Ints("select count(distinct name) from done"))
	})
}

func (r *running) isOver(d time.Duration) bool {
	select {
	case <-r.done:
		return true
	case <-time.After(d):
		return false
	}
}

func (b *branching) storm(t *testing.T, j *model.Job, owner core.Owner, dead func(core.Owner) bool) {
	t.Helper()
	a, err := b.e.Repository.AssignPartition(t.Context(), ports.AssignRequest{
		Owner: owner, Lease: time.Minute, MaxAttempts: 1000, Dead: dead,
	})
	if err != nil || a == nil {
		require.NoError(t, err)
		return
	}
	release := make(chan struct{})
	if rand.IntN(3) == 0 {
		timer := time.AfterFunc(time.Duration(rand.IntN(50))*time.Millisecond, func() { close(release) })
		defer timer.Stop()
	}
	if _, err = b.walk(t.Context(), j, a, release); err != nil && !errors.Is(err, core.ErrLostOwner) {
		t.Error(err)
	}
}
