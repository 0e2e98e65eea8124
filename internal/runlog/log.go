// Package runlog keeps the log of each execution: it collects lines in memory, and a goroutine stores them in
// batches, outside of the work's transactions (rules LG1 to LG5).
//
// It imports core, internal/ports, internal/panics and the standard library.
package runlog

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Config configures a Log.
type Config struct {
	// Limit is the size of one execution's log in bytes; 0 or less keeps none.
	Limit int64
	// Mask hides secrets in a text; may be nil.
	Mask func(text string) string
	// IsAway reports an error of the store after which it is tried until it answers; may be nil.
	IsAway func(err error) bool
}

const (
	// first and last bound the lines of one event of a step that are kept.
	first, last = 100, 100
	// maxPending bounds the bytes of all lines in memory that wait for the store.
	maxPending = 8 << 20
	// maxReserve and reserveShare bound the end of a log that is kept for its last lines and for failures.
	maxReserve, reserveShare = 512 << 10, 4
	// idle is the time after which what is held back is stored although its step is not known to be over, and
	// forgotten the time after which the execution is.
	idle, forgotten = 30 * time.Second, 10 * time.Minute
	// lateTime is how long an event waits to be stored after which this process may end.
	lateTime = 500 * time.Millisecond
)

// Log is a core.Scope that keeps the logs of the executions of this process. It is safe for concurrent use.
type Log struct {
	config          Config
	reserve         int64
	process, writer string

	mu      sync.Mutex
	store   ports.LogWriter
	report  func(core.Event)
	books   map[core.JobExecutionID]*book
	outputs map[*Output]struct{}
	number  int64 // of the last line
	pending int64 // bytes of all lines that are not stored
	started bool
	closed  bool

	wake, soon chan struct{}
	closing    chan struct{}
	done       chan struct{}
	cancel     context.CancelFunc
}

var _ core.Scope = (*Log)(nil)

// New returns a log, which stores nothing before Open.
func New(c Config) *Log {
	if c.Mask == nil {
		c.Mask = func(text string) string { return text }
	}
	if c.IsAway == nil {
		c.IsAway = func(error) bool { return false }
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return &Log{
		config: c, reserve: min(maxReserve, c.Limit/reserveShare), process: fmt.Sprintf("%s/%d", host, os.Getpid()), writer: rand.Text()[:12],
		report: func(core.Event) {}, books: map[core.JobExecutionID]*book{}, outputs: map[*Output]struct{}{},
		wake: make(chan struct{}, 1), soon: make(chan struct{}, 1), closing: make(chan struct{}), done: make(chan struct{}),
	}
}

// Open sets where lines are stored, and who is notified of those that could not be.
func (l *Log) Open(store ports.LogWriter, report func(core.Event)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.store, l.report = store, report
	if l.pending > 0 {
		l.start()
	}
}

// Enter implements core.Scope: what is logged with the context belongs to the execution, and to the step.
func (l *Log) Enter(ctx context.Context, e core.Event) context.Context {
	l.Observe(ctx, e)
	if l.config.Limit <= 0 {
		return ctx
	}
	switch e := e.(type) {
	case core.JobStarted:
		return with(ctx, &origin{log: l, execution: e.Execution.ID})
	case core.StepStarted:
		name, part := parts(e.Step.Name)
		return with(ctx, &origin{log: l, execution: e.Step.JobExecutionID, stepExecution: e.Step.ID, step: name, part: part})
	}
	return ctx
}

// Observe implements core.Observer.
func (l *Log) Observe(ctx context.Context, e core.Event) {
	if l.config.Limit <= 0 || !isLogged(e) {
		return
	}
	from := core.LineOf(e)
	line, ok := l.lineOf(ctx, from)
	if !ok || from.Level < slog.LevelInfo && !isThinned(e) {
		return
	}
	details := l.details(e)
	l.mu.Lock()
	l.enter(e, line, details)
	l.mu.Unlock()
	if _, late := e.(core.ComponentLate); late {
		l.awaitStored(line.Execution)
	}
}

// isLogged returns false for events that have no line, without a look at them: chunks and moves of rows are many.
func isLogged(e core.Event) bool {
	switch e := e.(type) {
	case core.ChunkCommitted, core.LogLost, core.WorkerStarted, core.ServerStarted, core.DeciderMissing:
		return false
	case core.Transitioned:
		return e.Answer != core.Applied && !e.Race
	}
	return true
}

// isThinned reports the events below INFO that a log has.
func isThinned(e core.Event) bool {
	switch e.(type) {
	case core.ChunkRolledBack, core.Retried:
		return true
	}
	return false
}

// enter adds the line of an event, in the order of the log. The caller has l.mu.
func (l *Log) enter(e core.Event, line ports.LogLine, details []ports.LogLine) {
	b := l.book(line.Execution)
	s := b.scope(line.Step)
	switch e := e.(type) {
	case core.StepStarted:
		s.running++
		l.thin(b, s, line)
	case core.StepEnded:
		s.running--
		whole := line.Part == ""
		if whole || s.running <= 0 {
			l.release(b, s)
		}
		if whole && line.Level >= slog.LevelError {
			l.enqueue(b, line, true)
			l.append(b, details)
			l.hurry()
		} else if l.thin(b, s, line) {
			l.append(b, details)
		}
	case core.JobEnded:
		l.finish(b, line, details)
	case core.OwnerLost:
		l.finish(b, line, details)
	case core.EndNotRecorded:
		if e.Step == "" {
			l.finish(b, line, details)
			return
		}
		s.running--
		l.thin(b, s, line)
	default:
		if l.thin(b, s, line) {
			l.append(b, details)
		}
	}
}

// finish adds the last line of an execution here.
func (l *Log) finish(b *book, line ports.LogLine, details []ports.LogLine) {
	l.releaseAll(b)
	l.enqueue(b, line, true)
	l.append(b, details)
	b.ended = true
	l.hurry()
}

func (l *Log) append(b *book, details []ports.LogLine) {
	for _, d := range details {
		l.enqueue(b, d, true)
	}
}

// awaitStored waits, not for long, until the lines of the execution are stored.
func (l *Log) awaitStored(id core.JobExecutionID) {
	l.mu.Lock()
	l.hurry()
	l.mu.Unlock()
	for began := time.Now(); time.Since(began) < lateTime; time.Sleep(5 * time.Millisecond) {
		l.mu.Lock()
		b := l.books[id]
		stored := b == nil || len(b.queue) == 0 && b.flying == 0
		l.mu.Unlock()
		if stored {
			return
		}
	}
}
