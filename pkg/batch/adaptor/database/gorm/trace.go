package gormdb

import (
	"context"
	"database/sql/driver"
	"fmt"
	"sync"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// trace records whether the session of a connection may have been changed, and by which step's work, so that
// a step's changes do not outlive it (rule T8b). While the step runs, its connection stays unchanged, and a
// chunk costs nothing more. The session is renewed when the step is over, or before another one gets the
// connection.
//
// For a step that runs statements of a job file, tx.Authored, every connection to PostgreSQL is renewed: a
// function or a view may change anything. For statements in Go the text decides; changes by a trigger, a view
// or a quoted name go unnoticed.
type trace struct {
	renew func() error // called with mu held: restores the session, or fails
	// reopen replaces the session by a new one. A broken connection that leaves the pool is replaced in the
	// same slot: database/sql would retry only three times, and then pass driver.ErrBadConn to the caller
	// (rule R8).
	reopen func(ctx context.Context) error
	keeps  func(query string) bool
	// distrusts means that an author's statement may do more than its text shows.
	distrusts bool
	known     map[string]bool // results of keeps, for the statements' goroutine

	mu      sync.Mutex
	idle    bool // in the pool
	changed bool
	by      *tx.Aborter // the step's work; nil outside of steps
	broken  bool        // not to be used any more
	session int         // counts the sessions that the connection has had
}

// keptTexts and longestKept bound the stored results.
const (
	keptTexts   = 200
	longestKept = 4096
)

func (t *trace) keepsSession(query string) bool {
	if kept, ok := t.known[query]; ok {
		return kept
	}
	kept := t.keeps(query)
	if len(t.known) < keptTexts && len(query) <= longestKept {
		t.known[query] = kept
	}
	return kept
}

// notice notes a statement; "" is an unknown one.
func (t *trace) notice(ctx context.Context, query string) {
	by := tx.AborterOf(ctx)
	if query != "" && !(t.distrusts && by.IsAuthored()) && t.keepsSession(query) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.changed {
		return
	}
	t.changed, t.by = true, by
	t.by.AtEnd(t.stepEnded)
}

// acquired is called before a connection leaves the pool.
func (t *trace) acquired(ctx context.Context) error {
	if !t.leaves(tx.AborterOf(ctx)) {
		return nil
	}
	if err := t.reopen(ctx); err != nil { // database/sql looks at driver.ErrBadConn only
		return fmt.Errorf("%w: the session cannot be reopened: %w", driver.ErrBadConn, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.broken, t.session = false, t.session+1
	return nil
}

// leaves marks the connection as used, by the work of a step or by nil, and reports
// whether it is broken.
func (t *trace) leaves(by *tx.Aborter) (broken bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.idle = false
	if t.changed && by != nil && by != t.by {
		t.restore()
	}
	return t.broken
}

// released is called when it returns to the pool, and reports whether it may stay. valid asks the driver,
// before over may touch the connection.
func (t *trace) released(valid func() bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.idle, t.broken = true, t.broken || !valid()
	if t.changed && t.by.Ended() {
		t.restore()
	}
	return !t.broken
}

// stepEnded is called when the work of a step has ended. A connection in use is left to released.
func (t *trace) stepEnded() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.idle && t.changed && t.by.Ended() {
		t.restore()
	}
}

func (t *trace) restore() {
	t.changed, t.by = false, nil
	if !t.broken && t.renew() != nil {
		t.broken, t.session = true, t.session+1
	}
}
