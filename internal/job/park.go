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
	// parkedPollMax is the longest pause between two queries of a process that waits for the end of a
	// parked execution (model.NextLook): one SELECT by its key, so that a command ends soon after its
	// job.
	parkedPollMax = 200 * time.Millisecond
	// parkedPoll is the time between two of its attempts to resume the execution; workers resume it by
	// themselves.
	parkedPoll = time.Second
)

// park releases an execution that waits for partitions. It stores a stop that was requested meanwhile:
// partitions that no worker has taken end STOPPED.
func (r *run) park(ctx context.Context) error {
	p := ports.Parking{Context: r.exec.Context, Visits: r.attempt.Progress.Unwritten()}
	asked := 0
	err := r.lease.Record(context.WithoutCancel(ctx), func(ctx context.Context) error {
		asked++
		if r.stop.isRequested() {
			if err := requestStop(ctx, r.config.Repository, r.exec.ID, r.config.Owner); err != nil {
				return err
			}
		}
		_, err := r.config.Repository.Park(ctx, r.ref, p)
		if _, refused := errors.AsType[*core.TransitionError](err); refused && !errors.Is(err, core.ErrLostOwner) {
			p.Stopping = true
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

func requestStop(ctx context.Context, repository ports.JobRepository, id core.JobExecutionID, by core.Owner) error {
	_, err := repository.RequestStop(ctx, id, by.String())
	if refused, ok := errors.AsType[*core.TransitionError](err); ok && refused.Current.IsOver() {
		return nil
	}
	return err
}

// Resumption configures the early end of a resumed execution. Its channels may be nil.
type Resumption struct {
	// Stop requests a stop of the execution, like the stop of Launcher.Run.
	Stop <-chan struct{}
	// Worker is the Worker of ports.ResumeRequest.
	Worker string
	// Release gives the execution back: it is parked between two steps of the job's own flow, or within
	// a step after its last commit, and another process resumes it. A step made of other steps, a
	// branch or a group is finished first.
	Release <-chan struct{}
}

// Resume continues a parked execution that has no open partitions, in the same attempt, and returns
// when it is over or parked again. j is the job of the stored definition, bound to the execution's
// parameters. A *core.TransitionError means that another process resumed it, or that it waits.
//
// It is not a restart: no step runs again, and no listener or observer is notified twice.
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

// beginOnWorker begins an execution that was launched for workers. The launch did not store the steps
// that take the new definition.
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

// waiting configures how a process waits for a parked execution.
type waiting struct {
	// stop requests a stop of the execution. When left is closed, the wait ends, and the execution
	// continues.
	stop, left <-chan struct{}
	// here means that the process resumes the execution, not only to stop it.
	here bool
}

// ErrLeft ends a wait for a parked execution, which continues (Running.Leave).
var ErrLeft = errors.New("this process no longer waits")

// awaitParked waits until a parked execution is over, without owning it, and resumes it if no other
// process does. The end of ctx leaves it parked.
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
