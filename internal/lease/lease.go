// Package lease keeps the lease of an execution, or of a part, by heartbeats. If they fail, it ends the work
// by its own clock (rule L9).
//
// It imports core, internal/boottime and internal/errorclass.
package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/internal/boottime"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Clock is the time that counts against a lease.
type Clock struct {
	// Rested is how long no other process could write to the repository's database; nil means that others
	// always can.
	Rested func() time.Duration
}

// Now returns the clock's time. Only differences mean something.
func (c Clock) Now() time.Duration {
	if c.Rested == nil {
		return boottime.Now()
	}
	return boottime.Now() - c.Rested()
}

// Config configures a Keeper.
type Config struct {
	Clock Clock
	// Lease is its duration, and Heartbeat the time between two heartbeats.
	Lease, Heartbeat time.Duration
	// Since is the clock's time before the statement that gave the lease was sent.
	Since time.Duration
	// Grace is how much longer than the lease no other process takes over, as promised to the last confirmed
	// heartbeat (rule L9a): work continues during it. nil means no grace.
	Grace func() time.Duration
	// Beat extends the lease. core.ErrLostOwner in the chain of its error means that another owner has it.
	Beat func(ctx context.Context) error
	// Failed is called with the failure of a heartbeat.
	Failed func(err error)
	// End ends the work, at most once: with a *model.LeaseError, or with Beat's error for a lost owner.
	End func(cause error)
}

// Keeper keeps one lease: a model.Lease.
type Keeper struct {
	config Config
	late   chan struct{}
	stop   context.CancelFunc
	wait   sync.WaitGroup

	mu        sync.Mutex
	confirmed time.Duration // before the last confirmed heartbeat was sent
	promised  time.Duration // Config.Grace, as that heartbeat was answered
	failure   error         // of the last heartbeat
	overdue   *model.LeaseError
	endedAt   time.Duration // when overdue was set
	flight    *flight
}

// flight is a heartbeat that is not answered.
type flight struct {
	sent   time.Duration
	cancel context.CancelCauseFunc
}

var _ model.Lease = (*Keeper)(nil)

// New returns the keeper of a lease. Its clock runs; Start begins the heartbeats.
func New(config Config) *Keeper {
	k := &Keeper{config: config, late: make(chan struct{}), stop: func() {}}
	k.promise(config.Since)
	return k
}

// grace is the last part of a lease, in which work ends that could not extend the lease.
func grace(lease time.Duration) time.Duration { return lease / 3 }

// margin is the last part of the grace: work that has not ended then is abandoned.
func margin(lease time.Duration) time.Duration { return min(time.Second, grace(lease)/2) }

// EndTime is the time limit for ending work that could not extend its lease.
func EndTime(lease time.Duration) time.Duration { return grace(lease) - margin(lease) }

func (k *Keeper) grace() time.Duration { return grace(k.config.Lease) }

// whole is the time after sending the last confirmed heartbeat in which no other process takes over. The
// caller has k.mu.
func (k *Keeper) whole() time.Duration { return k.config.Lease + k.promised }

// promise records the answer to a heartbeat that was sent then. The caller has k.mu, or is alone.
func (k *Keeper) promise(sent time.Duration) {
	k.confirmed = sent
	if k.config.Grace != nil {
		k.promised = k.config.Grace()
	}
}

func (k *Keeper) margin() time.Duration { return margin(k.config.Lease) }

const (
	// The clock is read that many times in a lease, within bounds.
	ticksPerLease    = 100
	minTick, maxTick = 10 * time.Millisecond, 250 * time.Millisecond
	// shortestTimeout bounds a heartbeat's timeout if heartbeats are frequent for their lease.
	shortestTimeout = time.Second
	// recordTime is how long a record is tried while heartbeats arrive.
	recordTime = 30 * time.Second
	// shortestTry is the minimum time for a try to record an end, even after the lease is over: the guard
	// decides about it.
	shortestTry        = 5 * time.Second
	minPause, maxPause = 20 * time.Millisecond, time.Second
)

// timeout is the timeout of a heartbeat: less than the time between two, so that one without an answer leaves
// time for others.
func (k *Keeper) timeout() time.Duration {
	return max(k.config.Heartbeat*3/4, min(k.config.Lease/6, shortestTimeout))
}

// Start begins the heartbeats. If obtaining the lease took long, the first is sent now.
func (k *Keeper) Start(ctx context.Context) {
	ctx, k.stop = context.WithCancel(context.WithoutCancel(ctx))
	if k.config.Clock.Now()-k.config.Since > k.config.Heartbeat {
		first, cancel := context.WithTimeout(ctx, k.timeout())
		lost := k.beat(first)
		cancel()
		if lost {
			return
		}
	}
	k.wait.Go(func() { k.heartbeats(ctx) })
	k.wait.Go(func() { k.watch(ctx) })
}

// Stop ends the heartbeats, so that Wait returns. Err and Record still read the clock.
func (k *Keeper) Stop() { k.stop() }

// Wait returns when the last heartbeat has returned.
func (k *Keeper) Wait() { k.wait.Wait() }

func (k *Keeper) heartbeats(ctx context.Context) {
	ticker := time.NewTicker(k.config.Heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if k.beat(ctx) {
			return
		}
	}
}

// beat sends a heartbeat; it reports whether there is nothing left to extend.
func (k *Keeper) beat(ctx context.Context) (over bool) {
	answer, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	sent := k.config.Clock.Now()
	k.mu.Lock()
	k.flight = &flight{sent, cancel}
	k.mu.Unlock()
	err := k.config.Beat(answer)
	if cause := context.Cause(answer); err != nil && cause != nil && !errors.Is(err, core.ErrLostOwner) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	k.mu.Lock()
	k.flight = nil
	if err == nil {
		k.promise(sent)
	}
	k.failure = err
	k.mu.Unlock()
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return true
	case errors.Is(err, core.ErrLostOwner):
		k.config.End(err)
		return true
	case err != nil:
		k.config.Failed(err)
	}
	return false
}

// watch polls the clock, on a goroutine that waits for nothing else.
func (k *Keeper) watch(ctx context.Context) {
	ticker := time.NewTicker(min(max(k.config.Lease/ticksPerLease, minTick), maxTick))
	defer ticker.Stop()
	ended := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		k.expire()
		if err := k.Err(); err != nil && !ended {
			ended = true
			k.config.End(err)
		}
		if ended && k.isLate() {
			close(k.late)
			return
		}
	}
}

func (k *Keeper) expire() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.flight != nil && k.config.Clock.Now()-k.flight.sent >= k.timeout() {
		k.flight.cancel(fmt.Errorf("no response in %v", k.timeout()))
	}
}

// isLate reports whether the lease is nearly over and the work had time to end: a process that was stopped
// finds the lease over when it wakes.
func (k *Keeper) isLate() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.config.Clock.Now()
	return now >= k.confirmed+k.whole()-k.margin() && now >= k.endedAt+k.margin()
}

// Err implements model.Lease.
func (k *Keeper) Err() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.config.Clock.Now()
	if age := now - k.confirmed; k.overdue == nil && age >= k.whole()-k.grace() {
		k.overdue, k.endedAt = &model.LeaseError{Age: age, Err: k.failure}, now
	}
	if k.overdue == nil {
		return nil
	}
	return k.overdue
}

// Late implements model.Lease.
func (k *Keeper) Late() <-chan struct{} { return k.late }

// Record implements model.Patience.
func (k *Keeper) Record(ctx context.Context, write func(ctx context.Context) error) error {
	began := k.config.Clock.Now()
	try := func(ctx context.Context) error { return k.try(ctx, write) }
	return rideOut(model.WithPatience(ctx, nil), try, func(err error) error {
		age, since, whole := k.ages(began)
		switch {
		case age >= whole:
			return fmt.Errorf("%w: %w (for %v, so its lease has expired: the next owner decides how it ended)", ports.ErrNoReply, err, age.Round(100*time.Millisecond))
		case since >= recordTime && age < whole-k.grace():
			return fmt.Errorf("%w: %w", ports.ErrNoReply, err) // heartbeats arrive: it is not that
		}
		return nil
	})
}

var errNoAnswer = errors.New("no answer")

// try calls write once. It ends early if heartbeats are not answered either: another connection may be.
func (k *Keeper) try(ctx context.Context, write func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	began := k.config.Clock.Now()
	var watching sync.WaitGroup
	watching.Go(func() {
		ticker := time.NewTicker(maxTick)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			age, since, _ := k.ages(began)
			if since >= recordTime || since >= shortestTry && age >= 2*k.config.Heartbeat {
				cancel(errNoAnswer)
			}
		}
	})
	err := write(ctx)
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, errNoAnswer) && !errors.Is(err, core.ErrLostOwner) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	cancel(nil)
	watching.Wait()
	return err
}

// ages returns the times since the last confirmed heartbeat was sent, and since began, and the age at which
// others take over.
func (k *Keeper) ages(began time.Duration) (confirmed, since, whole time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.config.Clock.Now()
	return now - k.confirmed, now - began, k.whole()
}
