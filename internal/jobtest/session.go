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
	Open Open
	// Carries reports whether the program embeds the job; may be nil.
	Carries func(name string) bool
	// Zone finds a job's time zone by its file or name; nil is UTC.
	Zone   func(job string) *time.Location
	Getenv func(name string) string
}
