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

// The priorities, the same as for tasks.
const (
	FirstPriority   = 1
	DefaultPriority = 2
	LastPriority    = 4
)

// MaxQueue is the maximum length of a queue's name in bytes.
const MaxQueue = 100

// Delivery announces that there may be work for a worker. It carries IDs, never state.
type Delivery struct {
	Kind Kind
	// ID is the ID of the task, the part or the execution.
	ID int64
	// Epoch is the epoch of the row when the delivery was created, at least 1. Each new delivery of
	// the same work has a higher one.
	Epoch int64
	// Queue is the type of the task, or the queue for parts and executions. Workers subscribe to
	// queues.
	Queue string
	// Priority orders deliveries that wait in a queue: FirstPriority to LastPriority; 0 means
	// DefaultPriority.
	Priority int
	// NotBefore is the earliest time of the delivery, and orders deliveries of the same priority. A
	// past time means that the work has waited since then. Zero means now. The delivery may come
	// later by [Capabilities].Late.
	NotBefore time.Time
}

// Key identifies a delivery: two with the same Key are the same delivery.
type Key struct {
	Kind  Kind
	ID    int64
	Epoch int64
}

// Key returns the delivery's key.
func (d Delivery) Key() Key { return Key{d.Kind, d.ID, d.Epoch} }

// String names the delivery for people, such as "task 12, epoch 3".
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
	// Enqueue passes deliveries to the engine, in the transaction of its database that ctx carries:
	// if it rolls back, or a savepoint before them does, they are not delivered. Without a
	// transaction they are stored when Enqueue returns. The same delivery may be enqueued twice,
	// and is then delivered once or twice. One with an epoch above 1 replaces waiting deliveries of
	// the same work with lower epochs.
	Enqueue(ctx context.Context, ds ...Delivery) error
	// Run calls h for deliveries of the subscribed queues until stop is closed or ctx ends, at most
	// s.Slots at once. It takes no delivery without a free slot, so that other processes can have
	// it. When stop is closed it takes no more, waits for the running handlers and returns nil.
	// Handlers run with ctx: when it ends, they must abort.
	//
	// Run waits for a database that is unreachable. It returns errors that waiting does not fix,
	// such as missing tables.
	Run(ctx context.Context, stop <-chan struct{}, s Subscription, h Handler) error
	// Cancel requests, in the transaction that ctx carries, that the deliveries are not delivered
	// if they still wait. It is a hint: the work's row decides whether the work is done. It does
	// not affect a running handler.
	Cancel(ctx context.Context, ds ...Delivery) error
	// Missing returns the deliveries in ds that the engine will not deliver any more, although they
	// are expected to wait for a worker: it never had them, it delivered them, or the process that
	// had taken them died before its handler could take the work. A recently taken delivery is not
	// missing. The caller delivers the work again with a higher epoch.
	Missing(ctx context.Context, ds ...Delivery) ([]Delivery, error)
	Capabilities() Capabilities
}

// Subscription is the work that a worker takes.
type Subscription struct {
	// Queues are the names of the queues; at least one.
	Queues []string
	// Slots is the maximum number of deliveries at once, over all queues; at least 1.
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
	// Name is the engine's name in the settings.
	Name string
	// Distributed means that workers on many machines take the deliveries. A worker that is not
	// known here may be elsewhere.
	Distributed bool
	// Transactional means that deliveries commit and roll back with their work.
	Transactional bool
	// Loses means that a process that dies may take a delivery with it, and that an operator may
	// delete deliveries: call Missing periodically. If false, Missing always returns none.
	Loses bool
	// Late is the maximum delay, after the transaction or NotBefore, until a delivery reaches an
	// idle worker.
	Late time.Duration
}
