package jobtest

import (
	"context"
	"time"

	"github.com/surfin-batch/surfin/internal/operator"
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
	// Zone finds the time zone of a job by its file, or by its name if the program has it; nil, also as an answer, is UTC.
	Zone func(job string) *time.Location
	// Getenv finds a variable of the environment; nil: there are none.
	Getenv func(name string) string
}
