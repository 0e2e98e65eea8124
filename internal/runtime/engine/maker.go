package engine

import (
	"context"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Maker makes an engine by name when an application is assembled. An adaptor offers it in the fx
// value group Makers.
type Maker struct {
	Name string
	// New makes the engine for work in that database. It opens nothing.
	New func(db tx.Database) (Engine, error)
}

// Makers is the tag of the fx value group.
const Makers = `group:"surfin.engines,flatten"`

// Schema is additionally implemented by an engine with its own tables.
type Schema interface {
	// Migrate creates or updates the tables.
	Migrate(ctx context.Context) error
	// CheckSchema returns core.ErrSchemaMissing if Migrate is needed.
	CheckSchema(ctx context.Context) error
}
