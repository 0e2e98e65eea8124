package job

import (
	"context"
	"fmt"
	"sync"

	"github.com/surfin-batch/surfin/internal/lease"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Running is an execution that runs beside the caller, in this process.
type Running struct {
	launched core.JobExecution
	stop     chan struct{}
	once     sync.Once
	cancel   context.CancelCauseFunc
	done     chan struct{}
	exec     *core.JobExecution
	err      error
}

// Start launches the job as Run does, and returns when its execution exists; the
// refusals of a launch are its error. The execution does not end with ctx, whose
// values it keeps: ask it to Stop. Where Config.Spawn refuses, the execution is
// ended as FAILED, and that is how it is described.
func (l *Launcher) Start(ctx context.Context, j *core.Job, params core.Parameters) (*Running, error) {
	running := &Running{stop: make(chan struct{}), done: make(chan struct{})}
	ctx, err := l.apart(ctx, j)
	if err != nil {
		return nil, err
	}
	r, err := l.prepare(ctx, j, params, running.stop)
	if err != nil {
		return nil, err
	}
	running.launched = *r.exec
	running.launched.Context = r.exec.Context.Clone()
	ctx = core.WithPatience(ctx, lease.Bounded(l.config.Lease)) // not that of a request
	ctx, running.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	err = l.config.Spawn(func() {
		defer running.cancel(nil)
		defer close(running.done)
		running.exec, running.err = r.run(ctx)
		if running.err == nil && running.exec.Status == core.StatusParked && l.options.Task == 0 {
			running.exec, running.err = l.afterPark(ctx, j, running.exec, running.stop)
		}
	})
	if err != nil {
		defer running.cancel(nil)
		defer close(running.done)
		running.exec = r.exec
		running.err = r.end(ctx, core.Outcome{}, fmt.Errorf("the execution could not be started: %w", err))
	}
	return running, nil
}

// Execution is the record as it was launched.
func (r *Running) Execution() core.JobExecution { return r.launched }

// Stop asks for a stop: the chunk in hand is finished. It may be called often.
func (r *Running) Stop() { r.once.Do(func() { close(r.stop) }) }

// Cancel ends the work at once, as the end of the context of Run does; the final status
// is written all the same (rules C14, L4). A stop is the gentle way.
func (r *Running) Cancel(cause error) { r.cancel(cause) }

// Done is closed when the execution is over.
func (r *Running) Done() <-chan struct{} { return r.done }

// Wait returns what Run would have returned.
func (r *Running) Wait() (*core.JobExecution, error) {
	<-r.done
	return r.exec, r.err
}
