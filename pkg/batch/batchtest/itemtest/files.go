package itemtest

import (
	"context"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// Use returns a writer's build context.
func Use(in item.Type, attempt core.Attempt) registry.BuildContext {
	return registry.BuildContext{In: in, Attempt: func(context.Context) (core.Attempt, error) { return attempt, nil }}
}
