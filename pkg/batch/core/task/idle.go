package task

import (
	"context"

	"github.com/surfin-batch/surfin/internal/workslot"
)

// Idle notifies the worker that the handler only waits from now on, for example for the work of others:
// its slot is free for another task. The worker still renews the task's lease. With a context that is
// not a handler's, it does nothing.
func Idle(ctx context.Context) { workslot.LeaveSlot(ctx) }
