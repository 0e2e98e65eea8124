package tx

import (
	"context"
	"sync"
)

// AtEnd calls f when the transaction of the database in ctx has ended: with true once the outermost one
// is committed, with false if it, or f's savepoint, is rolled back, or if the outcome of the COMMIT is
// unknown. Without a transaction it calls f(true) at once.
//
// Use it for reports of database changes to others: a change that is rolled back has not happened. f
// must not use the transaction.
func AtEnd(ctx context.Context, database string, f func(committed bool)) {
	s, ok := ctx.Value(key{nameOr(database)}).(*scope)
	if !ok || s.suspended || s.ended.Load() {
		f(true)
		return
	}
	s.atEnd.add(f)
}

// atEnd holds the calls for the end of a physical transaction. The lock protects against abandoned work
// that wakes while the transaction ends.
type atEnd struct {
	mu    sync.Mutex
	calls []func(committed bool)
}

func (a *atEnd) add(f func(committed bool)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, f)
}

func (a *atEnd) registered() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.calls)
}

// call makes the calls registered after the first since ones, and forgets them.
func (a *atEnd) call(since int, committed bool) {
	a.mu.Lock()
	calls := a.calls[min(since, len(a.calls)):]
	a.calls = a.calls[: len(a.calls)-len(calls) : len(a.calls)-len(calls)]
	a.mu.Unlock()
	for _, f := range calls {
		f(committed)
	}
}
