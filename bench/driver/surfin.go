package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"syscall"
	"time"

	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/engine/river"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

const oursPrefix = "surfin"

// jobParameters are the parameters of every job of ours, and expectRows the gate of its step: the counters
// cover all attempts.
const (
	jobParameters = "parameters: {input: {type: path}, rows: {type: int}}\n"
	expectRows    = "  expect: read == params.rows and written == params.rows\n"
)

const rowItem = "{id: int, account: int, name: string, city: string, day: date, amount: float}"

// saleItem is a row of the data as a struct of Go, the item type `sale` of a job file.
type saleItem struct {
	ID, Account int64
	Name, City  string
	Day         batch.Date
	Amount      float64
}

func ours(name, job string, opts ...fx.Option) inside {
	return inside{name: oursPrefix + " " + name, restarts: true, run: func(ctx context.Context, w Work) (Result, error) {
		url := w.URL
		if url == "" {
			url = "sqlite:" + sqlitePath(w)
		}
		return runJob(ctx, w, url, job, opts...)
	}}
}

// oursOnFile is a job of ours with its history in a file of SQLite.
func oursOnFile(name, job string, opts ...fx.Option) inside {
	c := ours(name, job, opts...)
	run := c.run
	c.run = func(ctx context.Context, w Work) (Result, error) {
		w.URL = ""
		return run(ctx, w)
	}
	return c
}

// runJob runs a job file, or continues the job of a killed process.
func runJob(ctx context.Context, w Work, url, job string, opts ...fx.Option) (r Result, err error) {
	app, err := openApp(ctx, w, url, opts...)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, app.Close(ctx)) }()
	return runIn(ctx, app, w, job)
}

func runIn(ctx context.Context, app *batch.App, w Work, job string) (r Result, err error) {
	file := filepath.Join(w.Dir, "job.yaml")
	if err := os.WriteFile(file, []byte(job), 0o600); err != nil {
		return r, err
	}
	begin := time.Now()
	exec, err := app.Run(ctx, batch.RunRequest{File: file, Params: map[string]string{"input": w.Input, "rows": strconv.Itoa(w.Rows)}})
	r.Seconds = time.Since(begin).Seconds()
	if err == nil && exec.Status != core.StatusCompleted {
		err = fmt.Errorf("execution %d is %s: %s %s", exec.ID, exec.Status, exec.ExitCode, exec.Error)
	}
	return r, err
}

func openApp(ctx context.Context, w Work, url string, opts ...fx.Option) (*batch.App, error) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	environ := []string{"DATABASE_URL=" + url, "SURFIN_AUTO_MIGRATE=true"}
	if w.River {
		environ, opts = append(environ, "SURFIN_ENGINE=river"), append(opts, river.Module())
	}
	if w.Lease > 0 {
		environ = append(environ, "SURFIN_LEASE="+w.Lease.String())
	}
	s, err := settings.Load(settings.Source{Dir: w.Dir, Environ: environ})
	if err != nil {
		return nil, err
	}
	opts = append([]fx.Option{batch.Log(nil), batch.Item[saleItem]("sale")}, opts...)
	if w.KillAt > 0 {
		opts = append(opts, batch.Observe(core.ObserverFunc(killAt(w.KillAt))))
	}
	app, err := batch.New(ctx, s, opts...)
	if err != nil {
		return nil, err
	}
	if err := app.Prepare(ctx); err != nil {
		return nil, errors.Join(err, app.Close(ctx))
	}
	return app, nil
}

// killAt kills this process at a random moment in the chunk after the commit with that many rows.
func killAt(rows int64) func(context.Context, core.Event) {
	const within = 2 * time.Millisecond
	return func(_ context.Context, e core.Event) {
		if c, ok := e.(core.ChunkCommitted); ok && c.Counters.Read >= rows && c.Counters.Read < 2*rows {
			go func() {
				time.Sleep(rand.N(within))                     //nolint:gosec // any moment will do
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) //nolint:errcheck // else it is done, and the driver tries again
			}()
		}
	}
}

func readsAhead() bool {
	_, has := reflect.TypeFor[chunk.Config]().FieldByName("ReadAhead")
	return has
}
