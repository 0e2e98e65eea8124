package sampling

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/panics"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/series"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const (
	// samplesPerHeartbeat is how often a step is sampled at first, and mostOften at the shortest.
	samplesPerHeartbeat   = 5
	mostOften, leastOften = 10 * time.Millisecond, time.Second
	// storeTime bounds a try to store samples: a heartbeat that waits for the same connection waits no longer.
	storeTime = time.Second
)

// Config configures a Recorder.
type Config struct {
	Store ports.Series
	// Guard is the guard of the heartbeats.
	Guard     ports.JobRef
	Heartbeat time.Duration
	// Observer is notified once if samples cannot be stored.
	Observer core.Observer
}

// Recorder has the samples of the steps that run under one lease. Nothing of it fails a step, or delays one: samples
// that could not be stored are stored with the next heartbeat. A nil Recorder records nothing.
type Recorder struct {
	config Config
	wake   chan struct{}
	ending chan struct{}
	done   chan struct{}
	cancel context.CancelFunc
	failed bool // the observer was notified; only the storing goroutine uses it

	mu    sync.Mutex
	steps []*sampled // with a sample, and not stored at their end
}

// New returns a recorder; nil without a store.
func New(config Config) *Recorder {
	if config.Store == nil || config.Heartbeat <= 0 {
		return nil
	}
	return &Recorder{config: config, wake: make(chan struct{}, 1), ending: make(chan struct{}), done: make(chan struct{}), cancel: func() {}}
}

// Start begins the goroutine that stores samples after Beat, and at the ends of steps.
func (r *Recorder) Start(ctx context.Context) {
	if r == nil {
		return
	}
	ctx, r.cancel = context.WithCancel(model.WithPatience(context.WithoutCancel(ctx), nil))
	go func() {
		defer close(r.done)
		for {
			select {
			case <-r.wake:
				r.store(ctx)
			case <-r.ending:
				r.store(ctx)
				return
			}
		}
	}()
}

// Beat stores the samples since the last heartbeat, which has just been answered. It waits for nothing.
func (r *Recorder) Beat() {
	if r == nil {
		return
	}
	select {
	case r.wake <- struct{}{}:
	default: // it is storing, and begins again after it
	}
}

// Stop stores the samples that are left, and returns after a second at the latest.
func (r *Recorder) Stop() {
	if r == nil {
		return
	}
	close(r.ending)
	timer := time.NewTimer(storeTime)
	defer timer.Stop()
	select {
	case <-r.done:
	case <-timer.C:
	}
	r.cancel()
}

// Executor samples the steps of an executor.
func (r *Recorder) Executor(inner model.StepExecutor) model.StepExecutor {
	if r == nil {
		return inner
	}
	return &executor{recorder: r, inner: inner}
}

func (r *Recorder) store(ctx context.Context) {
	due := r.due()
	if len(due) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	err := panics.Guard(func() error { return r.write(ctx, due) })
	if err != nil && !r.failed {
		r.failed = true
		r.config.Observer.Observe(ctx, core.SeriesNotStored{Execution: r.config.Guard.ID, Err: err})
	}
}

// due are the steps with samples that are not stored, and last for a heartbeat at least.
func (r *Recorder) due() []*sampled {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.steps), func(s *sampled) bool { return !s.isDue() })
}

func (r *Recorder) write(ctx context.Context, due []*sampled) error {
	if err := r.continued(ctx, due); err != nil {
		return err
	}
	rows := make([]ports.StepSeries, len(due))
	marks := make([]mark, len(due))
	for i, s := range due {
		rows[i], marks[i] = s.row()
	}
	if err := r.config.Store.StoreSeries(ctx, r.config.Guard, rows); err != nil {
		return fmt.Errorf("store the samples of counters: %w", err)
	}
	for i, s := range due {
		if over := s.stored(marks[i]); over {
			r.forget(s)
		}
	}
	return nil
}

// continued reads the samples of earlier processes, if steps continue the records of their work, and puts them first.
func (r *Recorder) continued(ctx context.Context, due []*sampled) error {
	var ids []core.StepExecutionID
	for _, s := range due {
		if s.continues {
			ids = append(ids, s.id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	earlier, err := r.config.Store.StoredSeries(ctx, ids...)
	if err != nil {
		return fmt.Errorf("read the samples of counters that an earlier process stored: %w", err)
	}
	for _, s := range due {
		if !s.continues {
			continue
		}
		s.continues = false
		if stored, there := earlier[s.id]; there {
			samples, err := series.Decode(stored.Samples)
			if err == nil { // text of a newer program is replaced
				s.precede(samples, stored.Since)
			}
		}
	}
	return nil
}

func (r *Recorder) add(s *sampled) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps = append(r.steps, s)
}

func (r *Recorder) forget(s *sampled) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps = slices.DeleteFunc(r.steps, func(other *sampled) bool { return other == s })
}
