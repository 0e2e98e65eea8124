package jobtest

import (
	"context"

	"github.com/surfin-batch/surfin/pkg/batch/operator"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Session is the environment of a test.
type Session struct {
	Service  *operator.Service
	Provider tx.Provider
	Close    func(ctx context.Context) error
}

// Open opens a session on the databases of URLs, by their names.
type Open func(ctx context.Context, urls map[string]string) (*Session, error)

// Config configures tests.
type Config struct {
	// Open is required.
	Open Open
	// Carries reports whether the program embeds a job of that name; nil means that it embeds none.
	Carries func(name string) bool
	// Getenv returns a variable of the environment; nil means that there are none.
	Getenv func(name string) string
}
