package tx

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// Aborter ends the transactions of work that does not return: a goroutine cannot be killed (rule L8).
type Aborter struct {
	mu      sync.Mutex
	open    map[Handle]struct{}
	aborted bool

	// authored: an author's statements run.
	authored atomic.Bool

	end   sync.Mutex // never held during a call
	ended bool
	atEnd []func()
}

// ErrAborted means that the work was aborted before it began a transaction.
var ErrAborted = errors.New("the work was aborted")

type aborterKey struct{}

// WithAborter returns an Aborter for all transactions of the context and derived ones.
func WithAborter(ctx context.Context) (context.Context, *Aborter) {
	a := &Aborter{open: map[Handle]struct{}{}}
	return context.WithValue(ctx, aborterKey{}, a), a
}

// Abort rolls back open transactions and prevents new ones. It waits for a running statement: end its context
// first.
func (a *Aborter) Abort() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.aborted = true
	var errs []error
	for h := range a.open {
		errs = append(errs, h.Rollback())
	}
	clear(a.open)
	return errors.Join(errs...)
}

func (a *Aborter) add(h Handle) bool {
	if a == nil {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.aborted {
		a.open[h] = struct{}{}
	}
	return !a.aborted
}

// false if it has ended already.
func (a *Aborter) release(h Handle) bool {
	if a == nil {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, h)
	return !a.aborted
}

// AtEnd calls f when the work is over (rule T8b). On nil, and after the end, it does nothing.
func (a *Aborter) AtEnd(f func()) {
	if a == nil {
		return
	}
	a.end.Lock()
	defer a.end.Unlock()
	if !a.ended {
		a.atEnd = append(a.atEnd, f)
	}
}

// End marks the work as over.
func (a *Aborter) End() {
	a.end.Lock()
	list := a.atEnd
	a.ended, a.atEnd = true, nil
	a.end.Unlock()
	for _, f := range list {
		f()
	}
}

// Ended is false on nil.
func (a *Aborter) Ended() bool {
	if a == nil {
		return false
	}
	a.end.Lock()
	defer a.end.Unlock()
	return a.ended
}

// Authored marks work that runs an author's statements: a view or function may change the session (rule T8b).
func Authored(ctx context.Context) {
	if a := AborterOf(ctx); a != nil {
		a.authored.Store(true)
	}
}

// IsAuthored is false on nil.
func (a *Aborter) IsAuthored() bool { return a != nil && a.authored.Load() }

// AborterOf returns ctx's innermost Aborter, or nil.
func AborterOf(ctx context.Context) *Aborter {
	a, _ := ctx.Value(aborterKey{}).(*Aborter) //nolint:errcheck // absent is nil
	return a
}
