package runtime

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/boottime"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Duty is work that one process does for all of them.
type Duty struct {
	Name string
	// Every is the time between two calls; 0 means each heartbeat of the leader.
	Every time.Duration
	// Do does a bounded amount of work, and reports whether there is more to do now. It is called
	// in a transaction during which no other process can take over, and must not use another one.
	Do func(ctx context.Context) (more bool, err error)
	// Led replaces Do for a duty that writes the leader's epoch; nil means that Do is called.
	Led func(ctx context.Context, epoch int64) (more bool, err error)
	// Hurry reports after a call whether the next one should come soon; nil means never.
	Hurry func() bool
}

// LeaderConfig configures a Leader.
type LeaderConfig struct {
	Leadership taskports.Leadership
	// Database is the database that records the leader, and that duties write in.
	Database tx.Database
	// Holder is the unique name of this process.
	Holder string
	// Lease and Heartbeat default to DefaultLease and DefaultHeartbeat.
	Lease, Heartbeat time.Duration
	Duties           []Duty
	// Report receives errors; may be nil.
	Report func(err error)
}

// Leader lets one of many processes do the work that is done once for all of them.
type Leader struct {
	config  LeaderConfig
	manager *tx.Manager
	next    []time.Duration // when each duty is called next, on the clock of this process
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

// longestTick is the maximum time between two ticks of a leader, so that due work, such as a
// scheduled run, is not a heartbeat late.
const longestTick = time.Second

// shortTick is the time until the next tick if a duty wants it soon.
const shortTick = 100 * time.Millisecond

func (l *Leader) tick(leads bool) time.Duration {
	for _, d := range l.config.Duties {
		if leads && d.Hurry != nil && d.Hurry() {
			return min(l.config.Heartbeat, shortTick)
		}
	}
	return min(l.config.Heartbeat, longestTick)
}

// Run requests the lead with each heartbeat, at least each second, and does the duties while it
// leads, until stop is closed or ctx ends. Then it resigns.
func (l *Leader) Run(ctx context.Context, stop <-chan struct{}) {
	epoch := int64(0)
	defer func() {
		if epoch != 0 {
			l.resign(ctx, epoch)
		}
	}()
	for {
		begin := time.Now()
		epoch = l.beat(ctx, stop)
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

// beat requests the lead, does the due duties, and returns the epoch in which it leads, or 0.
func (l *Leader) beat(ctx context.Context, stop <-chan struct{}) int64 {
	since := boottime.Now()
	epoch, leads, err := l.config.Leadership.Lead(ctx, l.config.Holder, l.config.Lease)
	if err != nil && ctx.Err() == nil {
		l.config.Report(err)
	}
	if err != nil || !leads {
		return 0
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

// leads reports whether there is time to do more before the next heartbeat.
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

// do does a duty in one transaction with the fence.
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
