package core

import "context"

// Slot is the place of an execution among those that its worker runs at once. The execution has
// it while at least one of its goroutines works.
type Slot interface {
	// Leave says that the calling goroutine only waits from now on. The place is free for other
	// work when no goroutine of the execution works.
	Leave()
	// Return says that the goroutine works again, and waits for a place where the execution has
	// none. The error is ctx's cause when it ends first.
	Return(ctx context.Context) error
	// Fork is for branches: goroutines that work side by side while the calling one only waits for
	// them. Each calls begin first, which waits for a place as Return does, until ctx ends, and end
	// when its work is done.
	Fork() (begin func(ctx context.Context), end func())
}

type slotKey struct{}

// WithSlot returns a context whose work has the slot.
func WithSlot(ctx context.Context, s Slot) context.Context {
	return context.WithValue(ctx, slotKey{}, s)
}

// LeaveSlot gives the slot of ctx back for good: its holder only waits from now on, such as for another
// execution. Without a slot it does nothing.
func LeaveSlot(ctx context.Context) {
	if s, ok := ctx.Value(slotKey{}).(Slot); ok {
		s.Leave()
	}
}

// WithoutSlot calls wait, which waits for work that workers do: without the slot of ctx, since
// it may be the one that the work needs.
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
