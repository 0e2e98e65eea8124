package tx

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// Aborter ends the transactions of work that does not return: a goroutine cannot
// be killed, but what it holds in the database can be taken from it (rule L8).
type Aborter struct {
	mu      sync.Mutex
	open    map[Handle]struct{}
	aborted bool

	// authored says that the work runs statements that an author wrote.
	authored atomic.Bool

	end   sync.Mutex // never held while something is called
	ended bool
	atEnd []func()
}

// ErrAborted is the failure to begin a transaction for work that was aborted.
var ErrAborted = errors.New("the work was aborted")

type aborterKey struct{}

// WithAborter returns a context whose transactions the Aborter can end: those that
// a Manager begins with it or with a context made of it.
func WithAborter(ctx context.Context) (context.Context, *Aborter) {
	a := &Aborter{open: map[Handle]struct{}{}}
	return context.WithValue(ctx, aborterKey{}, a), a
}

// Abort rolls back every open transaction and lets none begin any more. A
// statement in progress is waited for: end its context first.
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

// release gives the transaction back to its owner, who ends it; false if it was
// ended already.
func (a *Aborter) release(h Handle) bool {
	if a == nil {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, h)
	return !a.aborted
}

// AtEnd calls f when the work is over: what belongs to the work outside of its
// transactions ends with it (rule T8b). Of nil, and after the end, it does nothing.
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

// End says that the work is over.
func (a *Aborter) End() {
	a.end.Lock()
	list := a.atEnd
	a.ended, a.atEnd = true, nil
	a.end.Unlock()
	for _, f := range list {
		f()
	}
}

// Ended reports whether the work is over; that of nil, outside of any, never is.
func (a *Aborter) Ended() bool {
	if a == nil {
		return false
	}
	a.end.Lock()
	defer a.end.Unlock()
	return a.ended
}

// Authored says that the work whose context this is runs statements that an author
// wrote: what they do to their session (rule T8b) cannot be told from their text, since
// a view or a function may do anything.
func Authored(ctx context.Context) {
	if a := AborterOf(ctx); a != nil {
		a.authored.Store(true)
	}
}

// IsAuthored reports whether Authored was said of the work; of nil it was not.
func (a *Aborter) IsAuthored() bool { return a != nil && a.authored.Load() }

// AborterOf returns the innermost Aborter of ctx, which stands for the work itself, or
// nil.
func AborterOf(ctx context.Context) *Aborter {
	a, _ := ctx.Value(aborterKey{}).(*Aborter) //nolint:errcheck // absent is nil
	return a
}
