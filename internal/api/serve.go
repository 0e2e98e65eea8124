package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"github.com/surfin-batch/surfin/internal/operator"
)

// Serve serves the API until stop is closed. Then it requests a stop of the
// executions that it has started, and waits; the end of ctx cancels at once
// (rule L4). It closes the listener.
func Serve(ctx context.Context, stop <-chan struct{}, at net.Listener, config Config) error {
	if config.Log == nil {
		config.Log = slog.Default()
	}
	var running runs
	halt := make(chan struct{})
	config.stopping = halt
	config.started = func(r *operator.Running) { running.follow(ctx, halt, r, config.Log) }
	handler, err := New(config)
	if err != nil {
		return errors.Join(err, at.Close())
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTime, ReadTimeout: headerTime + bodyTime, WriteTimeout: writeTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeaders, ErrorLog: slog.NewLogLogger(config.Log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(at) }()
	select {
	case err = <-failed: // it never ends by itself
	case <-stop:
	case <-ctx.Done():
	}
	close(halt)
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	if late := server.Shutdown(ending); late != nil {
		err = errors.Join(err, fmt.Errorf("end the requests: %w", late), server.Close())
	}
	running.wait()
	return err
}

type runs struct{ group sync.WaitGroup }

func (rs *runs) follow(ctx context.Context, stop <-chan struct{}, r *operator.Running, log *slog.Logger) {
	rs.group.Go(func() {
		select {
		case <-r.Done():
		case <-ctx.Done():
		case <-stop:
			r.Leave()
		}
		if e, err := r.Follow(ctx, nil); err != nil { // observers report its work
			log.ErrorContext(ctx, "the state of an execution could not be stored", "execution", int64(r.Execution().ID), "known", e != nil, "error", err)
		}
	})
}

func (rs *runs) wait() { rs.group.Wait() }
