package model

import "context"

// Patience waits out a database outage (rule O1).
type Patience interface {
	// Record repeats write while the database cannot be reached and time is left. The last error
	// has ErrNoReply in its chain if time was over. write may find its own work done.
	Record(ctx context.Context, write func(ctx context.Context) error) error
}

type patienceKey struct{}

// WithPatience makes calls of the history wait out outages; nil: they fail at once.
func WithPatience(ctx context.Context, p Patience) context.Context {
	return context.WithValue(ctx, patienceKey{}, p)
}

// HasPatience reports whether calls with ctx wait out a database outage.
func HasPatience(ctx context.Context) bool {
	p, _ := ctx.Value(patienceKey{}).(Patience) //nolint:errcheck // absent is none
	return p != nil
}

// Patiently calls f with the patience of ctx, without any inside f, so that nested attempts do not
// multiply.
func Patiently(ctx context.Context, f func(ctx context.Context) error) error {
	p, _ := ctx.Value(patienceKey{}).(Patience) //nolint:errcheck // absent is none
	if p == nil {
		return f(ctx)
	}
	return p.Record(WithPatience(ctx, nil), f)
}
