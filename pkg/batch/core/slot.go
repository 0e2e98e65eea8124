package core

import "context"

// Slot is the place of an execution among those that its worker runs at once.
type Slot interface {
	// Leave gives the place back, for other work. An execution that has none does nothing.
	Leave()
	// Return takes a place again, when one is free. The error is ctx's cause when it ends
	// first: the execution has no place then.
	Return(ctx context.Context) error
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
