// Package txwork describes the work that begins transactions: its name, its end, and whether an author wrote its
// statements.
//
// It imports the standard library only.
package txwork

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// Transaction is an open transaction of the work.
type Transaction interface{ Rollback() error }

// Aborter ends the transactions of work that does not return: a goroutine cannot be killed, but its
// database resources can be released (rule L8).
type Aborter struct {
	mu      sync.Mutex
	open    map[Transaction]struct{}
	aborted bool

	// authored means that the work runs statements that an author wrote.
	authored atomic.Bool

	end   sync.Mutex // never held during a call
	ended bool
	atEnd []func()
}

// ErrAborted is the failure to begin a transaction for work that was aborted.
var ErrAborted = errors.New("the work was aborted")

type aborterKey struct{}

// WithAborter returns a context and an Aborter for its transactions: all that a tx.Manager begins with it
// or with a derived context.
func WithAborter(ctx context.Context) (context.Context, *Aborter) {
	a := &Aborter{open: map[Transaction]struct{}{}}
	return context.WithValue(ctx, aborterKey{}, a), a
}

// Abort rolls back every open transaction and prevents new ones. It waits for a statement in progress:
// end its context first.
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

// Add notes an open transaction; false if the work was aborted.
func (a *Aborter) Add(h Transaction) bool {
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

// Release returns the transaction to its owner, which ends it; false if it has ended already.
func (a *Aborter) Release(h Transaction) bool {
	if a == nil {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, h)
	return !a.aborted
}

// AtEnd calls f when the work is over: resources of the work outside its transactions end with it (rule
// T8b). On nil, and after the end, it does nothing.
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

// Ended reports whether the work is over; false on nil.
func (a *Aborter) Ended() bool {
	if a == nil {
		return false
	}
	a.end.Lock()
	defer a.end.Unlock()
	return a.ended
}

// Authored marks that the work of this context runs statements that an author wrote: their text does
// not show their effect on the session (rule T8b), since a view or a function may do anything.
func Authored(ctx context.Context) {
	if a := AborterOf(ctx); a != nil {
		a.authored.Store(true)
	}
}

// IsAuthored reports whether the work is marked Authored; false on nil.
func (a *Aborter) IsAuthored() bool { return a != nil && a.authored.Load() }

// Without returns a context with transactions that no Aborter ends.
func Without(ctx context.Context) context.Context {
	return context.WithValue(ctx, aborterKey{}, (*Aborter)(nil))
}

// AborterOf returns the innermost Aborter of ctx, which represents the work itself, or nil.
func AborterOf(ctx context.Context) *Aborter {
	a, _ := ctx.Value(aborterKey{}).(*Aborter) //nolint:errcheck // absent is nil
	return a
}

type workKey struct{}

// WithWork names the work of ctx, such as "execution 12 of load", for a server's list of sessions: on
// PostgreSQL it is the application_name of each transaction that begins with ctx (rule OP3).
func WithWork(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, workKey{}, name)
}

// WorkOf returns the name of WithWork; empty if there is none.
func WorkOf(ctx context.Context) string {
	name, _ := ctx.Value(workKey{}).(string) //nolint:errcheck // absent is empty
	return name
}
