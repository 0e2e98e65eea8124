package gormdb

import (
	"sync"
	"time"

	"github.com/surfin-batch/surfin/internal/boottime"
)

// writerTime is how long this process has held the one writer of an SQLite file: no other process can take
// an execution over meanwhile (rule L9).
type writerTime struct {
	mu     sync.Mutex
	total  time.Duration
	active map[*hold]struct{}
}

// hold may begin later than now: a statement outside of a transaction certainly holds the writer only if it
// takes longer than it would wait for it.
type hold struct{ from time.Duration }

func newWriterTime() *writerTime { return &writerTime{active: map[*hold]struct{}{}} }

func (w *writerTime) begin(in time.Duration) *hold {
	h := &hold{from: boottime.Now() + in}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.active[h] = struct{}{}
	return h
}

// Time that other spans cover as well is counted once.
func (w *writerTime) end(h *hold) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := boottime.Now()
	w.total += w.activeTime(now)
	delete(w.active, h)
	for other := range w.active {
		other.from = max(other.from, now)
	}
}

func (w *writerTime) held() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.total + w.activeTime(boottime.Now())
}

func (w *writerTime) activeTime(now time.Duration) (longest time.Duration) {
	for h := range w.active {
		longest = max(longest, now-h.from)
	}
	return longest
}

// The zero value belongs to a connection that only reads.
type writing struct {
	time *writerTime
	// how long a statement waits for the writer
	wait time.Duration
	in   *hold
}

// call the result after the statement
func (w *writing) statement() (over func()) {
	if w.time == nil || w.in != nil {
		return func() {}
	}
	h := w.time.begin(2 * w.wait)
	return func() { w.time.end(h) }
}

func (w *writing) begun() {
	if w.time != nil {
		w.in = w.time.begin(0)
	}
}

func (w *writing) ended() {
	if w.in != nil {
		w.time.end(w.in)
		w.in = nil
	}
}
