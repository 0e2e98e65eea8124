package runtime_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/internal/testproxy"
	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/step"
)

// A worker that cannot renew the lease of its part ends the work by its own clock, and gives
// the part back when the database is there again (rule L9).
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
	p.parts.Repository = far.Repository
	p.parts.Executor = func(transitions core.Transitions) core.StepExecutor {
		return step.NewSimpleStepExecutor(transitions, far.Database.Name(), nil)
	}
	require.NoError(t, p.work())
	require.Equal(t, core.StatusCompleted, p.status())
	require.EqualValues(t, 2, attempts.Load())
	require.IsType(t, &core.LeaseError{}, cause.Load())
	require.Equal(t, 1, p.happened("released"))
	require.Zero(t, p.happened("lost"))
}
