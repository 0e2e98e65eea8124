package tx

import "context"

type workKey struct{}

// WithWork names ctx's work, such as "execution 12 of load": PostgreSQL's application_name (rule OP3).
func WithWork(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, workKey{}, name)
}

// WorkOf returns the name, or "".
func WorkOf(ctx context.Context) string {
	name, _ := ctx.Value(workKey{}).(string) //nolint:errcheck // absent is empty
	return name
}
