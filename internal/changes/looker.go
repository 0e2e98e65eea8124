package changes

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// The bounds of a Looker's listeners.
const (
	MaxListeners          = 64
	MaxListenersOfAClient = 8
)

const (
	every    = time.Second
	lookTime = 2 * time.Second
	// kept are the events that a listener can resume after.
	kept = 4096
	// idle is the time after the last listener in which the looker can continue.
	idle = 10 * time.Minute
)

// Read reads changes as ports.Changes does.
type Read func(ctx context.Context, req ports.ChangesRequest) ([]ports.ChangeRow, error)

// Looker reads the changes for all listeners. It is safe for concurrent use.
type Looker struct {
	read Read
	log  *slog.Logger
	name string // begins the IDs of its events

	mu        sync.Mutex
	listeners map[*Listener]bool
	events    []Event
	sequence  int64         // of the newest event
	looks     int64         // that have begun
	done      int64         // the number of the last look that is over
	looked    chan struct{} // closed at the end of a look
	away      bool
	stop      context.CancelFunc
	stopped   chan struct{}
	lastAt    time.Time

	memory *memory // of the goroutine that looks
}

// New returns a looker, which does nothing yet. log may be nil.
func New(read Read, log *slog.Logger) *Looker {
	if log == nil {
		log = slog.Default()
	}
	var name [6]byte
	_, _ = rand.Read(name[:]) //nolint:errcheck // it never fails
	return &Looker{read: read, log: log, name: hex.EncodeToString(name[:]), listeners: map[*Listener]bool{}, looked: make(chan struct{})}
}

// FullError refuses a listener.
type FullError struct{ Reason string }

func (e *FullError) Error() string { return e.Reason }

// Listener receives the events of its topics. It is not safe for concurrent use.
type Listener struct {
	looker *Looker
	client string
	topics Topics
	after  int64 // the newest event that it has passed
	reset  bool  // it begins after events that are not known
	away   bool  // the database was away when it began
}

// Listen adds a listener of a client, and returns when every change from now on
// is an event for it. With after, the ID of an event, it also receives the later
// ones; if they are not known any more, a Reset. Close must be called.
//
// It returns a *FullError if there are too many listeners.
func (l *Looker) Listen(ctx context.Context, client string, topics Topics, after string) (*Listener, error) {
	n := &Listener{looker: l, client: client, topics: topics}
	l.mu.Lock()
	if err := l.admit(client); err != nil {
		l.mu.Unlock()
		return nil, err
	}
	l.listeners[n] = true
	if l.stop == nil {
		l.begin(ctx)
	}
	wanted := l.looks + 1
	l.mu.Unlock()
	if err := l.await(ctx, wanted); err != nil {
		n.Close()
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	n.after, n.away = l.sequence, l.away
	if after != "" {
		n.after, n.reset = l.position(after)
	}
	return n, nil
}

func (l *Looker) admit(client string) error {
	if len(l.listeners) >= MaxListeners {
		return &FullError{fmt.Sprintf("the server has %d listeners, as many as it serves", MaxListeners)}
	}
	own := 0
	for n := range l.listeners {
		if n.client == client {
			own++
		}
	}
	if own >= MaxListenersOfAClient {
		return &FullError{fmt.Sprintf("%s has %d listeners, as many as a client may have", client, MaxListenersOfAClient)}
	}
	return nil
}

// Looks counts the looks that are over. Data read after one of them has every change of the events sent
// until the next one.
func (l *Looker) Looks() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.done
}

// position returns the number of the event, and whether later ones are lost.
func (l *Looker) position(id string) (after int64, lost bool) {
	name, number, _ := strings.Cut(id, "-")
	after, err := strconv.ParseInt(number, 10, 64)
	if err != nil || name != l.name || after < l.sequence-int64(len(l.events)) || after > l.sequence {
		return l.sequence, true
	}
	return after, false
}

// await returns after the look with that number, or when the database is away.
func (l *Looker) await(ctx context.Context, look int64) error {
	for {
		l.mu.Lock()
		over, looked := l.done >= look, l.looked
		l.mu.Unlock()
		if over {
			return nil
		}
		select {
		case <-looked:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// begin starts the looks, which outlive the listener that begins them.
func (l *Looker) begin(ctx context.Context) {
	if l.memory == nil || time.Since(l.lastAt) > idle { // too long ago to find all changes
		l.memory, l.events = newMemory(), nil
		l.sequence++ // so that no listener resumes there
	}
	ctx, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	before, stopped := l.stopped, make(chan struct{})
	l.stopped = stopped
	go l.run(ctx, before, stopped)
}

func (l *Looker) run(ctx context.Context, before <-chan struct{}, stopped chan<- struct{}) {
	defer close(stopped)
	if before != nil { // the memory has one reader
		<-before
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ctx.Err() == nil {
		l.look(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

func (l *Looker) look(ctx context.Context) {
	l.mu.Lock()
	l.looks++
	number := l.looks
	progress, executions := l.progress()
	l.mu.Unlock()
	asked, end := context.WithTimeout(ctx, lookTime)
	defer end()
	rows, err := l.read(asked, l.memory.request(progress, executions))
	if ctx.Err() != nil {
		return
	}
	var events []Event
	first := !l.memory.looked
	if err == nil {
		events = l.memory.learn(rows, time.Now())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil && !l.away:
		l.log.WarnContext(ctx, "the changes for listeners cannot be read", "error", err)
		events = []Event{{Kind: Away}}
	case err != nil:
		events = nil
	case l.away && first: // the changes meanwhile are not known
		events = []Event{{Kind: Back}, {Kind: Reset}}
	case l.away:
		events = append([]Event{{Kind: Back}}, events...)
	}
	l.away = err != nil
	l.done, l.lastAt = number, time.Now()
	for _, e := range events {
		l.sequence++
		e.ID = l.id(l.sequence)
		l.events = append(l.events, e)
	}
	l.events = l.events[max(0, len(l.events)-kept):]
	close(l.looked)
	l.looked = make(chan struct{})
}

// progress returns whether anyone listens to counters, and the executions they ask for: none means all.
func (l *Looker) progress() (wanted bool, executions []core.JobExecutionID) {
	for n := range l.listeners {
		if len(n.topics) == 0 {
			return true, nil
		}
		for _, t := range n.topics {
			switch {
			case t.Kind != Progress:
			case t.Execution == 0:
				return true, nil
			default:
				wanted, executions = true, append(executions, t.Execution)
			}
		}
	}
	return wanted, executions
}

// Next returns the next events, or waits for them until the end of ctx: it
// returns none then. at is the ID after which the listener can be resumed.
func (n *Listener) Next(ctx context.Context) (events []Event, at string) {
	for {
		events, looked := n.pending()
		at = n.looker.id(n.after)
		if len(events) > 0 {
			return events, at
		}
		select {
		case <-looked:
		case <-ctx.Done():
			return nil, at
		}
	}
}

func (n *Listener) pending() ([]Event, <-chan struct{}) {
	l := n.looker
	l.mu.Lock()
	defer l.mu.Unlock()
	var events []Event
	if n.away {
		n.away, events = false, []Event{{Kind: Away, ID: l.id(n.after)}}
	}
	first := l.sequence - int64(len(l.events)) // before the oldest event
	if n.reset || n.after < first {
		n.reset, n.after = false, l.sequence
		return append(events, Event{Kind: Reset, ID: l.id(l.sequence)}), l.looked
	}
	for _, e := range l.events[n.after-first:] {
		if n.topics.matches(e) {
			events = append(events, e)
		}
	}
	n.after = l.sequence
	return events, l.looked
}

// Close ends the listener. The last one ends the looks.
func (n *Listener) Close() {
	l := n.looker
	l.mu.Lock()
	delete(l.listeners, n)
	var stopped chan struct{}
	if len(l.listeners) == 0 && l.stop != nil {
		l.stop()
		stopped, l.stop = l.stopped, nil
	}
	l.mu.Unlock()
	if stopped != nil {
		<-stopped
	}
}

func (l *Looker) id(sequence int64) string { return l.name + "-" + strconv.FormatInt(sequence, 10) }
