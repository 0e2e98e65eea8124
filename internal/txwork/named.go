package txwork

import "context"

type workKey struct{}

// WithWork names the work of ctx, such as "execution 12 of load", for a server's list of sessions: on
// PostgreSQL it is the application_name of each transaction that begins with ctx (rule OP3).
func WithWork(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, workKey{}, name)
}

// WorkOf returns the name of WithWork; empty if there is none.
func WorkOf(ctx context.Context) string {
	name, _ := ctx.Value(workKey{}).(string) //nolint:errcheck // absent is empty
	return name
}
