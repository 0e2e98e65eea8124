package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// RemoveLeft removes, with Config.RemoveLeft, files of steps that will not be resumed.
func (l *Launcher) RemoveLeft(ctx context.Context, left []core.LeftBehind) error {
	if l.config.RemoveLeft == nil {
		return nil
	}
	var errs []error
	for _, of := range left {
		if err := l.config.RemoveLeft(ctx, of); err != nil {
			errs = append(errs, fmt.Errorf("remove what step %s left behind: %w", of.Step, err))
		}
	}
	return errors.Join(errs...)
}

// removeLeft removes the leftovers of the instance's steps, now that it is complete and no step is
// resumed. If that fails, the execution is still complete.
func (r *run) removeLeft(ctx context.Context) {
	if r.config.RemoveLeft == nil || !r.progress.hasUnfinished() {
		return
	}
	left, err := r.config.Repository.LeftBehind(ctx, r.exec.InstanceID)
	if err == nil {
		err = r.launcher.RemoveLeft(ctx, left)
	}
	if err != nil {
		r.config.Observer.Observe(ctx, core.CloseFailed{Execution: r.exec.ID, JobName: r.exec.JobName, Err: err})
	}
}
