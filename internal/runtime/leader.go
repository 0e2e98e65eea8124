package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/surfin-batch/surfin/internal/boottime"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Duty is work that one process does for all of them.
type Duty struct {
	Name string
	// Every: 0 means each heartbeat of the leader.
	Every time.Duration
	// Do does bounded work, and reports whether there is more. In its
	// transaction no other process can take over; it must not use another one.
	Do func(ctx context.Context) (more bool, err error)
	// Led replaces Do for a duty that writes the leader's epoch.
	Led func(ctx context.Context, epoch int64) (more bool, err error)
	// Hurry reports whether the next call should come soon; may be nil.
	Hurry func() bool
}

// LeaderConfig configures a Leader.
type LeaderConfig struct {
	Leadership taskports.Leadership
	Database   tx.Database
	// Holder is unique.
	Holder string
	// They default to DefaultLease and DefaultHeartbeat.
	Lease, Heartbeat time.Duration
	Duties           []Duty
	// Deciders of this process.
	Deciders []string
	// Tend is called at each heartbeat while it leads, in the background; may be nil.
	Tend func(ctx context.Context)
	// Report may be nil.
	Report func(err error)
}

// Leader lets one of many processes do work for all of them.
type Leader struct {
	config  LeaderConfig
	manager *tx.Manager
	next    []time.Duration // when each duty is called next, on the clock of this process
	// until is the end of the other leader's lease when it was read, and renewed when that last moved, on this clock.
	until, renewed time.Duration
	follows        atomic.Bool
	tending        sync.WaitGroup
}

// NewLeader checks the configuration and fills in the defaults.
func NewLeader(config LeaderConfig) (*Leader, error) {
	if config.Leadership == nil || config.Database == nil || config.Holder == "" {
		return nil, errors.New("a leader needs a repository, its database and a name")
	}
	if config.Lease == 0 {
		config.Lease = DefaultLease
	}
	if config.Heartbeat == 0 {
		config.Heartbeat = min(DefaultHeartbeat, config.Lease/4)
	}
	if config.Heartbeat < 0 || config.Lease < 2*config.Heartbeat {
		return nil, fmt.Errorf("lease %v and heartbeat %v: the lease must be at least twice the heartbeat", config.Lease, config.Heartbeat)
	}
	if config.Report == nil {
		config.Report = func(error) {}
	}
	return &Leader{config: config, manager: tx.NewManager(config.Database), next: make([]time.Duration, len(config.Duties))}, nil
}

// longestTick: due work, such as a scheduled run, is not a heartbeat late.
const longestTick = time.Second

const shortTick = 100 * time.Millisecond

func (l *Leader) tick(leads bool) time.Duration {
	for _, d := range l.config.Duties {
		if leads && d.Hurry != nil && d.Hurry() {
			return min(l.config.Heartbeat, shortTick)
		}
	}
	return min(l.config.Heartbeat, longestTick)
}

// Run requests the lead at least each second, and does the duties while it
// leads, until stop or ctx ends. Then it resigns.
func (l *Leader) Run(ctx context.Context, stop <-chan struct{}) {
	epoch := int64(0)
	defer l.tending.Wait()
	defer func() {
		if epoch != 0 {
			l.resign(ctx, epoch)
		}
	}()
	for {
		begin := time.Now()
		epoch = l.beat(ctx, stop, epoch != 0)
		timer := time.NewTimer(l.tick(epoch != 0) - time.Since(begin))
		select {
		case <-stop:
			timer.Stop()
			return
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

func (l *Leader) beat(ctx context.Context, stop <-chan struct{}, led bool) int64 {
	since := boottime.Now()
	epoch, leads, err := l.lead(ctx, led)
	if err != nil && ctx.Err() == nil {
		l.config.Report(err)
	}
	if err != nil || !leads {
		return 0
	}
	if l.config.Tend != nil {
		l.tending.Go(func() { l.config.Tend(ctx) })
	}
	for i, duty := range l.config.Duties {
		for more := boottime.Now() >= l.next[i]; more && l.leads(ctx, stop, since); {
			more, err = l.do(ctx, duty, epoch)
			if err != nil && ctx.Err() == nil {
				l.config.Report(fmt.Errorf("%s: %w", duty.Name, err))
			}
			if errors.Is(err, core.ErrLostOwner) {
				return 0
			}
			more = more && err == nil
			l.next[i] = boottime.Now() + duty.Every
		}
	}
	return epoch
}

// lead only reads while another process leads: its lease needs no write to be seen.
func (l *Leader) lead(ctx context.Context, led bool) (epoch int64, leads bool, err error) {
	if !led {
		other, err := l.config.Leadership.Leader(ctx)
		if err != nil {
			l.follows.Store(false)
			return 0, false, err
		}
		if other != nil && other.Leading && other.Holder != l.config.Holder {
			l.follow(other)
			return 0, false, nil
		}
	}
	l.follows.Store(false)
	return l.config.Leadership.Lead(ctx, l.config.Holder, l.config.Lease)
}

// follow watches whether the other leader renews its lease, of whatever length: it does so each second.
func (l *Leader) follow(other *taskports.Leader) {
	now, tick := boottime.Now(), l.tick(false)
	until := now + time.Duration(other.LeaseLeft*float64(time.Second))
	if (until - l.until).Abs() > tick/2 { // or it is another one, with a shorter lease
		l.until, l.renewed = until, now
	}
	lacks := func(decider string) bool { return !slices.Contains(other.Deciders, decider) }
	l.follows.Store(now-l.renewed <= 3*tick/2 && !slices.ContainsFunc(l.config.Deciders, lacks))
}

// Follows reports whether another process leads, was seen to renew its lease in the last seconds, and has all deciders of
// this one: it does the common work on tasks.
func (l *Leader) Follows() bool { return l.follows.Load() }

func (l *Leader) leads(ctx context.Context, stop <-chan struct{}, since time.Duration) bool {
	select {
	case <-stop:
		return false
	case <-ctx.Done():
		return false
	default:
		return boottime.Now()-since < l.config.Lease/2
	}
}

// do uses one transaction with the fence.
func (l *Leader) do(ctx context.Context, duty Duty, epoch int64) (more bool, err error) {
	err = l.manager.Do(ctx, tx.Attr{}, func(ctx context.Context) (err error) {
		if err := l.config.Leadership.Fence(ctx, l.config.Holder, epoch); err != nil {
			return err
		}
		if duty.Led != nil {
			more, err = duty.Led(ctx, epoch)
			return err
		}
		more, err = duty.Do(ctx)
		return err
	})
	return more && err == nil, err
}

const resignTime = 5 * time.Second

func (l *Leader) resign(ctx context.Context, epoch int64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resignTime)
	defer cancel()
	if err := l.config.Leadership.Resign(ctx, l.config.Holder, epoch); err != nil {
		l.config.Report(err)
	}
}
