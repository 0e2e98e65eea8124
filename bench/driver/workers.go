package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/surfin-batch/surfin/bench/hashing"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/pkg/batch"
)

const (
	workerCount = 2
	// workerPoll is the time between two polls of a worker that is not notified of work.
	workerPoll  = 100 * time.Millisecond
	workersTime = time.Minute
)

// onWorkers runs the job of w7 with its parts on worker processes over River, once these take work.
func onWorkers(ctx context.Context, w Work) (r Result, err error) {
	w.River = true
	app, err := openApp(ctx, w, w.URL, hashing.Components())
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, app.Close(ctx)) }()
	for range workerCount {
		end, failed := startWorker(w)
		if failed != nil {
			return r, failed
		}
		defer func() { err = errors.Join(err, end()) }()
	}
	if err := awaitWorkers(ctx, app); err != nil {
		return r, err
	}
	return runIn(ctx, app, w, hashing.Job("hash", "{by: {count: 4}, remote: true}", w.Rows)+jobParameters)
}

// startWorker starts this program as a worker.
func startWorker(w Work) (end func() error, err error) {
	cmd, err := startWorkerProcess(w)
	if err != nil {
		return nil, err
	}
	return func() error { return errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()) }, nil
}

func startWorkerProcess(w Work) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w.Worker = true
	cmd, err := withWork(exec.Command(self), w)
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	return cmd, cmd.Start()
}

func takeParts(ctx context.Context, w Work) (err error) {
	stop, done := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer done()
	app, err := openApp(ctx, w, w.URL, hashing.Components())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, app.Close(ctx)) }()
	return app.Work(ctx, stop.Done(), runtime.Options{Slots: 1, Poll: workerPoll})
}

func awaitWorkers(ctx context.Context, app *batch.App) error {
	ctx, cancel := context.WithTimeout(ctx, workersTime)
	defer cancel()
	for {
		workers, err := app.Tasks.Workers(ctx)
		if err != nil {
			return err
		}
		if len(workers) == workerCount {
			return nil
		}
		time.Sleep(workerPoll / 10)
	}
}
