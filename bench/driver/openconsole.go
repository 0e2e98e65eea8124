package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/access"
	"github.com/surfin-batch/surfin/internal/api"
	"github.com/surfin-batch/surfin/internal/assembly"
	consolepages "github.com/surfin-batch/surfin/internal/console"
	"github.com/surfin-batch/surfin/internal/operator/catalog"
	"github.com/surfin-batch/surfin/pkg/batch"
)

// openConsole is a job of ours in a server, with its console open in a browser: it listens to the stream of
// changes, and asks for the page of the execution each second, as a page does. The browser's work counts as
// well, because it is in the same process.
func openConsole(name, job string, opts ...fx.Option) inside {
	return inside{name: oursPrefix + " " + name, run: func(ctx context.Context, w Work) (r Result, err error) {
		app, err := openApp(ctx, w, w.URL, opts...)
		if err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, app.Close(ctx)) }()
		if err := os.WriteFile(filepath.Join(w.Dir, "job.yaml"), []byte(job), 0o600); err != nil { // for the catalog
			return r, err
		}
		at, end, err := hostConsole(ctx, app, w)
		if err != nil {
			return r, err
		}
		looking, away := context.WithCancel(ctx)
		var browser sync.WaitGroup
		var faults [2]error
		browser.Go(func() { faults[0] = listenToStream(looking, at) })
		browser.Go(func() { faults[1] = askEachSecond(looking, at+"/executions/1") })
		r, err = runIn(ctx, app, w, job)
		away()
		browser.Wait()
		return r, errors.Join(err, faults[0], faults[1], end())
	}}
}

func hostConsole(ctx context.Context, app *batch.App, w Work) (at string, end func() error, err error) {
	registry, err := assembly.NewRegistry()
	if err != nil {
		return "", nil, err
	}
	jobs, err := catalog.New(registry, nil, w.Dir)
	if err != nil {
		return "", nil, err
	}
	listener, err := access.Listen(ctx, "127.0.0.1:0", nil)
	if err != nil {
		return "", nil, err
	}
	stop, over := make(chan struct{}), make(chan error, 1)
	log := slog.New(slog.DiscardHandler)
	go func() {
		over <- api.Serve(ctx, stop, listener, api.Config{
			Service: app.Service, Jobs: jobs, Tasks: app.Tasks, Rate: 1000, Log: log,
			Pages: func(guard *access.Guard, operations http.Handler) (http.Handler, error) {
				return consolepages.New(guard, consolepages.Config{Service: app.Service, Jobs: jobs, Tasks: app.Tasks, Stream: "/v1/stream", Log: log, Operations: operations})
			},
		})
	}()
	return "http://" + listener.Addr().String(), func() error { close(stop); return <-over }, nil
}

// listenToStream reads events until the context ends.
func listenToStream(ctx context.Context, at string) error {
	return request(ctx, at+"/v1/stream?topic=execution,step,progress", func(got *http.Response) error {
		_, err := io.Copy(io.Discard, got.Body)
		return err
	})
}

func askEachSecond(ctx context.Context, page string) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		err := request(ctx, page, func(got *http.Response) error {
			if got.StatusCode >= http.StatusInternalServerError {
				return fmt.Errorf("%s: %s", page, got.Status)
			}
			_, err := io.Copy(io.Discard, got.Body)
			return err
		})
		if err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// request returns nil if the context has ended.
func request(ctx context.Context, address string, use func(*http.Response) error) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	r.Header.Set("HX-Request", "true")
	got, err := http.DefaultClient.Do(r)
	if err == nil {
		err = errors.Join(use(got), got.Body.Close())
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}
