package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/internal/workslot"
)

// Worker takes partitions, parked executions and tasks, and runs them.
type Worker struct {
	config Config
	slots  chan struct{}
	parts  *partSource // may be nil
	tasks  *taskSource // may be nil

	tending sync.Mutex
	tended  time.Time
}

// NewWorker checks the configuration and fills in the defaults.
func NewWorker(config Config) (*Worker, error) {
	if config.Parts == nil && (config.Tasks == nil || config.Tasks.Types != nil && len(config.Tasks.Types) == 0) {
		return nil, errors.New("a worker needs parts or tasks to work on")
	}
	if config.Slots < 0 {
		return nil, fmt.Errorf("a worker with %d slots: there must be at least one", config.Slots)
	}
	config.fill()
	if config.Heartbeat < 0 || config.Lease < 2*config.Heartbeat {
		return nil, fmt.Errorf("lease %v and heartbeat %v: the lease must be at least twice the heartbeat", config.Lease, config.Heartbeat)
	}
	w := &Worker{config: config, slots: make(chan struct{}, config.Slots)}
	var err error
	if config.Parts != nil {
		if w.parts, err = newPartSource(config, w.slots); err != nil {
			return nil, err
		}
	}
	if config.Tasks != nil {
		if w.tasks, err = newTaskSource(config, w.slots); err != nil {
			return nil, err
		}
	}
	if w.parts != nil && w.tasks != nil {
		w.tasks.resuming = &w.parts.resuming
	}
	return w, nil
}

// Run works until stop is closed or ctx ends. On stop it finishes the current
// chunks and gives partitions back; tasks have Config.Drain (rule W5). The end
// of ctx cancels. It returns the repository's error if polls or heartbeats only
// failed for longer than a lease and grace; time without a poll (no free slot,
// a frozen process) does not count.
func (w *Worker) Run(ctx context.Context, stop <-chan struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &workerRun{worker: w, stop: make(chan struct{}), failed: make(chan error, 2)}
	defer r.running.Wait()
	defer close(r.stop)
	r.running.Go(func() { r.end(r.deliveries(ctx)) })
	return r.loop(ctx, stop)
}

type workerRun struct {
	worker  *Worker
	stop    chan struct{} // closed when no more work is to be taken
	failed  chan error
	running sync.WaitGroup
	failing time.Time // when the first poll failed since one succeeded
	polled  time.Time // when the last poll failed
}

func (r *workerRun) deliveries(ctx context.Context) error {
	parts, tasks := r.worker.parts, r.worker.tasks
	if parts != nil {
		defer parts.working.Wait()
	}
	switch {
	case tasks == nil:
		return parts.run(ctx, r.stop)
	case parts == nil:
		return tasks.run(ctx, r.stop, nil)
	}
	return tasks.run(ctx, r.stop, parts.handler(ctx, r.stop))
}

func (r *workerRun) end(err error) {
	if err != nil {
		r.failed <- err
	}
}

func (r *workerRun) loop(ctx context.Context, stop <-chan struct{}) error {
	w := r.worker
	tend := time.NewTicker(w.config.Poll)
	defer tend.Stop()
	look := time.NewTimer(0)
	defer look.Stop()
	var slots chan<- struct{} // nil: parts are not polled now
	for {
		select {
		case <-stop:
			return nil
		case <-ctx.Done():
			return nil
		case err := <-r.failed:
			return err
		case <-tend.C:
			r.tend(ctx)
		case <-look.C:
			slots = r.wanted()
		case slots <- struct{}{}:
			found, err := r.pollParts(ctx)
			if err != nil || ctx.Err() != nil {
				return err
			}
			if !found {
				slots = nil
				look.Reset(r.nextPoll())
			}
		}
	}
}

func (r *workerRun) wanted() chan<- struct{} {
	if r.worker.parts == nil {
		return nil
	}
	return r.worker.slots
}

func (r *workerRun) nextPoll() time.Duration {
	if r.failing.IsZero() {
		return jittered(r.worker.config.Sweep)
	}
	return r.worker.config.Poll
}

func (r *workerRun) pollParts(ctx context.Context) (found bool, err error) {
	w := r.worker
	work, err := w.parts.next(ctx, r.stop)
	if work != nil {
		r.failing = time.Time{}
		r.running.Go(func() {
			own := newHeldSlot(w.slots)
			defer own.end()
			work(workslot.WithSlot(ctx, own))
		})
		return true, nil
	}
	<-w.slots
	switch {
	case err == nil:
		r.failing = time.Time{}
	case ctx.Err() != nil:
	case r.failing.IsZero(), time.Since(r.polled) > w.config.Lease/2: // no slot was free for a poll meanwhile
		r.failing, r.polled = time.Now(), time.Now()
		w.config.Report(Event{What: "failed", Err: err})
	case time.Since(r.failing) > w.patience():
		return false, fmt.Errorf("worker: %w", err)
	default:
		r.polled = time.Now()
		w.config.Report(Event{What: "failed", Err: err})
	}
	return false, nil
}

// As long as no other process takes over this one's executions.
func (w *Worker) patience() time.Duration {
	if w.tasks == nil {
		return w.config.Lease
	}
	return w.config.Lease + w.tasks.graceNow()
}

func (r *workerRun) tend(ctx context.Context) {
	if tasks := r.worker.tasks; tasks != nil && len(tasks.tasks.Types) > 0 {
		r.running.Go(func() { r.worker.tend(ctx, tasks.tend) })
	}
}

// Tend does the common work on tasks, unless it was just done. The leader calls it as long as it leads: also while the
// worker drains, or if it takes no tasks.
func (w *Worker) Tend(ctx context.Context) {
	if w.tasks != nil {
		w.tend(ctx, w.tasks.tendAll)
	}
}

func (w *Worker) tend(ctx context.Context, do func(ctx context.Context) error) {
	if !w.tending.TryLock() {
		return
	}
	defer w.tending.Unlock()
	// The worker's loop and the leader both call it. The leader works for all: it does not wait for a longer poll of its own.
	if time.Since(w.tended) < min(w.config.Poll, DefaultPoll)*9/10 {
		return
	}
	w.tended = time.Now()
	if err := do(ctx); err != nil && ctx.Err() == nil {
		w.config.Report(Event{What: "failed", Err: err})
	}
}
