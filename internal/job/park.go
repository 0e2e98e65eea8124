package job

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const (
	// parkedPollMax: one SELECT by key (model.NextLook), so that a command ends
	// soon after its job.
	parkedPollMax = 200 * time.Millisecond
	// Between two attempts to resume; workers resume by themselves.
	parkedPoll = time.Second
)

// A stop requested meanwhile is stored: partitions that no worker has taken end
// STOPPED.
func (r *run) park(ctx context.Context) error {
	p := ports.Parking{Context: r.exec.Context, Visits: r.attempt.Progress.Unwritten()}
	asked := 0
	err := r.lease.Record(context.WithoutCancel(ctx), func(ctx context.Context) error {
		asked++
		if r.stop.isRequested() {
			if err := requestStop(ctx, r.config.Repository, r.exec.ID, r.config.Owner); err != nil {
				return err
			}
			r.exec.StopRequested = true
		}
		_, err := r.config.Repository.Park(ctx, r.ref, p)
		if _, refused := errors.AsType[*core.TransitionError](err); refused && !errors.Is(err, core.ErrLostOwner) {
			p.Stopping, r.exec.StopRequested = true, true
			_, err = r.config.Repository.Park(ctx, r.ref, p)
		}
		return err
	})
	if asked > 1 && errors.Is(err, core.ErrLostOwner) {
		err = nil // the request with the lost reply parked it; its new owner continues it
	}
	if err != nil {
		return fmt.Errorf("park: %w", err)
	}
	r.exec.Status, r.exec.Owner = core.StatusParked, core.Owner{}
	return nil
}

func requestStop(ctx context.Context, stops ports.Stops, id core.JobExecutionID, by core.Owner) error {
	_, err := stops.RequestStop(ctx, id, ports.By{Actor: by.String()})
	if refused, ok := errors.AsType[*core.TransitionError](err); ok && refused.Current.IsOver() {
		return nil
	}
	return err
}

// Resumption ends a resumed execution early. Channels may be nil.
type Resumption struct {
	// Stop is as in Launcher.Run.
	Stop <-chan struct{}
	// As in ports.ResumeRequest.
	Worker string
	// Release parks it between two steps, or within one after a commit.
	// Composite steps, branches and groups finish first.
	Release <-chan struct{}
}

// Resume continues a parked execution without open partitions, in the same
// attempt, until it is over or parked again. A *core.TransitionError means that
// another process did, or that it waits. No step runs again, and no listener or
// observer is notified twice.
func (l *Launcher) Resume(ctx context.Context, j *model.Job, id core.JobExecutionID, o Resumption) (*core.JobExecution, error) {
	if err := validate(j); err != nil {
		return nil, fmt.Errorf("job %s: %w", j.Name, err)
	}
	ctx = l.withPatience(ctx)
	owner := l.config.Owner
	owner.Nonce = rand.Text()[:8] // two that resume in one process are two owners
	since := l.config.clock().Now()
	resumed, err := l.config.Repository.Resume(ctx, id, ports.ResumeRequest{Owner: owner, Worker: o.Worker, Lease: l.config.Lease, Dead: l.config.Dead})
	if err != nil {
		return nil, err
	}
	r := l.newRun(j, ports.Launched{Execution: resumed.Execution, Previous: resumed.Previous}, since, o.Stop)
	r.stop.release = o.Release
	r.resumed, r.attempt.Waited = &resumed, slices.Clone(resumed.Steps)
	return r.execute(ctx)
}

// The launch did not store the steps that take the new definition.
func (r *run) beginOnWorker(ctx context.Context) (err error) {
	if r.previous != nil && r.exec.AnewSince() != r.exec.ID {
		r.changedSteps, err = r.config.checkDefinition(ctx, r.job, r.previous, r.exec.Params, nil)
	}
	if r.exec.StopRequested {
		r.askStop()
	}
	return err
}

func (r *run) beginResumed(ctx context.Context) error {
	if err := r.readHistory(ctx); err != nil {
		return err
	}
	if r.exec.StopRequested {
		r.askStop()
	}
	r.attempt.Resuming = true
	return nil
}

type waiting struct {
	// When left is closed, the wait ends, and the execution continues.
	stop, left <-chan struct{}
	// here: the process resumes it, not only to stop it.
	here bool
}

// ErrLeft ends a wait for a parked execution, which continues.
var ErrLeft = errors.New("this process no longer waits")

// awaitParked does not own the execution, and resumes it if no other process
// does. The end of ctx leaves it parked.
func (l *Launcher) awaitParked(ctx context.Context, j *model.Job, exec *core.JobExecution, w waiting) (*core.JobExecution, error) {
	ctx = l.withPatience(ctx)
	begin := time.Now()
	asked, tried := w.stop, begin
	left := func(cause error) error {
		return fmt.Errorf("job %s, execution %d is parked, and workers continue it: %w", exec.JobName, exec.ID, cause)
	}
	for {
		timer := time.NewTimer(model.NextLook(time.Since(begin), parkedPollMax))
		select {
		case <-ctx.Done():
			timer.Stop()
			return exec, left(context.Cause(ctx))
		case <-w.left:
			timer.Stop()
			return exec, left(ErrLeft)
		case <-asked:
			asked, tried = nil, time.Time{}
			if err := requestStop(ctx, l.config.Repository, exec.ID, l.config.Owner); err != nil {
				return exec, err
			}
		case <-timer.C:
		}
		timer.Stop()
		now, err := l.config.Repository.Execution(ctx, exec.ID)
		switch {
		case err != nil:
			return exec, err
		case now.Status.IsOver():
			return now, nil
		case time.Since(tried) < parkedPoll:
			continue
		}
		tried = time.Now()
		if now.Owner != (core.Owner{}) { // it ends the leftover of a lost owner, as a launch would
			if _, err := l.config.Repository.Recover(ctx, l.config.Owner.String(), l.config.Dead); err != nil {
				return exec, err
			}
			continue
		}
		if !w.here && !now.StopRequested {
			continue
		}
		now, err = l.Resume(ctx, j, exec.ID, Resumption{Stop: w.stop, Release: w.left})
		if _, waits := errors.AsType[*core.TransitionError](err); waits && !errors.Is(err, core.ErrLostOwner) {
			continue
		}
		if err != nil || now.Status.IsOver() {
			return now, err
		}
	}
}
