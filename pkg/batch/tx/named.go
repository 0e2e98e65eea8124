package tx

import "context"

type workKey struct{}

// WithWork names the work of ctx, such as "execution 12 of load", for those who look at the sessions of a server:
// on PostgreSQL application_name has it in each transaction that begins with ctx (rule OP3).
func WithWork(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, workKey{}, name)
}

// WorkOf is the name of WithWork; empty if there is none.
func WorkOf(ctx context.Context) string {
	name, _ := ctx.Value(workKey{}).(string) //nolint:errcheck // absent is empty
	return name
}
