package core

import "context"

type changesAccepted struct{}

// AcceptChanges returns a context in which readers go on in an input that is not
// the one that the step had read before: somebody has taken the responsibility.
func AcceptChanges(ctx context.Context) context.Context {
	return context.WithValue(ctx, changesAccepted{}, true)
}

// ChangesAccepted reports whether AcceptChanges made the context. A reader that
// would refuse a changed input goes on behind what was read, as far as it can tell
// that this is possible (rule C15).
func ChangesAccepted(ctx context.Context) bool {
	accepted, _ := ctx.Value(changesAccepted{}).(bool) //nolint:errcheck // absent is false
	return accepted
}
