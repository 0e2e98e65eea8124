package local

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/internal/runtime/engine"
)

const (
	// the part of the time between two polls that is random
	jitter = 10
	// polls for which a dropped delivery is left alone; by then its work is mostly gone
	dropped = 10
	// after a failed poll
	failed = time.Second
	// A worker polls for more than it can take if others take the same work, so that they do not all try
	// the same rows.
	spread = 4
)

type run struct {
	engine  *Engine
	queues  []string
	slots   int
	handler engine.Handler
	// a reason to poll before the time
	again    chan struct{}
	handlers sync.WaitGroup

	mu   sync.Mutex
	busy int
	next time.Time
	// the last poll filled all slots
	hungry bool
	// another process had a delivery of the last poll
	contested bool
	// held deliveries of the last poll
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
	default:
	}
}

// Without a free slot there is no poll: the end of a handler frees one.
func (r *run) pause() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy >= r.slots {
		r.hungry = true
		return time.Hour
	}
	return time.Until(r.next)
}

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

// A poll that was filled up with held deliveries is repeated for more.
func (r *run) after(full, covered bool, stale int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stale = stale
	switch {
	case full && r.busy < r.slots:
		r.next = time.Time{}
	case full:
		r.hungry = true
	case covered:
		r.next = time.Time{}
	}
}

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
