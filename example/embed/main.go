// Command embed is a small service with jobs in it: fx, net/http, its own pool, a job in Go and a job file
// inside the program. docs/howto/embed.md explains it.
//
// It imports pkg/batch, core and fx, and no command line.
package main

import (
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"

	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

//go:embed jobs
var jobs embed.FS

func main() {
	s, err := batch.LoadSettings()
	if err != nil {
		slog.Error("settings", "error", err)
		os.Exit(1)
	}
	s.AutoMigrate = "true" // the service makes the tables of the history
	fx.New(service(s, os.Getenv("SHOP_DATABASE"), "localhost:8080")).Run()
}

// service is the whole application: what it had before, and three lines for jobs.
func service(s batch.Settings, database, address string) fx.Option {
	return fx.Options(
		fx.Provide(func(lc fx.Lifecycle) (*sql.DB, error) { return openPool(lc, database) }),
		fx.Provide(func() *mailer { return &mailer{} }),
		fx.Provide(http.NewServeMux),

		batch.Module(s), batch.DatabaseFrom[*sql.DB]("default"),
		batch.Item[Order]("order"),
		batch.Jobs(billing()), batch.JobFiles(batch.FS(jobs, "jobs/report.yaml")),

		fx.Invoke(ordersTable, recoverJobs, routes, func(lc fx.Lifecycle, mux *http.ServeMux) { serve(lc, mux, address) }),
	)
}

// openPool opens the service's pool; "" is an SQLite file. It is closed last. Package
// batch brings the drivers pgx and sqlite.
func openPool(lc fx.Lifecycle, database string) (*sql.DB, error) {
	driver := "pgx"
	if !strings.HasPrefix(database, "postgres") {
		driver = "sqlite"
		if database == "" {
			database = "shop.db"
		}
		database += "?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)"
	}
	pool, err := sql.Open(driver, database)
	if err == nil {
		lc.Append(fx.StopHook(pool.Close))
	}
	return pool, err
}

// ordersTable stands for the service's own use of its pool.
func ordersTable(lc fx.Lifecycle, pool *sql.DB) {
	lc.Append(fx.StartHook(func(ctx context.Context) error {
		_, err := pool.ExecContext(ctx, "create table if not exists orders(id bigint primary key, customer text not null, amount bigint not null, day date not null)")
		return err
	}))
}

// recoverJobs ends executions whose process was killed, so that they can be restarted.
func recoverJobs(lc fx.Lifecycle, app *batch.App) {
	lc.Append(fx.StartHook(func(ctx context.Context) error {
		if err := app.Prepare(ctx); err != nil {
			return err
		}
		ended, err := app.Recover(ctx)
		for _, e := range ended {
			slog.Info("was killed", "job", e.JobName, "execution", e.ID)
		}
		return err
	}))
}

// routes are what the service offers for jobs.
func routes(mux *http.ServeMux, app *batch.App) {
	mux.HandleFunc("POST /jobs/{name}", func(w http.ResponseWriter, r *http.Request) {
		params := map[string]string{}
		for name, values := range r.URL.Query() {
			params[name] = values[0]
		}
		running, err := app.Start(r.Context(), batch.RunRequest{Name: r.PathValue("name"), Params: params})
		answer(w, running, err)
	})
	mux.HandleFunc("POST /executions/{id}/restart", func(w http.ResponseWriter, r *http.Request) {
		running, err := app.Restart(r.Context(), batch.RestartRequest{Execution: id(r)})
		answer(w, running, err)
	})
	mux.HandleFunc("POST /executions/{id}/stop", func(w http.ResponseWriter, r *http.Request) {
		execution, err := app.Stop(r.Context(), id(r))
		write(w, http.StatusAccepted, execution, err)
	})
	mux.HandleFunc("GET /executions/{id}", func(w http.ResponseWriter, r *http.Request) {
		execution, err := app.Repository.Execution(r.Context(), id(r))
		if err != nil {
			write(w, 0, nil, err)
			return
		}
		write(w, http.StatusOK, map[string]any{"execution": execution.ID, "status": execution.Status, "error": execution.Error}, nil)
	})
}

func id(r *http.Request) core.JobExecutionID {
	n, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return 0 // there is none of this number
	}
	return core.JobExecutionID(n)
}

// answer writes the execution that runs from now on: it does not end with the request.
func answer(w http.ResponseWriter, running *batch.Running, err error) {
	if err != nil {
		write(w, 0, nil, err)
		return
	}
	write(w, http.StatusAccepted, running.Execution(), nil)
}

// write writes JSON. A refusal has its reason, and the possible alternatives.
func write(w http.ResponseWriter, status int, body any, err error) {
	var refusal *batch.Refusal
	switch {
	case errors.As(err, &refusal):
		status, body = http.StatusConflict, refusal
	case errors.Is(err, batch.ErrNotFound):
		status, body = http.StatusNotFound, map[string]string{"error": err.Error()}
	case err != nil:
		slog.Error("request", "error", err)
		status, body = http.StatusInternalServerError, map[string]string{"error": "see the log"}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		slog.Error("answer", "error", err)
	}
}

// serve listens until the service stops. Jobs that run then are requested to stop, finish their chunk, and
// continue at a restart.
func serve(lc fx.Lifecycle, mux *http.ServeMux, address string) {
	server := &http.Server{Handler: mux}
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

// mailer stands for a component of the service.
type mailer struct {
	mu   sync.Mutex
	sent []string
}

func (m *mailer) send(text string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent = append(m.sent, text)
	slog.Info("mail", "text", text)
	return nil
}
