package task

import (
	"context"

	"github.com/surfin-batch/surfin/internal/workslot"
)

// Idle frees the handler's slot while it only waits; its lease is still renewed. Without a handler's context
// it does nothing.
func Idle(ctx context.Context) { workslot.LeaveSlot(ctx) }
