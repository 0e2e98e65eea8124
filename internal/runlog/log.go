// Package runlog keeps the log of each execution: it collects lines in memory, and a goroutine stores them in
// batches, outside of the work's transactions (rules LG1 to LG5).
//
// It imports core, internal/ports, internal/panics and the standard library.
package runlog

import (
	"context"
	"crypto/rand"
	"fmt"
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
	// first is the number of lines of one event of a step that are kept at once.
	first = 100
	// batchLines are enough lines for a batch before the interval is over.
	batchLines = 500
	// maxPending bounds the bytes of all lines in memory that wait for the store.
	maxPending = 8 << 20
	// maxReserve and reserveShare bound the end of a log that is kept for its last lines and for failures.
	maxReserve, reserveShare = 512 << 10, 4
	// idle is the time after which held back lines are stored although their step is not known to be over, and
	// forgotten the time after which the execution leaves the memory.
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
	outputs map[source]struct{}
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
		report: func(core.Event) {}, books: map[core.JobExecutionID]*book{}, outputs: map[source]struct{}{},
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

// Further events of lines; the engine has its own.
const (
	eventCause   = "cause"
	eventStack   = "panic.stack"
	eventLog     = "log"
	eventOutput  = "output"
	eventThinned = "log.thinned"
	eventBound   = "log.bound"
	eventLost    = "log.lost"
)

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
