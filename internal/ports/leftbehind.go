package ports

import (
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// LeftBehind is an incomplete step's data outside databases, by its last position.
type LeftBehind struct {
	core.Attempt
	Position item.Position
}
