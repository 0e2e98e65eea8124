package job

import (
	"context"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// RemoveLeft removes, with Config.RemoveLeft, files of steps that will not be resumed.
func (l *Launcher) RemoveLeft(ctx context.Context, left []core.LeftBehind) error {
	return l.config.removeLeft(ctx, left)
}

// removeLeft removes the leftovers of the instance's steps, now that it is complete and no step is
// resumed. If that fails, the execution is still complete.
func (r *run) removeLeft(ctx context.Context) {
	if r.config.RemoveLeft == nil || !r.attempt.Progress.HasUnfinished() {
		return
	}
	left, err := r.config.Repository.LeftBehind(ctx, r.exec.InstanceID)
	if err == nil {
		err = r.config.removeLeft(ctx, left)
	}
	if err != nil {
		r.config.Observer.Observe(ctx, core.CloseFailed{Execution: r.exec.ID, JobName: r.exec.JobName, Err: err})
	}
}
