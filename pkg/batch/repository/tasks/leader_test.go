package tasks_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestOneProcessLeadsAndATakeOverFencesTheOneBefore(t *testing.T) {
	each(t, func(s *scene) {
		none, err := s.Leader(s.Context())
		require.NoError(s, err)
		require.Nil(s, none)
		fenced := func(holder string, epoch int64) error {
			return tx.NewManager(s.db).Do(s.Context(), tx.Attr{}, func(ctx context.Context) error { return s.Fence(ctx, holder, epoch) })
		}
		lead := func(holder string, lease time.Duration) (int64, bool) {
			epoch, leads, err := s.Lead(s.Context(), holder, lease)
			require.NoError(s, err)
			return epoch, leads
		}
		epoch, leads := lead("a", time.Hour)
		require.True(s, leads)
		require.EqualValues(s, 1, epoch)
		_, leads = lead("b", time.Hour)
		require.False(s, leads)
		epoch, leads = lead("a", time.Millisecond) // it renews
		require.True(s, leads)
		require.EqualValues(s, 1, epoch)
		require.NoError(s, fenced("a", 1))
		require.ErrorContains(s, s.Fence(s.Context(), "a", 1), "only in a transaction")

		require.Eventually(s, func() bool { epoch, leads = lead("b", time.Hour); return leads }, 10*time.Second, time.Millisecond)
		require.EqualValues(s, 2, epoch)
		require.ErrorIs(s, fenced("a", 1), core.ErrLostOwner, "a was paused, and wakes")
		_, leads = lead("a", time.Hour)
		require.False(s, leads)
		require.NoError(s, s.Resign(s.Context(), "a", 1))
		l, err := s.Leader(s.Context())
		require.NoError(s, err)
		require.InDelta(s, time.Hour.Seconds(), l.LeaseLeft, 60)
		require.WithinDuration(s, time.Now(), l.Since, time.Minute)
		require.Equal(s, &taskports.Leader{Holder: "b", Epoch: 2, Leading: true, LeaseLeft: l.LeaseLeft, Since: l.Since}, l)
		lead("b", time.Hour)
		renewed, err := s.Leader(s.Context())
		require.NoError(s, err)
		require.Equal(s, l.Since, renewed.Since)
		require.NoError(s, s.Resign(s.Context(), "b", 2))
		epoch, leads = lead("a", time.Hour)
		require.True(s, leads)
		require.EqualValues(s, 3, epoch)
	})
}

func TestOneOfManyTakesTheLead(t *testing.T) {
	each(t, func(s *scene) {
		var wg sync.WaitGroup
		var mu sync.Mutex
		leaders := 0
		for i := range 8 {
			wg.Go(func() {
				_, leads, err := s.Lead(context.WithoutCancel(s.Context()), fmt.Sprint(i), time.Hour)
				mu.Lock()
				defer mu.Unlock()
				if leads {
					leaders++
				}
				if err != nil {
					s.Error(err)
				}
			})
		}
		wg.Wait()
		require.Equal(s, 1, leaders)
	})
}

func TestATakeOverWaitsForATransactionOfTheLeader(t *testing.T) {
	each(t, func(s *scene) {
		if s.db.Dialect() == tx.SQLite {
			s.Skip("SQLite has one writer")
		}
		_, _, err := s.Lead(s.Context(), "a", time.Millisecond)
		require.NoError(s, err)
		taken := make(chan error, 1)
		err = tx.NewManager(s.db).Do(s.Context(), tx.Attr{}, func(ctx context.Context) error {
			if err := s.Fence(ctx, "a", 1); err != nil {
				return err
			}
			go func() {
				var err error
				for leads := false; err == nil && !leads; {
					_, leads, err = s.Lead(context.WithoutCancel(s.Context()), "b", time.Hour)
				}
				taken <- err
			}()
			select {
			case err := <-taken:
				return errors.Join(errors.New("b took over while a was writing"), err)
			case <-time.After(200 * time.Millisecond):
				return nil
			}
		})
		require.NoError(s, err)
		require.NoError(s, <-taken)
	})
}
