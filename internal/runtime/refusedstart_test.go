package runtime_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/internal/runtime/engine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
)

type oneDelivery struct {
	engine.Engine
	delivery engine.Delivery
	answer   chan engine.Answer
}

func (e *oneDelivery) Run(ctx context.Context, stop <-chan struct{}, _ engine.Subscription, h engine.Handler) error {
	e.answer <- h(ctx, e.delivery)
	<-stop
	return nil
}

// Rule L13.
func TestAWorkerDropsTheDeliveryOfATaskThatMayNotStart(t *testing.T) {
	eachOffice(t, func(o *office) {
		executions := repository.New(o.db, repository.Options{})
		owner := core.Owner{Host: "h", PID: 1}
		launched, err := executions.Launch(o.Context(), ports.LaunchRequest{JobName: "waits", Owner: owner, Lease: time.Hour})
		require.NoError(o, err)
		ref := ports.JobRef{ID: launched.Execution.ID, Owner: owner, Epoch: launched.Execution.Epoch}
		_, err = executions.ChangeJob(o.Context(), ref, ports.JobChange{To: core.StatusStarted})
		require.NoError(o, err)
		step, err := executions.StartStep(o.Context(), ref, ports.StepStart{Name: "work"})
		require.NoError(o, err)
		on := &core.Placement{Labels: map[string]string{"disk": "eu1"}}
		done, _, err := o.repo.Submit(o.Context(), task.Submission{Step: step.ID, Tasks: []task.Spec{{Type: "work", On: on}}})
		require.NoError(o, err)
		leader, _, err := o.repo.Lead(o.Context(), "leader", time.Hour)
		require.NoError(o, err)
		id := int64(done.Tasks[0])
		epoch, err := o.repo.AssignPlaced(o.Context(), ports.Placed{Kind: ports.PlacedTask, ID: id, Epoch: 1}, "a", leader)
		require.NoError(o, err)
		require.NotZero(o, epoch)
		_, err = executions.RequestStop(o.Context(), ref.ID, ports.By{Actor: "test"})
		require.NoError(o, err)

		e := &oneDelivery{o.engine(), engine.Delivery{Kind: engine.Task, ID: id, Epoch: epoch, Queue: runtime.QueueOf("a")}, make(chan engine.Answer, 1)}
		o.change = func(c *runtime.Config) { c.Tasks.Engine = e }
		stop := o.worker("a")
		answer := <-e.answer
		require.True(o, answer.IsDrop(), answer.String())
		require.NoError(o, stop())
		got := o.task(task.ID(id))
		require.Equal(o, task.Assigned, got.State)
		require.Zero(o, got.Attempts)
		require.Empty(o, o.attempts(got.ID))
		require.Zero(o, o.happened("failed"))
	}, func(o *office, _ context.Context, _ task.Task) (task.Outcome, error) {
		o.Error("it has begun")
		return task.Success(), nil
	})
}
