package job

import (
	"context"
	"fmt"
	"sync"

	"github.com/surfin-batch/surfin/internal/lease"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Running is an execution that runs in this process.
type Running struct {
	launched core.JobExecution
	stop     chan struct{}
	once     sync.Once
	mu       sync.Mutex
	waits    bool          // the execution is parked, and this process waits for its end
	stopped  bool          // Stop was called
	left     chan struct{} // closed when this process no longer waits
	cancel   context.CancelCauseFunc
	done     chan struct{}
	exec     *core.JobExecution
	err      error
}

// Start launches as Run does, and returns when the execution exists. It does
// not end with ctx, but keeps its values: call Stop. If Config.Spawn refuses,
// the execution is ended as FAILED and returned.
func (l *Launcher) Start(ctx context.Context, j *model.Job, params core.Parameters) (*Running, error) {
	running := &Running{stop: make(chan struct{}), left: make(chan struct{}), done: make(chan struct{})}
	ctx, err := l.ownContext(ctx, j)
	if err != nil {
		return nil, err
	}
	r, err := l.prepare(ctx, j, params, running.stop)
	if err != nil {
		return nil, err
	}
	running.launched = *r.exec
	running.launched.Context = r.exec.Context.Clone()
	ctx = model.WithPatience(ctx, lease.Bounded(l.config.Lease)) // not the patience of a request
	ctx, running.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	err = l.config.Spawn(func() {
		defer running.cancel(nil)
		defer close(running.done)
		running.exec, running.err = r.execute(ctx)
		if running.err == nil && running.exec.Status == core.StatusParked && l.options.Task == 0 {
			running.exec, running.err = l.awaitParked(ctx, j, running.exec, running.startWaiting())
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

// Stop requests a stop. It may be called repeatedly.
func (r *Running) Stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	r.endRun()
}

func (r *Running) endRun() { r.once.Do(func() { close(r.stop) }) }

// Leave requests a stop. A parked execution belongs to no process (rule P5):
// Leave ends the wait, and gives it back if resumed here.
func (r *Running) Leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.waits {
		r.endRun()
		return
	}
	r.endWait()
}

func (r *Running) endWait() {
	select {
	case <-r.left:
	default:
		close(r.left)
	}
}

// startWaiting is called once the execution is parked. A Leave that came between the commit of that
// and its reply found a run to stop, but must end the wait; if the run stored the stop when it
// parked, the execution ends STOPPED.
func (r *Running) startWaiting() waiting {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waits = true
	w := waiting{stop: r.stop, left: r.left, here: true}
	select {
	case <-r.stop:
		if !r.stopped && !r.exec.StopRequested {
			w.stop = nil
			r.endWait()
		}
	default:
	}
	return w
}

// Cancel ends the work at once; the final status is still written (rules C14,
// L4).
func (r *Running) Cancel(cause error) { r.cancel(cause) }

// Done is closed when the execution is over.
func (r *Running) Done() <-chan struct{} { return r.done }

// Wait returns the results that Run would have returned.
func (r *Running) Wait() (*core.JobExecution, error) {
	<-r.done
	return r.exec, r.err
}
