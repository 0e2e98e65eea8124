package engine

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Kind is the kind of work that a delivery is about.
type Kind string

// The kinds.
const (
	Task   Kind = "task"   // a task is to be executed
	Part   Kind = "part"   // a part of a step is to be executed
	Resume Kind = "resume" // a parked execution is to be resumed
)

// As for tasks.
const (
	FirstPriority   = 1
	DefaultPriority = 2
	LastPriority    = 4
)

// MaxQueue is in bytes.
const MaxQueue = 100

// Delivery announces that there may be work for a worker. It carries IDs, never
// state.
type Delivery struct {
	Kind Kind
	// Of the task, part or execution.
	ID int64
	// Epoch is the row's, at least 1; each new delivery of the same work has a
	// higher one.
	Epoch int64
	// Queue is the type of the task, or the queue for parts and executions.
	Queue string
	// Priority is FirstPriority to LastPriority; 0 means DefaultPriority.
	Priority int
	// NotBefore is the earliest time, and orders the same priority. A past time
	// means waiting since then; zero means now.
	NotBefore time.Time
}

// Key identifies a delivery.
type Key struct {
	Kind  Kind
	ID    int64
	Epoch int64
}

// Key returns the delivery's key.
func (d Delivery) Key() Key { return Key{d.Kind, d.ID, d.Epoch} }

func (d Delivery) String() string { return fmt.Sprintf("%s %d, epoch %d", d.Kind, d.ID, d.Epoch) }

// Filled returns the delivery with its defaults.
func (d Delivery) Filled() Delivery {
	if d.Priority == 0 {
		d.Priority = DefaultPriority
	}
	return d
}

// Check reports every error in the delivery.
func (d Delivery) Check() error {
	var errs []error
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("delivery of "+d.String()+": "+format, args...))
	}
	switch d.Kind {
	case Task, Part, Resume:
	default:
		wrong("its kind is %q (allowed: %s, %s or %s)", d.Kind, Task, Part, Resume)
	}
	if d.ID < 1 || d.Epoch < 1 {
		wrong("its id and its epoch must be at least 1")
	}
	if err := checkQueue(d.Queue); err != nil {
		wrong("%w", err)
	}
	if d.Priority != 0 && (d.Priority < FirstPriority || d.Priority > LastPriority) {
		wrong("its priority is %d (allowed: %d, the first, to %d)", d.Priority, FirstPriority, LastPriority)
	}
	return errors.Join(errs...)
}

// CheckAll checks several deliveries.
func CheckAll(ds []Delivery) error {
	var errs []error
	for _, d := range ds {
		errs = append(errs, d.Check())
	}
	return errors.Join(errs...)
}

func checkQueue(name string) error {
	if name == "" || len(name) > MaxQueue {
		return fmt.Errorf("the name of its queue has %d bytes (allowed: 1 to %d)", len(name), MaxQueue)
	}
	return nil
}

// Engine carries deliveries. It may be used by many goroutines.
type Engine interface {
	// Enqueue passes deliveries in the transaction that ctx carries: if it or a
	// savepoint rolls back, they are not delivered. Without one they are stored
	// when Enqueue returns. The same one may be enqueued twice. An epoch above
	// 1 replaces waiting deliveries of the same work with lower epochs.
	Enqueue(ctx context.Context, ds ...Delivery) error
	// Run calls h for the queues' deliveries until stop is closed or ctx ends,
	// at most s.Slots at once; it takes none without a free slot. On stop it
	// waits for the handlers and returns nil; when ctx ends, they must abort.
	// It waits for an unreachable database, and returns errors that waiting
	// does not fix.
	Run(ctx context.Context, stop <-chan struct{}, s Subscription, h Handler) error
	// Cancel requests, in ctx's transaction, not to deliver what still waits.
	// It is a hint: the work's row decides. It does not affect a running
	// handler.
	Cancel(ctx context.Context, ds ...Delivery) error
	// Missing returns the deliveries that the engine will not deliver any more:
	// it never had them, delivered them, or their process died before the work
	// was taken. A recently taken one is not missing. The caller delivers again
	// with a higher epoch.
	Missing(ctx context.Context, ds ...Delivery) ([]Delivery, error)
	Capabilities() Capabilities
}

// Subscription is the work that a worker takes.
type Subscription struct {
	Queues []string
	// Slots bounds the deliveries at once, over all queues; at least 1.
	Slots int
}

// Check reports every error in the subscription.
func (s Subscription) Check() error {
	var errs []error
	if len(s.Queues) == 0 {
		errs = append(errs, errors.New("a subscription needs at least one queue"))
	}
	seen := map[string]bool{}
	for _, q := range s.Queues {
		if err := checkQueue(q); err != nil {
			errs = append(errs, fmt.Errorf("subscription to %q: %w", q, err))
		}
		if seen[q] {
			errs = append(errs, fmt.Errorf("subscription to %q: it is listed twice", q))
		}
		seen[q] = true
	}
	if s.Slots < 1 {
		errs = append(errs, fmt.Errorf("a subscription with %d slots: there must be at least one", s.Slots))
	}
	return errors.Join(errs...)
}

// Capabilities describe how an engine differs from others.
type Capabilities struct {
	Name string
	// Distributed: workers on many machines take the deliveries.
	Distributed bool
	// Transactional: deliveries commit and roll back with their work.
	Transactional bool
	// Loses: a dying process, or an operator, may lose a delivery: call Missing
	// periodically.
	Loses bool
	// Late is the maximum delay after the transaction or NotBefore to an idle
	// worker.
	Late time.Duration
}
