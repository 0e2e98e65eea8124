package job

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/internal/job/journal"
	"github.com/surfin-batch/surfin/internal/job/walk"
	"github.com/surfin-batch/surfin/internal/lease"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/series/sampling"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type run struct {
	config        Config
	acceptChanges bool
	children      model.JobRunner
	job           *model.Job
	exec          *core.JobExecution
	ref           ports.JobRef
	previous      *core.JobExecution
	attempt       *walk.Attempt
	stop          *stopSignal
	// Those that take the new definition (rule F4a).
	changedSteps []string
	lease        *lease.Keeper
	samples      *sampling.Recorder
	endWork      context.CancelCauseFunc
	// Of a parked execution, also before it began.
	resumed *ports.Resumed
	// part is the branch's part (rule P8); nil: the run runs the job.
	part      *core.StepExecution
	branchLog string
	// contextMu guards exec.Context, which branches of a split share.
	contextMu sync.Mutex
}

func newRun(config Config, j *model.Job, launched ports.Launched, since time.Duration, stop <-chan struct{}) *run {
	exec := launched.Execution
	r := &run{
		config: config, job: j, exec: exec, previous: launched.Previous, ref: ports.JobRef{ID: exec.ID, Owner: exec.Owner, Epoch: exec.Epoch},
		stop: newStopSignal(stop), endWork: func(error) {},
	}
	r.attempt = &walk.Attempt{ID: exec.ID, Journal: &journal.Journal{}, Progress: walk.NewProgress(nil), Execution: r.snapshot}
	r.lease = r.newLease(since)
	r.sample()
	return r
}

// sample has the steps of the executor sampled, and the samples stored under the guard of the heartbeats.
func (r *run) sample() {
	r.samples = sampling.New(sampling.Config{
		Store: r.config.Repository.Series, Guard: r.ref, Heartbeat: r.config.Heartbeat, Observer: r.config.Observer,
	})
	r.config.Executor = r.samples.Executor(r.config.Executor)
}

func (r *run) newLease(since time.Duration) *lease.Keeper {
	return lease.New(lease.Config{
		Clock: r.config.clock(), Lease: r.config.Lease, Heartbeat: r.config.Heartbeat, Since: since, End: func(cause error) { r.endWork(cause) },
		Beat: func(ctx context.Context) error {
			stop, err := r.heartbeat(ctx)
			if stop {
				r.askStop()
			}
			if err == nil {
				r.samples.Beat()
			}
			return err
		},
		Failed: func(err error) {
			r.config.Observer.Observe(context.Background(), core.HeartbeatFailed{Execution: r.exec.ID, Err: err})
		},
	})
}

func (r *run) heartbeat(ctx context.Context) (stop bool, err error) {
	if r.part != nil {
		return r.config.Repository.HeartbeatStep(ctx, r.partRef(), r.config.Lease)
	}
	return r.config.Repository.Heartbeat(ctx, r.ref, r.config.Lease)
}

// whileOwning gives f the work's context, and one that ends with the ownership:
// heartbeats continue while a cancelled run cleans up. If the owner or lease is
// lost, both end at once.
func (r *run) whileOwning(ctx context.Context, f func(ctx, owned context.Context) error) error {
	owned, lost := context.WithCancelCause(context.WithoutCancel(ctx))
	defer lost(nil)
	r.endWork = lost
	runCtx, cancel := context.WithCancelCause(model.WithPatience(ctx, r.lease))
	defer cancel(nil)
	context.AfterFunc(owned, func() { cancel(context.Cause(owned)) })
	r.lease.Start(model.WithPatience(owned, nil)) // heartbeats do not wait
	defer r.lease.Wait()
	r.samples.Start(owned)
	relayed := r.relayStop(owned)
	err := f(runCtx, model.WithPatience(owned, r.lease))
	r.samples.Stop()
	r.lease.Stop()
	lost(nil)
	<-relayed
	return err
}

func (r *run) relayStop(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-r.stop.caller:
			r.askStop()
		case <-r.stop.requested:
		case <-r.stop.release:
		case <-ctx.Done():
			return
		}
		close(r.stop.either)
		select {
		case <-r.stop.caller:
			r.askStop()
		case <-ctx.Done():
		}
	}()
	return done
}

// cleanupCtx ends with the ownership, or the grace time after ctx: a second
// signal must not wait for ever (rule L4).
func (r *run) cleanupCtx(ctx, leaseCtx context.Context) (cleanupCtx context.Context, end func()) {
	cleanupCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	lost := context.AfterFunc(leaseCtx, func() { cancel(context.Cause(leaseCtx)) })
	ended := context.AfterFunc(ctx, func() {
		grace := time.NewTimer(r.config.Grace)
		defer grace.Stop()
		select {
		case <-cleanupCtx.Done():
		case <-grace.C:
			cancel(fmt.Errorf("finally and listeners took longer than the grace time of %v: %w", r.config.Grace, context.Cause(ctx)))
		}
	})
	return cleanupCtx, func() {
		lost()
		ended()
		cancel(nil)
	}
}

// wasStopped: err is only the cancellation of a stop that took too long,
// between two steps; a step itself ends STOPPED.
func (r *run) wasStopped(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() != nil && r.stop.isRequested() && errors.Is(err, context.Canceled) && !errors.Is(err, core.ErrLostOwner)
}

// callWithGrace waits at most the grace time after ctx (rule L8) or the lease
// (rule L9).
func (r *run) callWithGrace(ctx context.Context, f func() error) error {
	select {
	case <-r.lease.Late(): // there is no time for it
		return fmt.Errorf("not called: %w", context.Cause(ctx))
	default:
	}
	returned, ok := model.Await(ctx, model.Go(func() (struct{}, error) { return struct{}{}, f() }), r.config.Grace, r.lease.Late(), func() {
		r.config.Observer.Observe(ctx, core.ComponentLate{Execution: r.exec.ID, JobName: r.job.Name, Err: context.Cause(ctx)})
	})
	if !ok {
		return fmt.Errorf("it did not return in time; its goroutine still runs (%w)", context.Cause(ctx))
	}
	return returned.Err
}

func (r *run) readHistory(ctx context.Context) error {
	past, history, err := journal.Read(ctx, r.config.Repository, r.exec.InstanceID, r.exec.AnewSince())
	if err != nil {
		return err
	}
	r.attempt.Journal, r.attempt.Progress = past, walk.NewProgress(history)
	return nil
}

func (r *run) askStop() {
	if r.stop.request() {
		r.config.Observer.Observe(context.Background(), core.StopAsked{Execution: r.exec.ID})
	}
}

func (r *run) snapshot() *core.JobExecution {
	r.contextMu.Lock()
	defer r.contextMu.Unlock()
	now := *r.exec
	now.Context = r.exec.Context.Clone()
	if r.attempt.Outcome != nil {
		now.Status, now.ExitCode, now.Error = r.attempt.Outcome.Status, r.attempt.Outcome.ExitCode, r.attempt.Outcome.Message
	}
	return &now
}

// promote stores a step's values in the job's context (rule D4): all or none,
// since a too large context could not be stored at the end either. It holds no
// lock during the write: a branch may wait for another's transaction, which may
// need the context.
func (r *run) promote(ctx context.Context, values map[string]any) error {
	promoted := core.NewExecutionContext()
	for key, value := range values {
		if err := promoted.Put(key, value); err != nil {
			return err
		}
	}
	if err := r.addPromoted(promoted); err != nil {
		return err
	}
	if err := r.config.Repository.SaveJobContext(ctx, r.ref, promoted); err != nil {
		return fmt.Errorf("store the job's context: %w", err)
	}
	return nil
}

func (r *run) addPromoted(changes *core.ExecutionContext) error {
	r.contextMu.Lock()
	defer r.contextMu.Unlock()
	changed := r.exec.Context.Clone()
	changed.Merge(changes)
	if _, err := changed.Encode(); err != nil {
		return fmt.Errorf("the job's context: %w", err)
	}
	r.exec.Context = changed
	return nil
}

func (r *run) readPromoted(ctx context.Context) error {
	now, err := r.config.Repository.Execution(ctx, r.exec.ID)
	if err != nil {
		return fmt.Errorf("read the job's context: %w", err)
	}
	r.contextMu.Lock()
	defer r.contextMu.Unlock()
	if now.Context != nil {
		r.exec.Context.Refresh(now.Context)
	}
	return nil
}
