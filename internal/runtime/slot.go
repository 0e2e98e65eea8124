package runtime

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/internal/runtime/engine"
)

// heldSlot is a core.Slot: the execution holds it once, while at least one of
// its goroutines works.
type heldSlot struct {
	slots chan struct{}
	left  chan struct{} // closed when it is given back before the end
	once  sync.Once

	mu sync.Mutex
	// live do not wait for branches of their own; outside wait without the
	// slot.
	live, outside int
	held          bool
	ended         bool
	taking        chan struct{} // closed when the goroutine that waits for a slot is done; nil if there is none
}

func newHeldSlot(slots chan struct{}) *heldSlot {
	return &heldSlot{slots: slots, left: make(chan struct{}), held: true, live: 1}
}

func (p *heldSlot) Leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.outside++
	p.settle()
}

func (p *heldSlot) Return(ctx context.Context) error {
	p.mu.Lock()
	p.outside--
	p.mu.Unlock()
	return p.take(ctx)
}

// Fork implements core.Slot: the first running branch stands for the waiting
// goroutine.
func (p *heldSlot) Fork() (begin func(ctx context.Context), end func()) {
	running := 0
	begin = func(ctx context.Context) {
		p.mu.Lock()
		if running > 0 {
			p.live++
		}
		running++
		p.mu.Unlock()
		_ = p.take(ctx) //nolint:errcheck // ctx has ended: the branch sees that itself
	}
	end = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		running--
		if running > 0 {
			p.live--
		}
		p.settle()
	}
	return begin, end
}

// The caller holds p.mu.
func (p *heldSlot) settle() {
	if p.held && p.live <= p.outside {
		p.held = false
		<-p.slots
		p.once.Do(func() { close(p.left) })
	}
}

// Only one of its goroutines takes it.
func (p *heldSlot) take(ctx context.Context) error {
	for {
		p.mu.Lock()
		if p.held || p.ended || p.live <= p.outside {
			p.mu.Unlock()
			return nil
		}
		taking := p.taking
		if taking == nil {
			p.taking = make(chan struct{})
			p.mu.Unlock()
			return p.acquire(ctx)
		}
		p.mu.Unlock()
		select {
		case <-taking:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (p *heldSlot) acquire(ctx context.Context) (err error) {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.taking)
	p.taking = nil
	switch {
	case err != nil:
	case p.ended:
		<-p.slots
	default:
		p.held = true
		p.settle()
	}
	return err
}

func (p *heldSlot) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	if p.held {
		p.held = false
		<-p.slots
	}
}

// A poll for parts may hold it.
func slot(ctx context.Context, slots chan<- struct{}, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	case <-timer.C:
		return false
	}
}

func pauseOf(poll time.Duration) engine.Answer { return engine.RetryAfter(jittered(poll)) }

// unknownPause leaves deliveries to others if the handler or decider is missing
// here.
const unknownPause = 10 * time.Second

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// jittered adds up to a tenth, so that processes do not act at once.
func jittered(d time.Duration) time.Duration { return d + rand.N(d/10+1) } //nolint:gosec // no secret
