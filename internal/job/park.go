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
	// parkedLook is the longest pause between two queries of a process that waits for the end of a
	// parked execution (model.NextLook): one SELECT by its key, so that a command ends soon after its
	// job.
	parkedLook = 200 * time.Millisecond
	// parkedPoll is the time between two of its attempts to resume the execution; workers resume it by
	// themselves.
	parkedPoll = time.Second
)

// park releases an execution that waits for partitions. It stores a stop that was requested meanwhile:
// partitions that no worker has taken end STOPPED.
func (r *run) park(ctx context.Context) error {
	p := ports.Parking{Context: r.exec.Context, Visits: r.progress.unwrittenVisits()}
	asked := 0
	err := r.lease.Record(context.WithoutCancel(ctx), func(ctx context.Context) error {
		asked++
		if r.stop.requested() {
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

// requestStop stores a request to stop. If the execution is over it does nothing: the caller reads it
// again.
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
// A resume is not a restart: the execution's visits stand, no step runs again, and listeners and
// observers are notified of nothing twice.
func (l *Launcher) Resume(ctx context.Context, j *model.Job, id core.JobExecutionID, o Resumption) (*core.JobExecution, error) {
	if err := validate(j); err != nil {
		return nil, fmt.Errorf("job %s: %w", j.Name, err)
	}
	ctx = l.patient(ctx)
	owner := l.config.Owner
	owner.Nonce = rand.Text()[:8] // two that resume in one process are two owners
	since := l.clock().Now()
	resumed, err := l.config.Repository.Resume(ctx, id, ports.ResumeRequest{Owner: owner, Worker: o.Worker, Lease: l.config.Lease, Dead: l.config.Dead})
	if err != nil {
		return nil, err
	}
	if resumed.Execution.Context == nil {
		resumed.Execution.Context = core.NewExecutionContext()
	}
	r := newRun(l, j, ports.Launched{Execution: resumed.Execution, Previous: resumed.Previous}, since, o.Stop)
	r.stop.release = o.Release
	r.resumed = &resumed
	return r.run(ctx)
}

func (r *run) continues() bool { return r.resumed != nil && !r.resumed.First }

// beginHere begins an execution that was launched for workers. The launch has compared its definition;
// beginHere finds the steps that take the new one again. An execution that runs everything again
// resumes no step.
func (r *run) beginHere(ctx context.Context) (err error) {
	if r.previous != nil && r.exec.AnewSince() != r.exec.ID {
		r.newDefinition, err = r.launcher.compare(ctx, r.job, r.previous, r.exec.Params, nil)
	}
	if r.exec.StopRequested {
		r.askStop()
	}
	return err
}

// resume reads the history of an execution that was parked. The walk replays it up to the step that
// waited.
func (r *run) resume(ctx context.Context) error {
	history, err := r.config.Repository.LastSteps(ctx, r.exec.InstanceID, r.exec.AnewSince())
	if err != nil {
		return fmt.Errorf("read the history of the instance: %w", err)
	}
	r.progress = newProgress(history)
	if r.journal, err = newJournal(ctx, r.config.Repository, r.exec, history); err != nil {
		return fmt.Errorf("read the history of the instance: %w", err)
	}
	if r.exec.StopRequested {
		r.askStop()
	}
	r.resuming = true
	return nil
}

func (r *run) waitedFor(id core.StepExecutionID) bool {
	if r.resumed == nil || !r.resuming && r.part == nil {
		return false
	}
	for _, s := range r.resumed.Steps {
		if s.ID == id {
			return true
		}
	}
	return false
}

// came notes that the walk has reached the step that was parked.
func (r *run) came(id core.StepExecutionID) {
	r.resuming = false
	r.resumed.Steps = slices.DeleteFunc(r.resumed.Steps, func(s core.StepExecution) bool { return s.ID == id })
}

// releasing reports whether the execution is to be given back, and not stopped.
func (r *run) releasing() bool { return r.stop.isReleased() && !r.stop.requested() }

// afterPark waits until a parked execution is over, without owning it, and resumes it if no other
// process does. Closing stop requests a stop of the execution. The end of ctx leaves it parked.
func (l *Launcher) afterPark(ctx context.Context, j *model.Job, exec *core.JobExecution, stop <-chan struct{}) (*core.JobExecution, error) {
	return l.await(ctx, j, exec, waiting{stop: stop, here: true})
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
var ErrLeft = errors.New("this process does not wait any more")

func (l *Launcher) await(ctx context.Context, j *model.Job, exec *core.JobExecution, w waiting) (*core.JobExecution, error) {
	ctx = l.patient(ctx)
	begin := time.Now()
	asked, tried := w.stop, begin
	left := func(cause error) error {
		return fmt.Errorf("job %s, execution %d is parked, and workers continue it: %w", exec.JobName, exec.ID, cause)
	}
	for {
		timer := time.NewTimer(model.NextLook(time.Since(begin), parkedLook))
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
