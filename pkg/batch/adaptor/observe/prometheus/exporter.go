package prometheus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const defaultEvery = 15 * time.Second

// ExporterConfig says where metrics are offered.
type ExporterConfig struct {
	// Listen is HOST:PORT for GET /metrics while jobs run; empty means none. If it is in use, a warning is
	// logged.
	Listen string
	// textfile is NAME.prom for node_exporter; empty means none.
	Textfile string
	// Every is the time between two writings of the text file; 0 means defaultEvery.
	Every time.Duration
	// Log receives warnings; nil means slog.Default().
	Log *slog.Logger
}

// Exporter observes, counts and offers the metrics of this process. Before the first job, worker or server
// it has no listener and no goroutine. Close it.
type Exporter struct {
	config  ExporterConfig
	metrics *Metrics

	registry *client.Registry

	counted atomic.Bool

	mu      sync.Mutex
	began   bool
	server  *http.Server
	address string

	done    chan struct{}
	closing sync.Once
	running sync.WaitGroup
	writing sync.Mutex // guards file
	file    *textfile
}

// NewExporter returns an exporter that has not begun.
func NewExporter(config ExporterConfig) (*Exporter, error) {
	if config.Every == 0 {
		config.Every = defaultEvery
	}
	if config.Log == nil {
		config.Log = slog.Default()
	}
	e := &Exporter{config: config, metrics: New(), registry: client.NewRegistry(), done: make(chan struct{})}
	if err := e.registry.Register(e.metrics); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	if config.Textfile != "" {
		counted := client.NewRegistry()
		if err := counted.Register(counts{e.metrics}); err != nil {
			return nil, fmt.Errorf("metrics: %w", err)
		}
		e.file = newTextfile(config.Textfile, counted)
	}
	return e, nil
}

// Observe counts the event.
func (e *Exporter) Observe(ctx context.Context, event core.Event) {
	e.metrics.Observe(ctx, event)
	e.counted.Store(true)
	if !begins(event) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.began {
		e.began = true
		e.begin(ctx)
	}
}

// Commands that only query or cancel must not take the address of a working process.
func begins(event core.Event) bool {
	switch event.(type) {
	case core.JobStarted, core.WorkerStarted, core.ServerStarted:
		return true
	default:
		return false
	}
}

// ReadFigures implements core.FiguresReader: served metrics include the history's. The text file outlives
// them.
func (e *Exporter) ReadFigures(read func(context.Context) (core.Figures, error)) {
	e.metrics.ReadFigures(read)
}

// Handler serves the metrics, for the application's own HTTP server.
func (e *Exporter) Handler() http.Handler {
	return promhttp.HandlerFor(e.registry, promhttp.HandlerOpts{})
}

// Address is the listener's address; empty before the first job, worker or server.
func (e *Exporter) Address() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.address
}

func (e *Exporter) begin(ctx context.Context) {
	if e.config.Listen != "" {
		e.listen(ctx)
	}
	if e.file != nil {
		e.running.Go(e.writeRegularly)
	}
}

func (e *Exporter) listen(ctx context.Context) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", e.config.Listen)
	if err != nil {
		e.config.Log.WarnContext(ctx, "metrics are not available: metrics.listen cannot be used", "error", err.Error())
		return
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", e.Handler())
	e.address = listener.Addr().String()
	e.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	server := e.server
	e.running.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			e.config.Log.Warn("metrics are not available any more", "error", err.Error())
		}
	})
}

// It writes at once, so that the start of a job is known even if the process is killed a moment later.
func (e *Exporter) writeRegularly() {
	e.write()
	ticker := time.NewTicker(e.config.Every)
	defer ticker.Stop()
	for {
		select {
		case <-e.done:
			return
		case <-ticker.C:
			e.write()
		}
	}
}

func (e *Exporter) write() {
	e.writing.Lock()
	defer e.writing.Unlock()
	if err := e.file.Write(); err != nil {
		e.config.Log.Warn("metrics are not written", "error", err.Error())
	}
}

// Close writes the text file a last time and ends the listener. A scrape in progress has until ctx ends.
func (e *Exporter) Close(ctx context.Context) error {
	var err error
	e.closing.Do(func() {
		close(e.done)
		e.mu.Lock()
		server := e.server
		e.began = true
		e.mu.Unlock()
		if server != nil {
			if err = server.Shutdown(ctx); err != nil {
				err = errors.Join(err, server.Close())
			}
		}
		e.running.Wait()
		if e.file != nil && e.counted.Load() {
			e.write()
		}
	})
	return err
}
