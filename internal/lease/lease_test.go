package lease_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/boottime"
	"github.com/surfin-batch/surfin/internal/lease"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

var (
	errAway  = &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	errOther = errors.New("no such table")
)

type bed struct {
	*lease.Keeper
	ended  chan error
	failed atomic.Int64
}

func start(t *testing.T, c lease.Config) *bed {
	t.Helper()
	b := &bed{ended: make(chan error, 2)}
	if c.Since == 0 {
		c.Since = c.Clock.Now()
	}
	c.End = func(cause error) { b.ended <- cause }
	c.Failed = func(error) { b.failed.Add(1) }
	b.Keeper = lease.New(c)
	b.Start(t.Context())
	t.Cleanup(func() {
		b.Stop()
		b.Wait()
	})
	return b
}

func (b *bed) isLate() bool {
	select {
	case <-b.Late():
		return true
	default:
		return false
	}
}

func TestWorkEndsWhereHeartbeatsFailAndIsLeftBehindLater(t *testing.T) {
	t.Parallel()
	b := start(t, lease.Config{Lease: 600 * time.Millisecond, Heartbeat: 50 * time.Millisecond, Beat: func(context.Context) error { return errAway }})
	require.NoError(t, b.Err())
	cause := <-b.ended
	require.False(t, b.isLate())
	var overdue *model.LeaseError
	require.ErrorAs(t, cause, &overdue)
	require.GreaterOrEqual(t, overdue.Age, 400*time.Millisecond)
	require.ErrorIs(t, overdue.Err, errAway)
	require.ErrorContains(t, cause, "the lease could not be renewed for 400ms: dial: connection refused")
	require.Equal(t, cause, b.Err())
	<-b.Late()
	require.Positive(t, b.failed.Load())
	require.Empty(t, b.ended, "it ends once")
}

func TestAHeartbeatThatIsNotAnsweredIsFollowedByOthers(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	b := start(t, lease.Config{Lease: 2 * time.Second, Heartbeat: 200 * time.Millisecond, Beat: func(ctx context.Context) error {
		if sent.Add(1) > 2 {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}})
	require.Eventually(t, func() bool { return sent.Load() > 12 }, 20*time.Second, time.Millisecond)
	require.NoError(t, b.Err())
	require.EqualValues(t, 2, b.failed.Load())
}

func TestALostOwnerEndsTheWorkAtOnce(t *testing.T) {
	t.Parallel()
	b := start(t, lease.Config{Lease: time.Minute, Heartbeat: time.Millisecond, Beat: func(context.Context) error { return fmt.Errorf("beat: %w", core.ErrLostOwner) }})
	require.ErrorIs(t, <-b.ended, core.ErrLostOwner)
	require.NoError(t, b.Err(), "its clock has nothing to say")
}

func TestWorkThatWakesAfterItsLeaseHasTimeToEnd(t *testing.T) {
	t.Parallel()
	b := start(t, lease.Config{
		Lease: 3 * time.Second, Heartbeat: 300 * time.Millisecond, Since: boottime.Now() - time.Minute,
		Beat: func(context.Context) error { return errAway },
	})
	require.ErrorAs(t, <-b.ended, new(*model.LeaseError))
	require.False(t, b.isLate())
	<-b.Late()
}

// A launch may wait for longer than a lease: the first heartbeat is sent
// before the work.
func TestALeaseThatWasLongInComingIsRenewedFirst(t *testing.T) {
	t.Parallel()
	b := start(t, lease.Config{
		Lease: 3 * time.Second, Heartbeat: 300 * time.Millisecond, Since: boottime.Now() - time.Minute,
		Beat: func(context.Context) error { return nil },
	})
	require.NoError(t, b.Err())
}

func TestTheClockRests(t *testing.T) {
	t.Parallel()
	var rested atomic.Int64
	began := boottime.Now()
	clock := lease.Clock{Rested: func() time.Duration {
		if rested.Load() == 0 {
			return boottime.Now() - began
		}
		return time.Duration(rested.Load())
	}}
	b := start(t, lease.Config{Clock: clock, Lease: 300 * time.Millisecond, Heartbeat: 20 * time.Millisecond, Beat: func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}})
	time.Sleep(700 * time.Millisecond)
	require.NoError(t, b.Err())
	require.Zero(t, b.failed.Load())
	rested.Store(int64(boottime.Now() - began))
	require.ErrorAs(t, <-b.ended, new(*model.LeaseError))
}

func TestAnEndIsRecordedAsLongAsTheLeaseLasts(t *testing.T) {
	t.Parallel()
	healthy := func(context.Context) error { return nil }
	away := func(context.Context) error { return errAway }
	for name, c := range map[string]struct {
		beat  func(context.Context) error
		write func(n int) error
		want  string
		tries int
	}{
		"at once":                 {healthy, func(int) error { return nil }, "", 1},
		"when it is back":         {away, func(n int) error { return map[bool]error{true: errAway}[n < 4] }, "", 4},
		"not after a refusal":     {away, func(int) error { return errOther }, "no such table", 1},
		"not for a lost owner":    {away, func(int) error { return core.ErrLostOwner }, core.ErrLostOwner.Error(), 1},
		"until the lease is over": {away, func(int) error { return errAway }, "so its lease has expired: the next owner decides how it ended", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := start(t, lease.Config{Lease: time.Second, Heartbeat: 100 * time.Millisecond, Beat: c.beat})
			n := 0
			err := b.Record(t.Context(), func(context.Context) error { n++; return c.write(n) })
			if c.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.want)
			}
			if c.tries > 0 {
				require.Equal(t, c.tries, n)
			}
		})
	}
}
