package runlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/panics"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const (
	// interval is the time in which lines are collected for a batch.
	interval = time.Second
	// gap is the time between two batches that are in a hurry.
	gap = 200 * time.Millisecond
	// storeTime bounds one try to store a batch, and closeTime the wait of Close for the last ones.
	storeTime, closeTime = 10 * time.Second, 2 * time.Second
	// takenLines is the number of lines of a transaction.
	takenLines = 1000
	// maxRefused is the number of times that the store may refuse a batch before its lines are given up.
	maxRefused         = 5
	minPause, maxPause = 250 * time.Millisecond, 5 * time.Second
)

type storingKey struct{}

// IsStoring reports whether ctx is of a statement that stores lines: it belongs to no work.
func IsStoring(ctx context.Context) bool { return ctx.Value(storingKey{}) != nil }

// hurry has the lines stored before the interval is over.
func (l *Log) hurry() { signal(l.soon) }

// start begins the goroutine that stores lines. The caller has l.mu.
func (l *Log) start() {
	if l.started || l.closed || l.store == nil {
		return
	}
	l.started = true
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), storingKey{}, true))
	l.cancel = cancel
	go l.run(ctx)
}

func (l *Log) run(ctx context.Context) {
	defer close(l.done)
	var before time.Time
	for closing := false; !closing; {
		closing = l.await(before)
		for {
			batches := l.take()
			if len(batches) == 0 {
				break
			}
			if !l.send(ctx, batches) {
				return
			}
			before = time.Now()
		}
	}
}

// await returns when a batch is due; it reports whether it is the last time.
func (l *Log) await(before time.Time) (closing bool) {
	l.mu.Lock()
	var sweep <-chan time.Time
	if len(l.books) > 0 {
		timer := time.NewTimer(idle)
		defer timer.Stop()
		sweep = timer.C
	}
	l.mu.Unlock()
	select {
	case <-l.closing:
		return true
	case <-sweep:
		return false
	case <-l.wake:
	}
	due := time.NewTimer(interval)
	defer due.Stop()
	select {
	case <-l.closing:
		return true
	case <-due.C:
		return false
	case <-l.soon:
	}
	left := time.NewTimer(gap - time.Since(before))
	defer left.Stop()
	select {
	case <-l.closing:
		return true
	case <-left.C:
		return false
	}
}

// take removes the lines of the next transaction from their queues.
func (l *Log) take() (batches []ports.LogBatch) {
	l.mu.Lock()
	outputs := slices.Collect(maps.Keys(l.outputs))
	l.mu.Unlock()
	for _, o := range outputs {
		o.flush(false)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	lines := 0
	for id, b := range l.books {
		l.sweep(b, now)
		if n := b.lost; n > 0 && !l.closed {
			b.lost = 0
			l.noticeLost(b, n)
		}
		if len(b.queue) == 0 && b.leftOut == (ports.LogLeftOut{}) {
			if b.flying == 0 && b.lost == 0 && (b.ended || now.Sub(b.touched) > forgotten) {
				delete(l.books, id)
			}
			continue
		}
		n := min(len(b.queue), max(0, takenLines-lines))
		if n == 0 && len(b.queue) > 0 {
			continue
		}
		batches = append(batches, ports.LogBatch{Execution: id, Lines: slices.Clone(b.queue[:n]), LeftOut: b.leftOut})
		b.queue, b.flying, b.leftOut = b.queue[n:], n, ports.LogLeftOut{}
		lines += n
	}
	return batches
}

// sweep releases the held back lines of work without an event for a while.
func (l *Log) sweep(b *book, now time.Time) {
	silence := now.Sub(b.touched)
	if silence > forgotten || silence > idle && !b.isRunning() {
		l.releaseAll(b)
	}
}

func (l *Log) noticeLost(b *book, n int64) {
	before := len(b.queue)
	l.notice(b, ports.LogLine{}, slog.LevelWarn, eventLost, fmt.Sprintf("%d lines are missing here: they could not be stored in time", n), slog.Int64("lines", n))
	if len(b.queue) == before { // there is no room for it either
		b.lost = n
		return
	}
	b.leftOut.Lost += n
}

// send stores batches; it returns false if it was given up because the log is closed.
func (l *Log) send(ctx context.Context, batches []ports.LogBatch) bool {
	refused := 0
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		sizes, err := l.try(ctx, batches)
		if err == nil {
			l.stored(batches, sizes)
			return true
		}
		for i := range batches {
			batches[i].Again = true
		}
		if ctx.Err() != nil {
			l.giveUp(batches, err)
			return false
		}
		if !l.config.IsAway(err) && !errors.Is(err, context.DeadlineExceeded) {
			if refused++; refused >= maxRefused {
				l.giveUp(batches, err)
				return true
			}
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (l *Log) try(ctx context.Context, batches []ports.LogBatch) (sizes map[core.JobExecutionID]ports.LogSize, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	copies := slices.Clone(batches) // a try may change them
	err = panics.Guard(func() (err error) {
		sizes, err = l.store.AppendLog(ctx, copies)
		return err
	})
	return sizes, err
}

func (l *Log) stored(batches []ports.LogBatch, sizes map[core.JobExecutionID]ports.LogSize) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, batch := range batches {
		l.pending -= sizeOf(batch.Lines)
		b := l.books[batch.Execution]
		if b == nil {
			continue
		}
		b.flying = 0
		size, exists := sizes[batch.Execution]
		if !exists { // it was purged
			l.pending -= sizeOf(b.queue)
			delete(l.books, batch.Execution)
			continue
		}
		b.used = size.Bytes + sizeOf(b.queue)
	}
}

// giveUp counts the lines, which may or may not be stored, as lost.
func (l *Log) giveUp(batches []ports.LogBatch, cause error) {
	l.mu.Lock()
	for _, batch := range batches {
		l.pending -= sizeOf(batch.Lines)
		if b := l.books[batch.Execution]; b != nil {
			b.flying = 0
			b.lost += int64(len(batch.Lines))
			b.leftOut = b.leftOut.Add(batch.LeftOut)
			b.used -= sizeOf(batch.Lines)
		}
	}
	closed := l.closed
	l.mu.Unlock()
	if closed {
		return // Close reports them
	}
	for _, batch := range batches {
		if len(batch.Lines) > 0 {
			l.report(core.LogLost{Execution: batch.Execution, Lines: int64(len(batch.Lines)), Err: cause})
		}
	}
}

var errClosed = errors.New("the process ends, and the history did not answer in time")

// Close stores what is left, and waits for it, but not for long: then it reports how many lines are lost.
func (l *Log) Close(ctx context.Context) {
	l.mu.Lock()
	outputs := slices.Collect(maps.Keys(l.outputs))
	l.mu.Unlock()
	for _, o := range outputs {
		o.flush(true)
	}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return
	}
	for _, b := range l.books {
		l.releaseAll(b)
		if n := b.lost; n > 0 {
			b.lost = 0
			l.noticeLost(b, n)
		}
	}
	started := l.started
	l.closed = true
	l.mu.Unlock()
	if started {
		l.closeWithin(ctx)
	}
	l.mu.Lock()
	var lost []core.LogLost
	for id, b := range l.books {
		if n := int64(len(b.queue)) + b.lost + int64(b.flying); n > 0 {
			lost = append(lost, core.LogLost{Execution: id, Lines: n, Err: errClosed})
		}
	}
	report := l.report
	l.mu.Unlock()
	for _, e := range lost {
		report(e)
	}
}

func (l *Log) closeWithin(ctx context.Context) {
	close(l.closing)
	timer := time.NewTimer(closeTime)
	defer timer.Stop()
	select {
	case <-l.done:
		l.cancel()
		return
	case <-timer.C:
	case <-ctx.Done():
	}
	l.cancel()
	timer.Reset(closeTime / 2)
	select {
	case <-l.done:
	case <-timer.C: // a driver that does not heed its context
	}
}

func (l *Log) keep(s source) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outputs[s] = struct{}{}
}

func (l *Log) drop(s source) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.outputs, s)
}

func (l *Log) awake() {
	l.mu.Lock()
	l.start()
	l.mu.Unlock()
	signal(l.wake)
}
