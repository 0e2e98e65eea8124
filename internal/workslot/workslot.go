// Package workslot is the place of an execution in its worker's capacity, which a context carries: code that
// only waits leaves it to other work meanwhile.
//
// It imports the standard library only.
package workslot

import "context"

// Slot is the place of an execution in its worker's capacity. The execution holds it while at least one
// of its goroutines works.
type Slot interface {
	// Leave declares that the calling goroutine only waits from now on. The slot is free for other work
	// when no goroutine of the execution works.
	Leave()
	// Return declares that the goroutine works again, and waits for a slot if the execution has none.
	// The error is ctx's cause if it ends first.
	Return(ctx context.Context) error
	// Fork is for branches: goroutines that work in parallel while the calling one only waits for them.
	// Each calls begin first, which waits for a slot as Return does, until ctx ends, and end when its
	// work is done.
	Fork() (begin func(ctx context.Context), end func())
}

type slotKey struct{}

// WithSlot returns a context with the slot for its work.
func WithSlot(ctx context.Context, s Slot) context.Context {
	return context.WithValue(ctx, slotKey{}, s)
}

// LeaveSlot gives the slot of ctx back for good: its holder only waits from now on, for example for
// another execution. Without a slot it does nothing.
func LeaveSlot(ctx context.Context) {
	if s, ok := ctx.Value(slotKey{}).(Slot); ok {
		s.Leave()
	}
}

// WithoutSlot calls wait, which waits for work of workers, without the slot of ctx: that work may need
// this slot.
func WithoutSlot(ctx context.Context, wait func() error) error {
	s, ok := ctx.Value(slotKey{}).(Slot)
	if !ok {
		return wait()
	}
	s.Leave()
	err := wait()
	if failed := s.Return(ctx); err == nil {
		err = failed
	}
	return err
}

// ForkSlot is Slot.Fork of ctx's slot. Without a slot begin and end do nothing.
func ForkSlot(ctx context.Context) (begin, end func()) {
	s, ok := ctx.Value(slotKey{}).(Slot)
	if !ok {
		return func() {}, func() {}
	}
	in, end := s.Fork()
	return func() { in(ctx) }, end
}

type stopKey struct{}

// WithStopping returns a context for work that a worker gives back, if the work only waits, when stop
// is closed.
func WithStopping(ctx context.Context, stop <-chan struct{}) context.Context {
	return context.WithValue(ctx, stopKey{}, stop)
}

// Stopping is closed when the worker begins to stop; nil without one.
func Stopping(ctx context.Context) <-chan struct{} {
	stop, _ := ctx.Value(stopKey{}).(<-chan struct{}) //nolint:errcheck // absent is nil
	return stop
}
