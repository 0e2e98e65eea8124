package job

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/internal/lease"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

// run is one execution in progress.
type run struct {
	launcher *Launcher
	config   Config
	job      *model.Job
	exec     *core.JobExecution
	ref      ports.JobRef
	previous *core.JobExecution
	progress *progress
	journal  *journal
	stop     *stopSignal
	// newDefinition are the steps that take the new definition (rule F4a).
	newDefinition []string
	lease         *lease.Keeper
	// lost ends the work of a run that may not continue it.
	lost context.CancelCauseFunc
	// resumed is set for an execution that was parked, also before it began. resuming means that the
	// walk has not reached the step that waited.
	resumed  *ports.Resumed
	resuming bool
	// part is the part of the split's branch that this run walks (rule P8); nil means that it runs the
	// job. root is the log of that branch.
	part *core.StepExecution
	root string
	// ended is the outcome of the flow, for the steps and listeners after it; nil before.
	ended *core.Outcome
	// contextMu guards exec.Context, which branches of a split share.
	contextMu sync.Mutex
}

// newRun returns the run of an execution that was requested at the clock's time since.
func newRun(l *Launcher, j *model.Job, launched ports.Launched, since time.Duration, stop <-chan struct{}) *run {
	exec := launched.Execution
	r := &run{
		launcher: l.With(Options{AcceptChanges: l.options.AcceptChanges}), config: l.config, job: j, exec: exec, previous: launched.Previous,
		ref: ports.JobRef{ID: exec.ID, Owner: exec.Owner, Epoch: exec.Epoch}, progress: newProgress(nil), journal: &journal{}, stop: newStopSignal(stop),
		lost: func(error) {},
	}
	r.lease = r.newLease(since)
	return r
}

func (r *run) run(ctx context.Context) (*core.JobExecution, error) {
	var out core.Outcome
	err := r.owning(ctx, func(ctx, owned context.Context) (err error) {
		out, err = r.work(ctx, owned)
		return err
	})
	if errors.Is(err, core.ErrLostOwner) {
		r.config.Observer.Observe(ctx, core.OwnerLost{Execution: r.exec.ID})
		return r.exec, fmt.Errorf("job %s, execution %d: %w", r.job.Name, r.exec.ID, err)
	}
	if errors.Is(err, core.ErrParked) {
		return r.exec, r.park(ctx)
	}
	return r.exec, r.end(ctx, out, err)
}

// owning calls f with the context of the work, and with one that ends only with the ownership.
// Heartbeats continue while a cancelled run cleans up: they end with the work or the ownership. If the
// owner is lost or the lease is not renewed, the work and all that follows it end at once.
func (r *run) owning(ctx context.Context, f func(ctx, owned context.Context) error) error {
	owned, lost := context.WithCancelCause(context.WithoutCancel(ctx))
	defer lost(nil)
	r.lost = lost
	runCtx, cancel := context.WithCancelCause(model.WithPatience(ctx, r.lease))
	defer cancel(nil)
	context.AfterFunc(owned, func() { cancel(context.Cause(owned)) })
	r.lease.Start(model.WithPatience(owned, nil)) // heartbeats do not wait
	defer r.lease.Wait()
	relayed := r.relay(owned)
	err := f(runCtx, model.WithPatience(owned, r.lease))
	r.lease.Stop()
	lost(nil)
	<-relayed
	return err
}

// work marks the execution started, walks the flow, and runs the steps and listeners after it: these
// run even if ctx has ended, as long as this process owns the execution.
func (r *run) work(ctx, leaseCtx context.Context) (core.Outcome, error) {
	ctx, err := r.begin(ctx)
	if err != nil {
		return core.Outcome{}, err
	}
	cleanupCtx, endCleanup := r.cleanupCtx(ctx, leaseCtx)
	defer endCleanup()
	var out core.Outcome
	listeners, err := r.listeners(ctx)
	if err != nil {
		out, err = r.after(cleanupCtx, out, err)
	} else {
		out, err = r.flowAndAfter(ctx, cleanupCtx, listeners)
	}
	if errors.Is(err, core.ErrParked) { // the resume creates them again
		if closing := listeners.close(cleanupCtx); closing != nil {
			r.config.Observer.Observe(ctx, core.CloseFailed{Execution: r.exec.ID, JobName: r.job.Name, Err: closing})
		}
		return out, core.ErrParked
	}
	return listeners.after(cleanupCtx, r, out, err)
}

// flowAndAfter walks the flow and runs the steps after it, or only those if the execution was given
// back there.
func (r *run) flowAndAfter(ctx, cleanupCtx context.Context, listeners *listeners) (core.Outcome, error) {
	parked, out, err := r.parkedFinally()
	if parked != nil && err == nil {
		return r.resumeFinally(cleanupCtx, *parked, out)
	}
	if err == nil {
		out, err = r.flowInTime(ctx, listeners)
	}
	if errors.Is(err, core.ErrLostOwner) || errors.Is(err, core.ErrParked) {
		return out, err
	}
	if r.wasStopped(ctx, err) {
		out, err = stopped("stopped on request"), nil
	}
	return r.after(cleanupCtx, out, err)
}

// cleanupCtx returns the context for the time after the flow. It ends with the ownership, or the grace
// time after ctx has ended: a second signal must not wait for ever (rule L4).
func (r *run) cleanupCtx(ctx, leaseCtx context.Context) (cleanupCtx context.Context, end func()) {
	cleanupCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	lost := context.AfterFunc(leaseCtx, func() { cancel(context.Cause(leaseCtx)) })
	ended := context.AfterFunc(ctx, func() {
		grace := time.NewTimer(r.config.Grace)
		defer grace.Stop()
		select {
		case <-cleanupCtx.Done():
		case <-grace.C:
			cancel(fmt.Errorf("what comes after the flow was given %v: %w", r.config.Grace, context.Cause(ctx)))
		}
	})
	return cleanupCtx, func() {
		lost()
		ended()
		cancel(nil)
	}
}

// wasStopped reports whether err is only the cancellation of a requested stop that took too long,
// between two steps: a step itself ends STOPPED.
func (r *run) wasStopped(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() != nil && r.stop.requested() && errors.Is(err, context.Canceled) && !errors.Is(err, core.ErrLostOwner)
}

// callWithGrace calls an author's code. It returns while the code still runs, and leaves its goroutine
// running, if the grace time after the end of ctx is over (rule L8) or the lease nearly is (rule L9).
func (r *run) callWithGrace(ctx context.Context, f func() error) error {
	select {
	case <-r.lease.Late(): // there is no time for it
		return fmt.Errorf("not called: %w", context.Cause(ctx))
	default:
	}
	done := make(chan error, 1)
	go exception.GuardGoroutine(f, func(err error) { done <- err })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	late := time.NewTimer(r.config.Grace)
	defer late.Stop()
	select {
	case err := <-done:
		return err
	case <-late.C:
	case <-r.lease.Late():
		r.config.Observer.Observe(ctx, core.ComponentLate{Execution: r.exec.ID, JobName: r.job.Name, Err: context.Cause(ctx)})
	}
	return fmt.Errorf("it did not return in time; its goroutine is left behind (%w)", context.Cause(ctx))
}

// begin reads the history and records the start. It returns the context of the
// work.
func (r *run) begin(ctx context.Context) (context.Context, error) {
	if r.continues() {
		return ctx, r.resume(ctx)
	}
	if r.previous != nil {
		history, err := r.config.Repository.LastSteps(ctx, r.exec.InstanceID, r.exec.AnewSince())
		if err != nil {
			return ctx, fmt.Errorf("read the history of the instance: %w", err)
		}
		r.progress = newProgress(history)
		if r.journal, err = newJournal(ctx, r.config.Repository, r.exec, history); err != nil {
			return ctx, fmt.Errorf("read the history of the instance: %w", err)
		}
	}
	if err := r.started(ctx); err != nil {
		return ctx, err
	}
	return core.Enter(ctx, r.config.Observer, core.JobStarted{Execution: *r.exec, Restarted: r.previous != nil}), nil
}

// started records the start. If a worker begins the execution, the resume has recorded it.
func (r *run) started(ctx context.Context) error {
	if r.resumed != nil {
		return r.beginHere(ctx)
	}
	_, err := r.config.Repository.ChangeJob(ctx, r.ref, ports.JobChange{To: core.StatusStarted})
	if found, mine := core.FoundIn(err); mine && found == core.StatusStopping { // before it began
		r.askStop()
	} else if err != nil {
		return fmt.Errorf("record the start: %w", err)
	}
	r.exec.Status = core.StatusStarted
	r.exec.StartedAt = time.Now().UTC()
	return nil
}

// flowInTime is flow within the job's timeout, which excludes the steps after the flow. An execution
// that is parked longer than that fails when it is resumed.
func (r *run) flowInTime(ctx context.Context, listeners *listeners) (core.Outcome, error) {
	limit := r.job.Timeout
	if limit <= 0 {
		return r.flow(ctx, listeners)
	}
	over := fmt.Errorf("job %s ran into its timeout of %v", r.job.Name, limit)
	timed, cancel := context.WithDeadlineCause(ctx, r.exec.StartedAt.Add(limit), over)
	defer cancel()
	out, err := r.flow(timed, listeners)
	inTime := !errors.Is(context.Cause(timed), over) || err == nil && out.Status != core.StatusFailed
	if inTime || errors.Is(err, core.ErrLostOwner) || errors.Is(err, core.ErrParked) {
		return out, err
	}
	return core.Outcome{Status: core.StatusFailed, ExitCode: core.ExitFailed, Message: over.Error(), Step: out.Step}, nil
}

// flow walks the job's flow and checks its gate.
func (r *run) flow(ctx context.Context, listeners *listeners) (core.Outcome, error) {
	if !r.continues() {
		if err := listeners.before(ctx, r); err != nil {
			return core.Outcome{}, err
		}
	}
	w := &walk{run: r, port: &live{r}, flow: r.job.Flow, log: r.journal.log(r.job.Flow, "", allAttempts())}
	ended, err := w.walk(ctx)
	out := ended.out
	if err != nil || out.Status != core.StatusCompleted || r.job.Expect == nil {
		return out, err
	}
	v := w.view()
	v.Outcome = &out
	held, gate, err := r.job.Expect.Check(ctx, v)
	r.exec.Gate = gate
	r.config.Observer.Observe(ctx, core.GateChecked{Execution: r.exec.ID, JobName: r.job.Name, Gate: gate, Held: held})
	switch {
	case err != nil:
		return core.Outcome{}, fmt.Errorf("expect: %w", err)
	case !held:
		return core.Outcome{Status: core.StatusFailed, ExitCode: core.ExitExpectFailed, Message: "expect: " + gate}, nil
	}
	return out, nil
}

func failed(failure error) core.Outcome {
	return core.Outcome{Status: core.StatusFailed, ExitCode: core.ExitFailed, Message: failure.Error()}
}

// end writes the final status, even if the run's context has ended.
func (r *run) end(ctx context.Context, out core.Outcome, failure error) error {
	ctx = context.WithoutCancel(ctx)
	if failure != nil {
		out = failed(failure)
	}
	keep := r.exec.Context
	if _, err := keep.Encode(); err != nil { // a context that cannot be stored must not prevent the end
		keep, out = nil, worsened(out, fmt.Errorf("the job's context is not stored: %w", err))
	}
	r.exec.Status, r.exec.ExitCode, r.exec.Error, r.exec.Settles, r.exec.EndedAt = out.Status, out.ExitCode, out.Message, out.Settles, time.Now().UTC()
	change := ports.JobChange{
		To: out.Status, ExitCode: out.ExitCode, Error: out.Message, Settles: out.Settles, Gate: r.exec.Gate, Context: keep,
		Visits: r.progress.unwrittenVisits(),
	}
	record := func(ctx context.Context) error {
		_, err := r.config.Repository.ChangeJob(ctx, r.ref, change)
		return err
	}
	err := r.lease.Record(ctx, record)
	if errors.Is(err, core.ErrContextTooLarge) { // with the values that partitions on workers promoted
		out = worsened(out, fmt.Errorf("the job's context is not stored: %w", err))
		change.To, change.ExitCode, change.Error, change.Context = out.Status, out.ExitCode, out.Message, nil
		r.exec.Status, r.exec.ExitCode, r.exec.Error = out.Status, out.ExitCode, out.Message
		err = r.lease.Record(ctx, record)
	}
	if err != nil {
		r.config.Observer.Observe(ctx, core.EndNotRecorded{Execution: r.exec.ID, JobName: r.job.Name, To: out.Status, Err: err})
		return errors.Join(fmt.Errorf("job %s, execution %d: record the end: %w", r.job.Name, r.exec.ID, err), failure)
	}
	r.config.Observer.Observe(ctx, core.JobEnded{Execution: *r.exec, Err: failure})
	if out.Status == core.StatusCompleted {
		r.removeLeft(ctx)
	}
	return nil
}

func (r *run) askStop() {
	if r.stop.request() {
		r.config.Observer.Observe(context.Background(), core.StopAsked{Execution: r.exec.ID})
	}
}

// jobNow returns a snapshot of the execution for others to read.
func (r *run) jobNow() *core.JobExecution {
	r.contextMu.Lock()
	defer r.contextMu.Unlock()
	now := *r.exec
	now.Context = r.exec.Context.Clone()
	if r.ended != nil {
		now.Status, now.ExitCode, now.Error = r.ended.Status, r.ended.ExitCode, r.ended.Message
	}
	return &now
}

// promote puts values of a step into the job's context and stores them (rule D4): all or none, since a
// context that became too large could not be stored at the end either. It holds no lock during the
// database write: on a database with one writer a branch may wait for another branch's transaction,
// which may have to read or change the context. Only the values are written, so their order does not
// matter.
func (r *run) promote(ctx context.Context, values map[string]any) error {
	promoted := core.NewExecutionContext()
	for key, value := range values {
		if err := promoted.Put(key, value); err != nil {
			return err
		}
	}
	if err := r.merge(promoted); err != nil {
		return err
	}
	if err := r.config.Repository.SaveJobContext(ctx, r.ref, promoted); err != nil {
		return fmt.Errorf("store the job's context: %w", err)
	}
	return nil
}

func (r *run) merge(changes *core.ExecutionContext) error {
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

// refresh reads the values that partitions on workers promoted.
func (r *run) refresh(ctx context.Context) error {
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
