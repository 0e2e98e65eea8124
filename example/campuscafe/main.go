// Command campuscafe takes orders for a café. Payment, stock and counter send it events, sometimes twice and
// in any order; README.md explains it.
//
//	go run ./example/campuscafe
//
// It imports pkg/batch and the packages below it, as any application may.
package main

import (
	"context"
	"embed"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/observe/prometheus"
)

//go:embed nightly.yaml
var jobs embed.FS

func main() {
	s, err := batch.LoadSettings()
	if err != nil {
		slog.Error("settings", "error", err)
		os.Exit(1)
	}
	s.AutoMigrate = "true"
	address := os.Getenv("CAFE_ADDRESS")
	if address == "" {
		address = "localhost:8080"
	}
	fx.New(cafe(s, address)).Run()
}

func cafe(s batch.Settings, address string) fx.Option {
	return fx.Options(shop(s), fx.Invoke(background, func(lc fx.Lifecycle, mux *http.ServeMux) { serve(lc, mux, address) }))
}

// shop is the café with closed doors. Its tables are in the database of the
// history, so that orders, events and tasks change in one transaction.
func shop(s batch.Settings) fx.Option {
	return fx.Options(
		batch.Module(s), batch.JobFiles(batch.FS(jobs, "nightly.yaml")),
		batch.Handler(taskNotify, newLedger(taskNotify)),
		batch.Handler(taskRefund, newLedger(taskRefund)),
		batch.Handler(taskReverse, newLedger(taskReverse)),
		fx.Provide(newShop, http.NewServeMux), metrics(),
		fx.Invoke(prepare, routes),
	)
}

func metrics() fx.Option {
	exporter, err := prometheus.NewExporter(prometheus.ExporterConfig{})
	if err != nil {
		return fx.Error(err)
	}
	return fx.Options(batch.Observe(exporter), fx.Invoke(func(mux *http.ServeMux) { mux.Handle("GET /metrics", exporter.Handler()) }))
}

func prepare(lc fx.Lifecycle, app *batch.App, shop *Shop) {
	lc.Append(fx.StartHook(func(ctx context.Context) error {
		if err := app.Prepare(ctx); err != nil {
			return err
		}
		return shop.createTables(ctx)
	}))
}

// background offers events to their orders, and executes tasks, while the service lives.
func background(lc fx.Lifecycle, app *batch.App, shop *Shop) {
	stop := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	var ended []chan struct{}
	begin := func(what string, work func() error) {
		over := make(chan struct{})
		ended = append(ended, over)
		go func() {
			defer close(over)
			if err := work(); err != nil && ctx.Err() == nil {
				slog.Error(what, "error", err)
			}
		}()
	}
	lc.Append(fx.StartStopHook(func() {
		begin("events", func() error { shop.offerEvents(ctx, stop); return nil })
		begin("worker", func() error {
			return app.Work(ctx, stop, batch.WorkOptions{Slots: 2, Drain: 5 * time.Second, WithoutParts: true})
		})
	}, func() {
		close(stop)
		for _, over := range ended {
			<-over
		}
		cancel()
	}))
}

// serve listens until the service stops.
func serve(lc fx.Lifecycle, mux *http.ServeMux, address string) {
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	lc.Append(fx.StartStopHook(func() error {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		slog.Info("serving", "address", listener.Addr().String())
		go func() {
			if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				slog.Error("serve", "error", err)
			}
		}()
		return nil
	}, server.Shutdown))
}
