package job

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// run is one execution in progress.
type run struct {
	launcher *Launcher
	config   Config
	job      *core.Job
	exec     *core.JobExecution
	ref      core.JobRef
	previous *core.JobExecution
	memory   *memory
	stop     *stopSignal
	// ended is how the flow ended, for what runs after it; nil before.
	ended *core.Outcome
	// contextMu guards exec.Context, which branches of a split share.
	contextMu sync.Mutex
}

func newRun(l *Launcher, j *core.Job, launched core.Launched, stop <-chan struct{}) *run {
	exec := launched.Execution
	return &run{
		launcher: l.With(Options{}), config: l.config, job: j, exec: exec, previous: launched.Previous,
		ref: core.JobRef{ID: exec.ID, Owner: exec.Owner, Epoch: exec.Epoch}, memory: newMemory(nil), stop: newStopSignal(stop),
	}
}

// run runs the execution to its end. Its heartbeats go on while a cancelled run
// cleans up: they end with the execution, or with its ownership.
func (r *run) run(ctx context.Context) (*core.JobExecution, error) {
	owned, lost := context.WithCancelCause(context.WithoutCancel(ctx))
	defer lost(nil)
	runCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	context.AfterFunc(owned, func() { cancel(context.Cause(owned)) })
	beats := r.heartbeats(owned, lost)
	relayed := r.relay(owned)
	out, err := r.work(runCtx, owned)
	lost(nil)
	<-beats
	<-relayed
	if errors.Is(err, core.ErrLostOwner) {
		r.config.Observer.Observe(ctx, core.OwnerLost{Execution: r.exec.ID})
		return r.exec, fmt.Errorf("job %s, execution %d: %w", r.job.Name, r.exec.ID, err)
	}
	return r.exec, r.end(ctx, out, err)
}

// work marks the execution started, walks the flow, and does what comes after it:
// that happens though ctx has ended, as long as the execution is owned.
func (r *run) work(ctx, owned context.Context) (core.Outcome, error) {
	ctx, err := r.begin(ctx)
	if err != nil {
		return core.Outcome{}, err
	}
	listeners, err := r.listeners(ctx)
	if err != nil {
		return core.Outcome{}, err
	}
	out, err := r.flow(ctx, listeners)
	if errors.Is(err, core.ErrLostOwner) {
		return out, errors.Join(err, listeners.close(owned))
	}
	out, err = r.after(owned, out, err)
	return listeners.after(owned, r, out, err)
}

// begin reads the history and records the start. It answers the context of the
// work.
func (r *run) begin(ctx context.Context) (context.Context, error) {
	if r.previous != nil {
		history, err := r.config.Repository.LastSteps(ctx, r.exec.InstanceID, r.exec.AnewSince())
		if err != nil {
			return ctx, fmt.Errorf("read the history of the instance: %w", err)
		}
		r.memory = newMemory(history)
	}
	if _, err := r.config.Repository.ChangeJob(ctx, r.ref, core.JobChange{To: core.StatusStarted}); err != nil {
		return ctx, fmt.Errorf("record the start: %w", err)
	}
	r.exec.Status = core.StatusStarted
	r.exec.StartedAt = time.Now().UTC()
	return core.Enter(ctx, r.config.Observer, core.JobStarted{Execution: *r.exec, Restarted: r.previous != nil}), nil
}

// flow walks the job's flow and checks its gate.
func (r *run) flow(ctx context.Context, listeners *listeners) (core.Outcome, error) {
	if err := listeners.before(ctx, r.exec); err != nil {
		return core.Outcome{}, err
	}
	w := &walk{run: r, flow: r.job.Flow}
	out, err := w.walk(ctx)
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

// failed is the outcome of an execution that an error ended.
func failed(failure error) core.Outcome {
	return core.Outcome{Status: core.StatusFailed, ExitCode: core.ExitFailed, Message: failure.Error()}
}

// end writes the final status, even if the run's context has ended.
func (r *run) end(ctx context.Context, out core.Outcome, failure error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	if failure != nil {
		out = failed(failure)
	}
	r.exec.Status, r.exec.ExitCode, r.exec.Error, r.exec.EndedAt = out.Status, out.ExitCode, out.Message, time.Now().UTC()
	_, err := r.config.Repository.ChangeJob(ctx, r.ref, core.JobChange{
		To: out.Status, ExitCode: out.ExitCode, Error: out.Message, Gate: r.exec.Gate, Context: r.exec.Context,
	})
	if err != nil {
		return errors.Join(fmt.Errorf("job %s, execution %d: record the end: %w", r.job.Name, r.exec.ID, err), failure)
	}
	r.config.Observer.Observe(ctx, core.JobEnded{Execution: *r.exec, Err: failure})
	return nil
}

// askStop passes on a stop request.
func (r *run) askStop() {
	if r.stop.request() {
		r.config.Observer.Observe(context.Background(), core.StopAsked{Execution: r.exec.ID})
	}
}

// spawn runs work beside the caller.
func (r *run) spawn(work func()) error { return r.config.Spawn(work) }

// jobNow is the execution as it is now, for others to read.
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

// recall reads the job's context.
func (r *run) recall(key string) (any, bool) {
	r.contextMu.Lock()
	defer r.contextMu.Unlock()
	return r.exec.Context.Get(key)
}

// remember changes the job's context and stores it. No lock is held while the
// database is written to: on a database with one writer a branch may wait for
// another one's transaction, which may have to read or change the context. Copies
// may arrive in another order than they were made; the repository keeps the newest.
func (r *run) remember(ctx context.Context, change func(*core.ExecutionContext) error) error {
	snapshot, err := r.change(change)
	if err != nil {
		return err
	}
	if err := r.config.Repository.SaveJobContext(ctx, r.ref, snapshot); err != nil {
		return fmt.Errorf("store the job's context: %w", err)
	}
	return nil
}

func (r *run) change(change func(*core.ExecutionContext) error) (*core.ExecutionContext, error) {
	r.contextMu.Lock()
	defer r.contextMu.Unlock()
	if err := change(r.exec.Context); err != nil {
		return nil, err
	}
	return r.exec.Context.Clone(), nil
}

// promote puts values of a step into the job's context (rule D4).
func (r *run) promote(ctx context.Context, values map[string]any) error {
	return r.remember(ctx, func(c *core.ExecutionContext) error {
		var errs []error
		for key, value := range values {
			errs = append(errs, c.Put(key, value))
		}
		return errors.Join(errs...)
	})
}
