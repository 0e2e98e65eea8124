package model

import "context"

// Patience waits out a database outage (rule O1). A Lease is one.
type Patience interface {
	// Record calls write, and repeats it after a pause while the database cannot be reached, for as
	// long as the caller may wait. It returns write's last error, with ErrNoReply in its chain if the
	// time was over. write may find its own work done: the reply may have been lost.
	Record(ctx context.Context, write func(ctx context.Context) error) error
}

type patienceKey struct{}

// WithPatience returns a context in which calls of the history wait out a database outage. nil means
// that they fail at once.
func WithPatience(ctx context.Context, p Patience) context.Context {
	return context.WithValue(ctx, patienceKey{}, p)
}

// HasPatience reports whether calls with ctx wait out a database outage.
func HasPatience(ctx context.Context) bool {
	p, _ := ctx.Value(patienceKey{}).(Patience) //nolint:errcheck // absent is none
	return p != nil
}

// Patiently calls f with the patience of ctx, if any. Inside f there is none, so nested calls do not
// multiply their attempts.
func Patiently(ctx context.Context, f func(ctx context.Context) error) error {
	p, _ := ctx.Value(patienceKey{}).(Patience) //nolint:errcheck // absent is none
	if p == nil {
		return f(ctx)
	}
	return p.Record(WithPatience(ctx, nil), f)
}
