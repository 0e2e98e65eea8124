package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/internal/access"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// (rule AP5)
const (
	livePath  = "/livez"
	readyPath = "/readyz"
)

// readyTime reuses a check's result: probes need no token, and must not load
// the database.
const readyTime = time.Second

// Health answers /livez while the process serves, and /readyz if it can work.
// Neither needs a token or reveals anything else.
type Health struct {
	Check func(ctx context.Context) error
	// Stopping may be nil.
	Stopping <-chan struct{}
	// Log: nil means slog.Default().
	Log *slog.Logger

	mu    sync.Mutex
	asked time.Time
	why   string // why not ready, at the last check
}

type readiness struct {
	Status string `json:"status"` // "ok", or "unavailable"
	Reason string `json:"reason,omitempty"`
}

func (h *Health) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !isProbe(r) {
		http.NotFound(w, r)
		return
	}
	answer, status := readiness{Status: "ok"}, http.StatusOK
	if r.URL.Path == readyPath {
		if answer.Reason = h.unready(r.Context()); answer.Reason != "" {
			answer.Status, status = "unavailable", http.StatusServiceUnavailable
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) //nolint:errcheck // the client has gone
}

func isProbe(r *http.Request) bool {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	return reads && (r.URL.Path == livePath || r.URL.Path == readyPath)
}

func (h *Health) unready(ctx context.Context) string {
	select {
	case <-h.Stopping:
		return "the process is stopping"
	default: // also if there is no such channel
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.asked) < readyTime {
		return h.why
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), access.AnswerTime)
	defer cancel()
	err, was := h.Check(ctx), h.why
	switch {
	case err == nil:
		h.why = ""
	case errors.Is(err, core.ErrSchemaMissing):
		h.why = "the tables are missing or outdated: migrate"
	default:
		h.why = "the database cannot be reached, or does not answer"
	}
	h.asked = time.Now()
	if h.why != was && err != nil {
		h.log().WarnContext(ctx, "not ready: "+h.why, "error", err)
	}
	return h.why
}

func (h *Health) log() *slog.Logger {
	if h.Log == nil {
		return slog.Default()
	}
	return h.Log
}

// ServeHealth answers probes at HOST:PORT until end, which waits.
func ServeHealth(ctx context.Context, address string, h *Health) (at net.Addr, end func() error, err error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, nil, fmt.Errorf("listen for probes at %s: %w", address, err)
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: headerTime, ReadTimeout: headerTime, WriteTimeout: idleTime, MaxHeaderBytes: maxHeaders,
		ErrorLog: slog.NewLogLogger(h.log().Handler(), slog.LevelDebug)}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	return listener.Addr(), func() error {
		err := server.Close()
		if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
			err = errors.Join(err, ended)
		}
		return err
	}, nil
}
