package gormdb

import (
	"context"
	"database/sql/driver"
	"fmt"
	"sync"

	"github.com/surfin-batch/surfin/internal/txwork"
)

// trace records whether a step may have changed the session of its connection, so that changes do not
// outlive the step (rule T8b): the session is renewed when the step is over, or before another one gets the
// connection.
//
// For a step with statements of a job file (txwork.Authored), every connection to PostgreSQL is renewed: a
// function or a view may change anything. For statements in Go the text decides; changes by a trigger, a
// view or a quoted name go unnoticed.
type trace struct {
	renew func() error // restores the session; mu is held
	// reopen replaces the session of a broken connection that leaves the pool: database/sql would retry
	// only three times, and then pass driver.ErrBadConn to the caller (rule R8).
	reopen func(ctx context.Context) error
	keeps  func(query string) bool
	// An author's statement may do more than its text shows.
	distrusts bool
	known     map[string]bool

	mu      sync.Mutex
	idle    bool
	changed bool
	by      *txwork.Aborter // nil outside of steps
	broken  bool
	session int
}

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

func (t *trace) notice(ctx context.Context, query string) {
	by := txwork.AborterOf(ctx)
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

func (t *trace) acquired(ctx context.Context) error {
	if !t.leaves(txwork.AborterOf(ctx)) {
		return nil
	}
	if err := t.reopen(ctx); err != nil {
		return fmt.Errorf("%w: the session cannot be reopened: %w", driver.ErrBadConn, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.broken, t.session = false, t.session+1
	return nil
}

func (t *trace) leaves(by *txwork.Aborter) (broken bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.idle = false
	if t.changed && by != nil && by != t.by {
		t.restore()
	}
	return t.broken
}

// released asks valid before over may touch the connection.
func (t *trace) released(valid func() bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.idle, t.broken = true, t.broken || !valid()
	if t.changed && t.by.Ended() {
		t.restore()
	}
	return !t.broken
}

// A connection in use is left to released.
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
