package lease_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/lease"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
)

func TestAPatientCallIsRepeatedWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := model.WithPatience(t.Context(), lease.Bounded(time.Minute))
		calls := 0
		require.NoError(t, model.Patiently(ctx, func(ctx context.Context) error {
			require.False(t, model.HasPatience(ctx), "calls within the call do not multiply its tries")
			if calls++; calls < 5 {
				return fmt.Errorf("read: %w", syscall.ECONNREFUSED)
			}
			return nil
		}))
		require.Equal(t, 5, calls)

		refused := errors.New("no such table")
		require.Equal(t, refused, model.Patiently(ctx, func(context.Context) error { return refused }), "that is an answer")

		calls = 0
		away := func(context.Context) error { calls++; return syscall.ECONNREFUSED }
		require.Equal(t, syscall.ECONNREFUSED, model.Patiently(t.Context(), away), "without patience")
		require.Equal(t, 1, calls)

		ended, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		err := model.Patiently(ended, away)
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.ErrorIs(t, err, ports.ErrNoReply)
	})
}

func TestAPatienceEnds(t *testing.T) {
	t.Parallel()
	began := time.Now()
	err := lease.Bounded(50*time.Millisecond).Record(t.Context(), func(context.Context) error { return syscall.ECONNREFUSED })
	require.ErrorIs(t, err, ports.ErrNoReply)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.GreaterOrEqual(t, time.Since(began), 50*time.Millisecond)
}
