// Package workslot is an execution's slot in its worker's capacity: code that only waits leaves it
// to other work.
//
// It imports the standard library only.
package workslot

import "context"

// Slot is held while at least one goroutine of the execution works.
type Slot interface {
	// Leave declares that the calling goroutine only waits.
	Leave()
	// Return waits for a slot if the execution has none; the error is ctx's cause.
	Return(ctx context.Context) error
	// Fork is for branches while the caller only waits: each calls begin, which waits like Return,
	// and end.
	Fork() (begin func(ctx context.Context), end func())
}

type slotKey struct{}

// WithSlot returns a context with the slot for its work.
func WithSlot(ctx context.Context, s Slot) context.Context {
	return context.WithValue(ctx, slotKey{}, s)
}

// LeaveSlot gives ctx's slot back for good.
func LeaveSlot(ctx context.Context) {
	if s, ok := ctx.Value(slotKey{}).(Slot); ok {
		s.Leave()
	}
}

// WithoutSlot calls wait without ctx's slot, which the awaited work may need.
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

// ForkSlot is Slot.Fork of ctx's slot; without one it does nothing.
func ForkSlot(ctx context.Context) (begin, end func()) {
	s, ok := ctx.Value(slotKey{}).(Slot)
	if !ok {
		return func() {}, func() {}
	}
	in, end := s.Fork()
	return func() { in(ctx) }, end
}

type stopKey struct{}

// WithStopping returns a context for work that is given back, if it only waits, when stop is
// closed.
func WithStopping(ctx context.Context, stop <-chan struct{}) context.Context {
	return context.WithValue(ctx, stopKey{}, stop)
}

// Stopping is closed when the worker begins to stop; nil without one.
func Stopping(ctx context.Context) <-chan struct{} {
	stop, _ := ctx.Value(stopKey{}).(<-chan struct{}) //nolint:errcheck // absent is nil
	return stop
}
