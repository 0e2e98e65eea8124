package tx

import (
	"context"
	"sync"
)

// holdings are connections kept in addition to transactions, such as a reader's snapshot.
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

// WithHoldings counts a step's connections of Hold. After stop closes, a wait for a connection ends soon with
// an error that wraps stopped; stop may be nil.
func WithHoldings(ctx context.Context, stop <-chan struct{}, stopped error) context.Context {
	return context.WithValue(ctx, holdingsKey{}, &holdings{outer: holdingsOf(ctx), stop: stop, stopped: stopped, kept: map[string]int{}})
}

// Hold notes a connection kept until release (call it once) other than by ctx's transaction: open rows, or
// another transaction. Call it before requesting another connection: the pool keeps a reserve for holders
// (rule O4).
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

// Stopping returns the channel closed on a stop, and the error that ends waits; nil if none.
func Stopping(ctx context.Context) (stop <-chan struct{}, stopped error) {
	if h := holdingsOf(ctx); h != nil {
		return h.stop, h.stopped
	}
	return nil, nil
}
