package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/internal/runtime/engine"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// engineName is the engine's name in the settings.
const engineName = "local"

// defaultScan is the time between two polls; a worker is notified of its own process's work at once. A poll
// is five short statements over partial indexes: 100 idle workers send 5,000 statements a second, half the
// time of one CPU.
const defaultScan = 100 * time.Millisecond

// source finds waiting work in the tables.
type source interface {
	// Due returns waiting deliveries of the queues, at most limit, by priority and then by age.
	Due(ctx context.Context, queues []string, limit int) ([]engine.Delivery, error)
}

// Config configures the engine.
type Config struct {
	// Database has the tables of the work. Required.
	Database tx.Database
	// source is required.
	Source source
	// Scan is the time between two polls, plus a random tenth; 0 means defaultScan.
	Scan time.Duration
	// Log receives failed polls and broken handlers; nil means none.
	Log *slog.Logger
}

// Engine is the local engine.
type Engine struct {
	config Config

	mu   sync.Mutex
	runs map[*run]bool
	// the deliveries not to take now: current ones (zero time), and those not to come again before that
	// time
	held map[engine.Key]time.Time
}

var _ engine.Engine = (*Engine)(nil)

// New checks the configuration and fills in the defaults.
func New(config Config) (*Engine, error) {
	if config.Database == nil || config.Source == nil {
		return nil, errors.New("a local engine needs a database and a source")
	}
	if config.Scan < 0 {
		return nil, fmt.Errorf("a local engine with a poll interval of %v: it must be positive", config.Scan)
	}
	if config.Scan == 0 {
		config.Scan = defaultScan
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	return &Engine{config: config, runs: map[*run]bool{}, held: map[engine.Key]time.Time{}}, nil
}

// Enqueue wakes the workers of this process once the transaction is committed.
func (e *Engine) Enqueue(ctx context.Context, ds ...engine.Delivery) error {
	if err := engine.CheckAll(ds); err != nil || len(ds) == 0 {
		return err
	}
	earliest := map[string]time.Time{}
	for _, d := range ds {
		if t, ok := earliest[d.Queue]; !ok || d.NotBefore.Before(t) {
			earliest[d.Queue] = d.NotBefore
		}
	}
	tx.AtEnd(ctx, e.config.Database.Name(), func(committed bool) {
		if committed {
			e.wake(earliest)
		}
	})
	return nil
}

// Cancel does nothing: canceled work is not found.
func (e *Engine) Cancel(_ context.Context, ds ...engine.Delivery) error { return engine.CheckAll(ds) }

// Missing returns none: waiting work is found in the tables.
func (e *Engine) Missing(_ context.Context, ds ...engine.Delivery) ([]engine.Delivery, error) {
	return nil, engine.CheckAll(ds)
}

// Capabilities implements engine.Engine.
func (e *Engine) Capabilities() engine.Capabilities {
	return engine.Capabilities{Name: engineName, Transactional: true, Late: e.config.Scan + e.config.Scan/jitter}
}

func (e *Engine) wake(earliest map[string]time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for r := range e.runs {
		for _, q := range r.queues {
			if at, ok := earliest[q]; ok {
				r.pollAt(at)
			}
		}
	}
}

func (e *Engine) take(k engine.Key, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if until, ok := e.held[k]; ok && (until.IsZero() || now.Before(until)) {
		return false
	}
	e.held[k] = time.Time{}
	return true
}

func (e *Engine) release(k engine.Key, until time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if until.IsZero() {
		delete(e.held, k)
	} else {
		e.held[k] = until
	}
}

func (e *Engine) forget(now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for k, until := range e.held {
		if !until.IsZero() && !now.Before(until) {
			delete(e.held, k)
		}
	}
}

func (e *Engine) add(r *run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.runs[r] = true
}

func (e *Engine) remove(r *run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.runs, r)
}
