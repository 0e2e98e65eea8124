package job

import (
	"context"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/internal/lease"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// newLease returns the keeper of the execution's lease. since is the clock's time before the execution
// was requested.
func (r *run) newLease(since time.Duration) *lease.Keeper {
	return lease.New(lease.Config{
		Clock: r.launcher.clock(), Lease: r.config.Lease, Heartbeat: r.config.Heartbeat, Since: since, End: func(cause error) { r.lost(cause) },
		Beat: func(ctx context.Context) error {
			stop, err := r.beat(ctx)
			if stop {
				r.askStop()
			}
			return err
		},
		Failed: func(err error) {
			r.config.Observer.Observe(context.Background(), core.HeartbeatFailed{Execution: r.exec.ID, Err: err})
		},
	})
}

func (r *run) beat(ctx context.Context) (stop bool, err error) {
	if r.part != nil {
		return r.config.Repository.HeartbeatStep(ctx, r.partRef(), r.config.Lease)
	}
	return r.config.Repository.Heartbeat(ctx, r.ref, r.config.Lease)
}

// stopSignal combines the two sources of a stop request: the caller's channel and the flag in the
// database.
type stopSignal struct {
	once    sync.Once
	channel chan struct{}
	asked   <-chan struct{} // the caller's; may be nil
	// release requests to give the execution back; may be nil. either is closed for both.
	release <-chan struct{}
	either  chan struct{}
}

func newStopSignal(asked <-chan struct{}) *stopSignal {
	return &stopSignal{channel: make(chan struct{}), either: make(chan struct{}), asked: asked}
}

func (s *stopSignal) request() (first bool) {
	s.once.Do(func() {
		close(s.channel)
		first = true
	})
	return first
}

func (s *stopSignal) requested() bool {
	select {
	case <-s.channel:
		return true
	case <-s.asked:
		return true
	default:
		return false
	}
}

func (s *stopSignal) isReleased() bool {
	select {
	case <-s.release:
		return true
	default:
		return false
	}
}

// stepRelease is the stop signal of a step that can be given back.
type stepRelease struct{ stepStop }

// Requested implements model.StopSignal.
func (s stepRelease) Requested() bool { return s.run.stop.requested() || s.run.stop.isReleased() }

// Done implements model.StopSignal.
func (s stepRelease) Done() <-chan struct{} { return s.run.stop.either }

// Releasing implements model.ReleaseSignal.
func (s stepRelease) Releasing() bool { return s.run.releasing() }

// stepLeave is the stop signal of a step made of other steps that can be given back while it waits.
type stepLeave struct{ stepStop }

// Left implements model.LeaveSignal.
func (s stepLeave) Left() <-chan struct{} { return s.run.stop.release }

// finallyRelease is the stop signal of a step of `finally` that can be given back: a stop request does
// not count.
type finallyRelease struct{ run *run }

// Requested implements model.StopSignal.
func (s finallyRelease) Requested() bool { return s.run.stop.isReleased() }

// Done implements model.StopSignal.
func (s finallyRelease) Done() <-chan struct{} { return s.run.stop.release }

// Request implements model.StopSignal.
func (s finallyRelease) Request() {}

// Releasing implements model.ReleaseSignal.
func (s finallyRelease) Releasing() bool { return s.run.stop.isReleased() }

// finallyLeave is finallyRelease for a step made of other steps.
type finallyLeave struct {
	model.StopSignal // never signals a stop
	run              *run
}

// Left implements model.LeaveSignal.
func (s finallyLeave) Left() <-chan struct{} { return s.run.stop.release }

// stepStop is the stop signal of the run's steps.
type stepStop struct{ run *run }

// Requested implements model.StopSignal.
func (s stepStop) Requested() bool { return s.run.stop.requested() }

// Done implements model.StopSignal.
func (s stepStop) Done() <-chan struct{} { return s.run.stop.channel }

// Request implements model.StopSignal.
func (s stepStop) Request() { s.run.askStop() }

// relay passes the caller's request on until ctx ends; the returned channel is
// closed when it has stopped.
func (r *run) relay(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-r.stop.asked:
			r.askStop()
		case <-r.stop.channel:
		case <-r.stop.release:
		case <-ctx.Done():
			return
		}
		close(r.stop.either)
		select {
		case <-r.stop.asked:
			r.askStop()
		case <-ctx.Done():
		}
	}()
	return done
}
