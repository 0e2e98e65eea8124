package runtime

import (
	"context"
	"sync"
)

// place is one of the slots of a worker, which an execution has: a core.Slot. Branches of one
// execution share it: while one of them has left, and others work, there is one execution
// more at work than there are slots.
type place struct {
	slots chan struct{}
	left  chan struct{} // closed when it was given back before the end

	mu    sync.Mutex
	held  bool
	ended bool
	once  sync.Once
}

// newPlace is that of a slot which was taken.
func newPlace(slots chan struct{}) *place {
	return &place{slots: slots, left: make(chan struct{}), held: true}
}

// Leave implements core.Slot.
func (p *place) Leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held {
		p.held = false
		<-p.slots
		p.once.Do(func() { close(p.left) })
	}
}

// Return implements core.Slot.
func (p *place) Return(ctx context.Context) error {
	if !p.wants() {
		return nil
	}
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held || p.ended { // another branch has returned
		<-p.slots
		return nil
	}
	p.held = true
	return nil
}

func (p *place) wants() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.held && !p.ended
}

// end gives the slot back when the execution is over.
func (p *place) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	if p.held {
		p.held = false
		<-p.slots
	}
}
