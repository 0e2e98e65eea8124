package tx

import (
	"context"
	"sync"
)

// holdings are the connections that a step keeps in addition to the transactions of its context, such
// as a reader's snapshot, and how its waits end.
type holdings struct {
	outer   *holdings
	stop    <-chan struct{}
	stopped error

	mu   sync.Mutex
	kept map[string]int // by database
}

type holdingsKey struct{}

func holdingsOf(ctx context.Context) *holdings {
	h, _ := ctx.Value(holdingsKey{}).(*holdings) //nolint:errcheck // absent is nil
	return h
}

// WithHoldings returns the context of a step, which counts the connections of Hold. After stop is
// closed, a wait for a connection ends soon, with an error that wraps stopped; stop may be nil.
func WithHoldings(ctx context.Context, stop <-chan struct{}, stopped error) context.Context {
	return context.WithValue(ctx, holdingsKey{}, &holdings{outer: holdingsOf(ctx), stop: stop, stopped: stopped, kept: map[string]int{}})
}

// Hold notes that the step of ctx keeps a connection of the database until release is called, other
// than by a transaction in its context: open rows, or a transaction of its own. Held counts it. A
// component that requests another connection meanwhile must call it: the pool keeps a reserve for
// callers that already hold one (rule O4). release may be called once.
func Hold(ctx context.Context, database string) (release func()) {
	h := holdingsOf(ctx)
	if h == nil {
		return func() {}
	}
	h.add(nameOr(database), 1)
	return func() { h.add(nameOr(database), -1) }
}

func (h *holdings) add(database string, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kept[database] += n
}

func (h *holdings) of(database string) (n int) {
	for ; h != nil; h = h.outer {
		h.mu.Lock()
		n += h.kept[database]
		h.mu.Unlock()
	}
	return n
}

// Stopping returns the channel that is closed when the step of ctx is asked to stop, and the error that
// ends a wait then; nil if there is none.
func Stopping(ctx context.Context) (stop <-chan struct{}, stopped error) {
	if h := holdingsOf(ctx); h != nil {
		return h.stop, h.stopped
	}
	return nil, nil
}
