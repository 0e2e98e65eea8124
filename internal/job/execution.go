package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/job/journal"
	"github.com/surfin-batch/surfin/internal/job/walk"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func (r *run) execute(ctx context.Context) (*core.JobExecution, error) {
	var out core.Outcome
	err := r.whileOwning(ctx, func(ctx, owned context.Context) (err error) {
		out, err = r.work(ctx, owned)
		return err
	})
	if errors.Is(err, core.ErrLostOwner) {
		r.config.Observer.Observe(ctx, core.OwnerLost{Execution: r.exec.ID})
		return r.exec, fmt.Errorf("job %s, execution %d: %w", r.job.Name, r.exec.ID, err)
	}
	if errors.Is(err, ports.ErrParked) {
		return r.exec, r.park(ctx)
	}
	return r.exec, r.end(ctx, out, err)
}

// work runs the steps and listeners after the flow even if ctx has ended, as
// long as this process owns the execution.
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
		out, err = r.finish(cleanupCtx, out, err)
	} else {
		out, err = r.flowAndFinally(ctx, cleanupCtx, listeners)
	}
	if errors.Is(err, ports.ErrParked) { // the resume creates them again
		if closing := listeners.close(cleanupCtx); closing != nil {
			r.config.Observer.Observe(ctx, core.CloseFailed{Execution: r.exec.ID, JobName: r.job.Name, Err: closing})
		}
		return out, ports.ErrParked
	}
	return listeners.after(cleanupCtx, r, out, err)
}

func (r *run) flowAndFinally(ctx, cleanupCtx context.Context, listeners listeners) (core.Outcome, error) {
	parked, out, err := r.parkedFinally()
	if parked != nil && err == nil {
		return r.resumeFinally(cleanupCtx, *parked, out)
	}
	if err == nil {
		out, err = r.flowInTime(ctx, listeners)
	}
	if errors.Is(err, core.ErrLostOwner) || errors.Is(err, ports.ErrParked) {
		return out, err
	}
	if r.wasStopped(ctx, err) {
		out, err = walk.Stopped("stopped on request").Outcome, nil
	}
	return r.finish(cleanupCtx, out, err)
}

func (r *run) begin(ctx context.Context) (context.Context, error) {
	if r.isResumed() {
		return ctx, r.beginResumed(ctx)
	}
	if r.previous != nil {
		if err := r.readHistory(ctx); err != nil {
			return ctx, err
		}
	}
	if err := r.recordStart(ctx); err != nil {
		return ctx, err
	}
	return core.Enter(ctx, r.config.Observer, core.JobStarted{Execution: *r.exec, Restarted: r.previous != nil}), nil
}

func (r *run) recordStart(ctx context.Context) error {
	if r.resumed != nil {
		return r.beginOnWorker(ctx)
	}
	_, err := r.config.Repository.ChangeJob(ctx, r.ref, ports.JobChange{To: core.StatusStarted})
	if found, mine := ports.FoundIn(err); mine && found == core.StatusStopping { // before it began
		r.askStop()
	} else if err != nil {
		return fmt.Errorf("record the start: %w", err)
	}
	r.exec.Status = core.StatusStarted
	r.exec.StartedAt = time.Now().UTC()
	return nil
}

// The timeout excludes the steps after the flow. An execution parked longer
// fails when it is resumed.
func (r *run) flowInTime(ctx context.Context, listeners listeners) (core.Outcome, error) {
	limit := r.job.Timeout
	if limit <= 0 {
		return r.flow(ctx, listeners)
	}
	over := fmt.Errorf("job %s ran into its timeout of %v", r.job.Name, limit)
	timed, cancel := context.WithDeadlineCause(ctx, r.exec.StartedAt.Add(limit), over)
	defer cancel()
	out, err := r.flow(timed, listeners)
	inTime := !errors.Is(context.Cause(timed), over) || err == nil && out.Status != core.StatusFailed
	if inTime || errors.Is(err, core.ErrLostOwner) || errors.Is(err, ports.ErrParked) {
		return out, err
	}
	return core.Outcome{Status: core.StatusFailed, ExitCode: core.ExitFailed, Message: over.Error(), Step: out.Step}, nil
}

func (r *run) flow(ctx context.Context, listeners listeners) (core.Outcome, error) {
	if !r.isResumed() {
		if err := listeners.before(ctx, r); err != nil {
			return core.Outcome{}, err
		}
	}
	w := walk.New(r.attempt, &live{run: r}, walk.Start{Flow: r.job.Flow, Within: journal.AllAttempts()})
	ended, err := w.Run(ctx)
	out := ended.Outcome
	if err != nil || out.Status != core.StatusCompleted || r.job.Expect == nil {
		return out, err
	}
	v := w.View()
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

// The final status is written even if the run's context has ended.
func (r *run) end(ctx context.Context, out core.Outcome, failure error) error {
	ctx = context.WithoutCancel(ctx)
	if failure != nil {
		out = walk.Failed(failure)
	}
	keep := r.exec.Context
	if _, err := keep.Encode(); err != nil { // a context that cannot be stored must not prevent the end
		keep, out = nil, worsened(out, fmt.Errorf("the job's context is not stored: %w", err))
	}
	r.exec.Status, r.exec.ExitCode, r.exec.Error, r.exec.Settles, r.exec.EndedAt = out.Status, out.ExitCode, out.Message, out.Settles, time.Now().UTC()
	change := ports.JobChange{
		To: out.Status, ExitCode: out.ExitCode, Error: out.Message, Settles: out.Settles, Gate: r.exec.Gate, Context: keep,
		Visits: r.attempt.Progress.Unwritten(),
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

// The instance is complete. If the removal fails, the execution is still
// complete.
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
