package operator

import (
	"cmp"
	"context"
	"os"
	"os/user"
)

// CurrentActor is the user and the host: who acts where nothing else is said.
func CurrentActor() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}

// actorKey is the key of an actor in a context.
type actorKey struct{}

// WithActor says in whose name the service acts, for the audit: a client of an API is
// another one than the user of the process.
func WithActor(ctx context.Context, actor string) context.Context {
	return context.WithValue(ctx, actorKey{}, actor)
}

// actor is who acts: that of WithActor, else Config.Actor.
func (s *Service) actor(ctx context.Context) string { return cmp.Or(namedActor(ctx), s.config.Actor) }

// namedActor is the actor of WithActor; "": there is none.
func namedActor(ctx context.Context) string {
	actor, _ := ctx.Value(actorKey{}).(string) //nolint:errcheck // absent is empty
	return actor
}
