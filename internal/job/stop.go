package job

import (
	"sync"

	"github.com/surfin-batch/surfin/internal/model"
)

// The caller's channel and the flag in the database.
type stopSignal struct {
	once      sync.Once
	requested chan struct{}   // closed by request
	caller    <-chan struct{} // closed by the caller; may be nil
	// release requests to give the execution back; may be nil. either is closed
	// for both.
	release <-chan struct{}
	either  chan struct{}
}

func newStopSignal(caller <-chan struct{}) *stopSignal {
	return &stopSignal{requested: make(chan struct{}), either: make(chan struct{}), caller: caller}
}

func (s *stopSignal) request() (first bool) {
	s.once.Do(func() {
		close(s.requested)
		first = true
	})
	return first
}

func (s *stopSignal) isRequested() bool {
	select {
	case <-s.requested:
		return true
	case <-s.caller:
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

type stepRelease struct{ stepStop }

func (s stepRelease) Requested() bool { return s.run.stop.isRequested() || s.run.stop.isReleased() }

func (s stepRelease) Done() <-chan struct{} { return s.run.stop.either }

func (s stepRelease) Releasing() bool { return s.run.releasing() }

// leave: composite steps are given back while they wait.
type leave struct {
	model.StopSignal
	left <-chan struct{}
}

func (s leave) Left() <-chan struct{} { return s.left }

// A stop request does not count.
type finallyRelease struct{ run *run }

func (s finallyRelease) Requested() bool { return s.run.stop.isReleased() }

func (s finallyRelease) Done() <-chan struct{} { return s.run.stop.release }

func (s finallyRelease) Request() {}

func (s finallyRelease) Releasing() bool { return s.run.stop.isReleased() }

type stepStop struct{ run *run }

func (s stepStop) Requested() bool { return s.run.stop.isRequested() }

func (s stepStop) Done() <-chan struct{} { return s.run.stop.requested }

func (s stepStop) Request() { s.run.askStop() }

func (r *run) releasing() bool { return r.stop.isReleased() && !r.stop.isRequested() }

func (r *run) isResumed() bool { return r.resumed != nil && !r.resumed.First }
