package runtime_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/internal/testproxy"
	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/engine/local"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/repository/tasks"
	"github.com/surfin-batch/surfin/pkg/batch/step"
)

// Rule L9.
func TestAPartWhoseLeaseCannotBeRenewedIsGivenBack(t *testing.T) {
	t.Parallel()
	url := testdb.Postgres(t)
	line := testproxy.New(t, url)
	var attempts atomic.Int64
	var cause atomic.Value
	p := newWorkplace(t, url, 1, func(ctx context.Context, _ *core.StepContribution) error {
		if attempts.Add(1) > 1 {
			return nil
		}
		line.Cut()
		<-ctx.Done()
		cause.Store(context.Cause(ctx))
		line.Heal()
		return context.Cause(ctx)
	})
	p.config.Lease, p.config.Heartbeat = 6*time.Second, 300*time.Millisecond
	far := testengine.On(t, gormdb.Config{URL: line.URL(), IdleInTransaction: p.config.Lease})
	p.parts.Repository, p.parts.Engine = far.Repository.Ports(), deliverer(t, far)
	p.parts.Executor = func(transitions ports.Transitions) model.StepExecutor {
		return step.NewSimpleStepExecutor(transitions, far.Database.Name(), nil)
	}
	require.NoError(t, p.work())
	require.Equal(t, core.StatusCompleted, p.status())
	require.EqualValues(t, 2, attempts.Load())
	require.IsType(t, &model.LeaseError{}, cause.Load())
	require.Equal(t, 1, p.happened("released"))
	require.Zero(t, p.happened("lost"))
}

// Rule W3.
func TestATaskWhoseLeaseCannotBeRenewedIsAttemptedAgain(t *testing.T) {
	t.Parallel()
	url := testdb.Postgres(t)
	line := testproxy.New(t, url)
	o := newOffice(t, url, func(o *office, ctx context.Context, t task.Task) (task.Outcome, error) {
		if t.Attempts > 1 {
			return task.Success(), nil
		}
		line.Cut()
		<-ctx.Done()
		o.causes <- context.Cause(ctx)
		line.Heal()
		return task.Outcome{}, context.Cause(ctx)
	})
	_, far := testengine.Database(t, line.URL())
	repo, err := tasks.New(far, repository.DefaultPrefix, tasks.Options{})
	require.NoError(t, err)
	o.change = func(c *runtime.Config) {
		c.Lease, c.Heartbeat = 6*time.Second, 300*time.Millisecond
		c.Tasks.Executions, c.Tasks.Maintenance, c.Tasks.Database = repo, repo, far
		c.Tasks.Engine, err = local.New(local.Config{Database: far, Source: runtime.Waiting{Tasks: repo}, Scan: 20 * time.Millisecond})
		require.NoError(t, err)
	}
	stop := o.worker("a")
	a := o.one("1")
	require.Equal(t, task.GroupCompleted, o.over(a.Group).State)
	require.IsType(t, &model.LeaseError{}, <-o.causes)
	list := o.attempts(a.Tasks[0])
	require.Len(t, list, 2)
	require.Contains(t, list[0].Reason, "lease")
	require.NoError(t, stop())
	require.Equal(t, 1, o.happened("lost")+o.happened("ended")-1, "of the first attempt: it was recorded, or taken back")
}
