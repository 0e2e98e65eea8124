package tx

import (
	"sync"
	"sync/atomic"
)

type key struct{ database string }

// scope is one level of transactions on the context: a physical transaction, a savepoint in one, or the
// mark that the outer one is suspended.
type scope struct {
	database     string
	handle       Handle
	conn         Conn
	readOnly     bool
	suspended    bool
	singleWriter bool // of the database
	outer        *scope
	savepoints   *int   // shared by all scopes of one physical transaction
	atEnd        *atEnd // shared likewise
	ended        atomic.Bool
	rollbackOnly atomic.Pointer[error]
}

func (s *scope) Database() string { return s.database }

func (s *scope) Conn() Conn { return s.conn }

func (s *scope) ReadOnly() bool { return s.readOnly }

func (s *scope) Fence() (nonce string, err error) { return s.handle.Fence() }

func (s *scope) SetRollbackOnly(cause error) {
	s.rollbackOnly.CompareAndSwap(nil, &cause)
}

// doomed returns the error of an owner that would have committed, or nil.
func (s *scope) doomed() error {
	if cause := s.rollbackOnly.Load(); cause != nil {
		return &RollbackOnlyError{Cause: *cause}
	}
	return nil
}

// hasEnded reports that the scope, or one that contains it, has ended: the context that carries it was
// kept too long.
func (s *scope) hasEnded() bool {
	for ; s != nil; s = s.outer {
		if s.ended.Load() {
			return true
		}
	}
	return false
}

func (s *scope) suspend() *scope {
	return &scope{outer: s, suspended: true, singleWriter: s.singleWriter}
}

func (s *scope) writing() bool {
	for ; s != nil; s = s.outer {
		if !s.suspended && !s.readOnly && !s.ended.Load() {
			return true
		}
	}
	return false
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
