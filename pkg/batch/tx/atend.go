package tx

import (
	"sync"
)

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
