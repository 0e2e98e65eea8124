package job

import (
	"sync"
)

// stopSignal combines the two sources of a stop request: the caller's channel and the flag in the
// database.
type stopSignal struct {
	once      sync.Once
	requested chan struct{}   // closed by request
	caller    <-chan struct{} // closed by the caller; may be nil
	// release requests to give the execution back; may be nil. either is closed for both.
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
