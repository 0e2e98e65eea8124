package gormdb

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// gate admits work to a pool (rule O4). Some of the last connections are a reserve for work that already
// holds others, the more so the more it holds. So work that needs several never waits for itself.
type gate struct {
	name string
	size int
	// Transactions count only against this pool, so that work which holds all connections waits for itself.
	strict bool
	// for a wait without and with held connections
	first, nested time.Duration

	mu      sync.Mutex
	pending int
}

const (
	// deep is how many connections one piece of work surely gets: a snapshot, the transaction of its chunk,
	// and one outside of that; in a pool of at least wide, a second snapshot.
	deep, wide = 3, 8
	// long: work without a connection blocks no other
	firstWait  = 10 * time.Minute
	nestedWait = time.Minute
	// for a chunk that is about to commit, after a request to stop
	stopWait                  = 5 * time.Second
	shortestPoll, longestPoll = time.Millisecond, 10 * time.Millisecond
)

func newGate(name string, size int, strict bool) *gate {
	return &gate{name: name, size: size, strict: strict, first: firstWait, nested: nestedWait}
}

// connections for work that holds more than held
func (g *gate) reserve(held int) int {
	sure := min(deep, g.size)
	if g.size >= wide {
		sure++
	}
	return max(0, sure-1-held)
}

// The caller calls leave when the pool has counted the connection, or failed. inUse returns how many the
// pool has given out.
func (g *gate) enter(ctx context.Context, inUse func() int) (leave func(), err error) {
	if g == nil {
		return func() {}, nil
	}
	held := tx.Held(ctx, g.name)
	if held >= g.size && g.strict {
		return nil, fmt.Errorf("all %d connections (max_open) of database %s are held by the transactions around this one: it would wait for itself", g.size, g.name)
	}
	if g.admit(held, inUse) {
		return g.leave, nil
	}
	return g.wait(ctx, held, inUse)
}

func (g *gate) admit(held int, inUse func() int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.size-inUse()-g.pending <= g.reserve(held) {
		return false
	}
	g.pending++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pending--
}

func (g *gate) wait(ctx context.Context, held int, inUse func() int) (leave func(), err error) {
	began, limit, end := time.Now(), g.first, error(errPoolBusy{})
	if held > 0 {
		limit = g.nested
	}
	stop, stopped := tx.Stopping(ctx)
	for {
		timer := time.NewTimer(shortestPoll + rand.N(longestPoll-shortestPoll))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, g.say(began, held, ctx.Err())
		case <-stop:
			stop, limit, end = nil, min(limit, time.Since(began)+stopWait), stopped
		case <-timer.C:
		}
		timer.Stop()
		if g.admit(held, inUse) {
			return g.leave, nil
		}
		if time.Since(began) >= limit {
			return nil, g.say(began, held, end)
		}
	}
}

func (g *gate) say(began time.Time, held int, cause error) error {
	also := ""
	if held > 0 {
		also = fmt.Sprintf(", of which this step holds %d", held)
	}
	return fmt.Errorf("waited %v for a connection of database %s: all that it may use of %d (max_open) are in use%s: %w",
		time.Since(began).Round(time.Millisecond), g.name, g.size, also, cause)
}

// an error of the class timeout
type errPoolBusy struct{}

func (errPoolBusy) Error() string {
	return "run less in parallel (branches, workers, --parallel, --slots), or raise max_open"
}
func (errPoolBusy) Timeout() bool   { return true }
func (errPoolBusy) Temporary() bool { return true }
