package operator

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type watcher struct{ source ports.Changes }

// Changes reads rows of the history that are new, and marks of those that change, with one
// statement. It is not retried while the database is away.
func (w *watcher) Changes(ctx context.Context, req ports.ChangesRequest) ([]ports.ChangeRow, error) {
	if w.source == nil {
		return nil, fmt.Errorf("changes of the history: %w", core.ErrNotFound)
	}
	return w.source.Changes(ctx, req)
}
