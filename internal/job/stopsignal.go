package job

import (
	"sync"
)

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
