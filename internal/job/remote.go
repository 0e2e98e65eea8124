package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/workslot"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// RunOnWorkers implements model.JobRunner. The child is PARKED from the start,
// so that any worker begins it. If its worker is lost, another execution
// follows, at most ports.DefaultPartAttempts in all. A child left by a lost
// process is first waited for, without parking.
func (l *Launcher) RunOnWorkers(ctx context.Context, j *model.Job, params core.Parameters, w model.WorkersRequest) (*core.JobExecution, error) {
	ctx, err := l.ownContext(ctx, j)
	if err != nil {
		return nil, err
	}
	var last *core.JobExecution
	if w.Resumed {
		children, err := l.children(ctx, j)
		if err != nil {
			return nil, err
		}
		if len(children) > 0 {
			last = &children[0]
		}
	}
	for {
		if last == nil {
			last, err = l.launchForWorkers(ctx, j, params)
			if err != nil {
				return last, err
			}
		}
		again := false
		switch own := last.Parent == j.Parent; {
		case last.Status.IsOver() && own:
			if again, err = l.mayRelaunch(ctx, j, last, w.Stop); err != nil || !again {
				return last, err
			}
		case last.Status.IsOver():
			again = true // a child of an earlier attempt
		case w.MayPark && own:
			return last, ports.ErrParked
		default:
			err := workslot.WithoutSlot(ctx, func() (err error) {
				last, err = l.awaitParked(ctx, j, last, waiting{stop: w.Stop})
				return err
			})
			if err != nil {
				return last, err
			}
		}
		if again {
			last = nil
		}
	}
}

func (l *Launcher) launchForWorkers(ctx context.Context, j *model.Job, params core.Parameters) (*core.JobExecution, error) {
	launched, _, err := l.create(ctx, j, params, true)
	running, is := errors.AsType[*ports.AlreadyRunningError](err)
	if !is {
		return launched.Execution, err
	}
	left, failure := l.config.Repository.Execution(ctx, running.ExecutionID)
	switch {
	case failure != nil:
		return nil, errors.Join(err, failure)
	case left.Parent == 0 || left.ParentCall != j.ParentCall:
		return nil, err
	}
	return left, nil
}

func (l *Launcher) children(ctx context.Context, j *model.Job) ([]core.JobExecution, error) {
	list, err := l.config.Repository.Executions(ctx, ports.ExecutionFilter{Parent: j.Parent, ParentCall: j.ParentCall})
	if err != nil {
		return nil, fmt.Errorf("read the executions of child job %s: %w", j.Name, err)
	}
	return list, nil
}

func (l *Launcher) mayRelaunch(ctx context.Context, j *model.Job, last *core.JobExecution, stop <-chan struct{}) (bool, error) {
	if last.Status != core.StatusFailed || last.Error != ports.LostOwner || last.StopRequested || model.StopOn(stop).Requested() {
		return false, nil
	}
	list, err := l.children(ctx, j)
	if err != nil {
		return false, err
	}
	lost := 0
	for _, e := range list {
		if e.Error == ports.LostOwner {
			lost++
		}
	}
	return lost < ports.DefaultPartAttempts, nil
}
