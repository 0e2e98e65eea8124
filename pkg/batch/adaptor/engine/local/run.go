package local

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/internal/runtime/engine"
)

const (
	// jitter is the part of the time between two polls that is added at random.
	jitter = 10
	// dropped is for how many polls a dropped delivery is left alone. Its work is mostly gone from the tables
	// by then.
	dropped = 10
	// failed is the time after a failed poll: the database may be away.
	failed = time.Second
	// spread is the factor by which a worker polls for more than it can take if others take the same work, so
	// that they do not all try the same rows.
	spread = 4
)

// run is one call of Run.
type run struct {
	engine  *Engine
	queues  []string
	slots   int
	handler engine.Handler
	// again receives a reason to poll before the time.
	again    chan struct{}
	handlers sync.WaitGroup

	mu   sync.Mutex
	busy int
	// next is when to look next.
	next time.Time
	// hungry: the last poll found as many as there were slots, and there may be more.
	hungry bool
	// contested: a delivery was dropped since the last poll, as another process had it.
	contested bool
	// stale is how many held deliveries the last poll found.
	stale int
}

// Run implements engine.Engine.
func (e *Engine) Run(ctx context.Context, stop <-chan struct{}, s engine.Subscription, h engine.Handler) error {
	if err := s.Check(); err != nil {
		return err
	}
	r := &run{engine: e, queues: s.Queues, slots: s.Slots, handler: h, again: make(chan struct{}, 1)}
	e.add(r)
	defer r.handlers.Wait()
	defer e.remove(r)
	for {
		select {
		case <-stop:
			return nil
		case <-ctx.Done():
			return nil
		default:
		}
		r.poll(ctx)
		timer := time.NewTimer(r.pause())
		select {
		case <-stop:
		case <-ctx.Done():
		case <-r.again:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// pollAt makes the run poll at that time, if it would poll later.
func (r *run) pollAt(at time.Time) {
	r.mu.Lock()
	if at.Before(r.next) {
		r.next = at
	}
	r.mu.Unlock()
	r.signal()
}

func (r *run) signal() {
	select {
	case r.again <- struct{}{}:
	default: // a signal waits already
	}
}

// pause is the time until the next poll. Without a free slot there is no poll: the end of a handler frees
// one.
func (r *run) pause() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy >= r.slots {
		r.hungry = true
		return time.Hour
	}
	return time.Until(r.next)
}

// plan returns how many slots are free, and how many deliveries to poll for.
func (r *run) plan(now time.Time) (free, limit int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	free = r.slots - r.busy
	if free <= 0 || now.Before(r.next) {
		return 0, 0
	}
	limit = free
	if r.contested {
		limit *= spread
	}
	scan := r.engine.config.Scan
	r.next = now.Add(scan + rand.N(scan/jitter+1)) //nolint:gosec // no secret
	r.hungry = false
	return free, limit + r.stale
}

// poll takes waiting deliveries, as far as there are slots.
func (r *run) poll(ctx context.Context) {
	now := time.Now()
	r.engine.forget(now)
	free, limit := r.plan(now)
	if free == 0 {
		return
	}
	found, err := r.engine.config.Source.Due(ctx, r.queues, limit)
	if err != nil {
		r.mu.Lock()
		r.next = now.Add(max(failed, r.engine.config.Scan))
		r.mu.Unlock()
		if ctx.Err() == nil {
			r.engine.config.Log.WarnContext(ctx, "engine local: look for work", "error", err.Error())
		}
		return
	}
	r.mu.Lock()
	contested := r.contested
	r.contested = false
	r.mu.Unlock()
	if contested {
		shuffle(found)
	}
	taken, stale := 0, 0
	for _, d := range found {
		switch {
		case taken == free:
		case r.engine.take(d.Key(), now):
			taken++
			r.hand(ctx, d)
		default:
			stale++
		}
	}
	r.after(taken == free, len(found) == limit && stale > 0, stale)
}

// after records the result of a poll. A poll that was filled up with held deliveries is repeated for more.
func (r *run) after(full, covered bool, stale int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stale = stale
	switch {
	case full && r.busy < r.slots: // a handler has ended already
		r.next = time.Time{}
	case full:
		r.hungry = true
	case covered:
		r.next = time.Time{}
	}
}

// shuffle mixes deliveries of the same priority.
func shuffle(ds []engine.Delivery) {
	for from := 0; from < len(ds); {
		to := from + 1
		for to < len(ds) && ds[to].Priority == ds[from].Priority {
			to++
		}
		same := ds[from:to]
		rand.Shuffle(len(same), func(i, j int) { same[i], same[j] = same[j], same[i] })
		from = to
	}
}

// hand calls the handler with a slot.
func (r *run) hand(ctx context.Context, d engine.Delivery) {
	r.mu.Lock()
	r.busy++
	r.mu.Unlock()
	r.handlers.Go(func() {
		answer, err := engine.Call(ctx, r.handler, d)
		if err != nil {
			r.engine.config.Log.ErrorContext(ctx, "engine local", "error", err.Error())
		}
		r.ended(d, answer)
	})
}

// ended gives the slot back.
func (r *run) ended(d engine.Delivery, answer engine.Answer) {
	now := time.Now()
	var until time.Time
	after, retry := answer.Retry()
	switch {
	case retry:
		until = now.Add(after)
	case answer.IsDrop():
		until = now.Add(dropped * r.engine.config.Scan)
	}
	r.engine.release(d.Key(), until)
	r.mu.Lock()
	r.busy--
	r.contested = r.contested || answer.IsDrop()
	hungry := r.hungry
	if hungry {
		r.next = now
	} else if retry && until.Before(r.next) {
		r.next = until
	}
	r.mu.Unlock()
	r.signal()
}
