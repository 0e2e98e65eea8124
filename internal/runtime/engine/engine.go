package engine

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Kind says what a delivery is about.
type Kind string

// The kinds.
const (
	Task   Kind = "task"   // a task is to be executed
	Part   Kind = "part"   // a part of a step is to be executed
	Resume Kind = "resume" // a parked execution is to be resumed
)

// The priorities. They are those of tasks.
const (
	FirstPriority   = 1
	DefaultPriority = 2
	LastPriority    = 4
)

// MaxQueue is the most bytes of a queue's name.
const MaxQueue = 100

// Delivery says that there may be work for a worker. It carries ids, never state.
type Delivery struct {
	Kind Kind
	// ID is that of the task, the part or the execution.
	ID int64
	// Epoch is that of the row when the delivery was made. Each new delivery of the same
	// work has a higher one; from 1.
	Epoch int64
	// Queue is the type of the task, or what stands for the parts and executions. Workers
	// subscribe to queues.
	Queue string
	// Priority orders deliveries that wait in a queue: FirstPriority to LastPriority;
	// 0: DefaultPriority.
	Priority int
	// NotBefore is the earliest time of the delivery, and its place: those of a priority go
	// in the order of it. One in the past stands for work that has waited since then. Zero:
	// now. The delivery may come later by [Capabilities].Late.
	NotBefore time.Time
}

// Key is what makes a delivery the same as another one.
type Key struct {
	Kind  Kind
	ID    int64
	Epoch int64
}

// Key returns the delivery's.
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

// Check reports everything that is wrong with the delivery.
func (d Delivery) Check() error {
	var errs []error
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("delivery of "+d.String()+": "+format, args...))
	}
	switch d.Kind {
	case Task, Part, Resume:
	default:
		wrong("its kind is %q, and may be %s, %s or %s", d.Kind, Task, Part, Resume)
	}
	if d.ID < 1 || d.Epoch < 1 {
		wrong("its id and its epoch must be at least 1")
	}
	if err := checkQueue(d.Queue); err != nil {
		wrong("%w", err)
	}
	if d.Priority != 0 && (d.Priority < FirstPriority || d.Priority > LastPriority) {
		wrong("its priority is %d, and may be %d (first) to %d", d.Priority, FirstPriority, LastPriority)
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
		return fmt.Errorf("the name of its queue has %d bytes, and may have 1 to %d", len(name), MaxQueue)
	}
	return nil
}

// Engine carries deliveries. It may be used by many goroutines.
type Engine interface {
	// Enqueue gives deliveries to the engine, in the transaction of its database that ctx
	// carries: what is rolled back, or behind a savepoint that is, is not delivered. Without
	// a transaction they are there when it returns. The same delivery may be given twice,
	// and is then delivered once or twice. One with an epoch above 1 takes the place of
	// those of the same work with lower epochs, as far as they still wait.
	Enqueue(ctx context.Context, ds ...Delivery) error
	// Run calls h for deliveries of the subscribed queues until stop is closed or ctx ends,
	// at most s.Slots at once. It takes no delivery that it has no free slot for, so that
	// other processes can have it. When stop is closed it takes no more, waits for the
	// handlers in hand and returns nil. Handlers work with ctx: its end is their order to
	// break off.
	//
	// A database that is away is waited for. The error is what waiting does not cure, as
	// tables that are not there.
	Run(ctx context.Context, stop <-chan struct{}, s Subscription, h Handler) error
	// Cancel asks that the deliveries, as far as they wait, are not delivered, in the
	// transaction that ctx carries. It is a hint: whether work is done, its row decides. It
	// does nothing to a handler that is at work.
	Cancel(ctx context.Context, ds ...Delivery) error
	// Missing returns those of ds, which are expected to wait for a worker, that the engine
	// will not deliver any more: it never had them, they were delivered, or the process that
	// had taken them died before its handler could take the work. A delivery that was taken
	// not long ago is not missing. The caller delivers the work again with a higher epoch.
	Missing(ctx context.Context, ds ...Delivery) ([]Delivery, error)
	Capabilities() Capabilities
}

// Subscription is what a worker takes.
type Subscription struct {
	// Queues are the names of the queues; at least one.
	Queues []string
	// Slots is how many deliveries it holds at once, over all queues; at least 1.
	Slots int
}

// Check reports everything that is wrong with the subscription.
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
			errs = append(errs, fmt.Errorf("subscription to %q: it is there twice", q))
		}
		seen[q] = true
	}
	if s.Slots < 1 {
		errs = append(errs, fmt.Errorf("a subscription with %d slots: there must be at least one", s.Slots))
	}
	return errors.Join(errs...)
}

// Capabilities say how an engine differs from others.
type Capabilities struct {
	// Name is that of the settings.
	Name string
	// Distributed: what is enqueued is meant for workers on many machines. A worker that is
	// not known here may be elsewhere.
	Distributed bool
	// Transactional: deliveries commit and roll back with the work that they are about.
	Transactional bool
	// Loses: a process that dies may take a delivery with it, and an operator may delete
	// some: ask Missing now and then. Without it Missing never names any.
	Loses bool
	// Late is how much later than at once, or than its NotBefore, a delivery may reach an
	// idle worker.
	Late time.Duration
}
