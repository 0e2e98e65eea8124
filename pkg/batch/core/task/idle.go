package task

import "context"

type idleKey struct{}

// WithIdle returns the context of a handler whose worker offers Idle.
func WithIdle(ctx context.Context, idle func()) context.Context {
	return context.WithValue(ctx, idleKey{}, idle)
}

// Idle tells the worker that the handler only waits from now on, such as for work of
// others: its slot is free for another task. The worker renews the task's lease all the same.
// Called with another context than a handler's, it does nothing.
func Idle(ctx context.Context) {
	if idle, ok := ctx.Value(idleKey{}).(func()); ok {
		idle()
	}
}
