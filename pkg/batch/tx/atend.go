package tx

import (
	"context"
	"sync"
)

// AtEnd calls f(true) once the outermost transaction is committed, f(false) if it or f's savepoint is rolled
// back or the COMMIT is unknown. Without a transaction it calls f(true) at once.
//
// For reports of changes to others. f must not use the transaction.
func AtEnd(ctx context.Context, database string, f func(committed bool)) {
	s, ok := ctx.Value(key{nameOr(database)}).(*scope)
	if !ok || s.suspended || s.ended.Load() {
		f(true)
		return
	}
	s.atEnd.add(f)
}

// The lock protects against abandoned work that wakes during the end.
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

// since: the first ones stay.
func (a *atEnd) call(since int, committed bool) {
	a.mu.Lock()
	calls := a.calls[min(since, len(a.calls)):]
	a.calls = a.calls[: len(a.calls)-len(calls) : len(a.calls)-len(calls)]
	a.mu.Unlock()
	for _, f := range calls {
		f(committed)
	}
}
