package operator

import (
	"cmp"
	"context"
	"os"
	"os/user"

	"github.com/surfin-batch/surfin/internal/ports"
)

// CurrentActor returns the user and the host, the default actor.
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

// WithActor sets the actor of the service's acts, for the audit: a client of an API is not the user
// of the process.
func WithActor(ctx context.Context, actor string) context.Context {
	return ports.WithActor(ctx, actor)
}

func (s *Service) actor(ctx context.Context) string {
	return cmp.Or(ports.ActorOf(ctx), s.config.Actor)
}
