package task

import (
	"context"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Idle tells the worker that the handler only waits from now on, such as for work of
// others: its slot is free for another task. The worker renews the task's lease all the same.
// Called with another context than a handler's, it does nothing.
func Idle(ctx context.Context) { core.LeaveSlot(ctx) }
