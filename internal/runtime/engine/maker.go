package engine

import (
	"context"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Maker makes the engine of a name, where an application is put together. An adaptor offers
// it in the fx value group Makers.
type Maker struct {
	Name string
	// New makes the engine for work in that database. It opens nothing.
	New func(db tx.Database) (Engine, error)
}

// Makers is the tag of the fx value group.
const Makers = `group:"surfin.engines,flatten"`

// Schema is what an engine with tables of its own implements as well.
type Schema interface {
	// Migrate makes or updates the tables.
	Migrate(ctx context.Context) error
	// CheckSchema returns core.ErrSchemaMissing where Migrate is needed.
	CheckSchema(ctx context.Context) error
}
