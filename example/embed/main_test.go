//test:plain

package main

import (
	"database/sql"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

func TestTheServiceBillsItsOrders(t *testing.T) {
	t.Chdir(t.TempDir())
	testdb.Each(t, func(t *testing.T, url string) {
		s, err := batch.LoadSettings()
		require.NoError(t, err)
		s.AutoMigrate = "true"
		var pool *sql.DB
		var mux *http.ServeMux
		var mails *mailer
		app := fx.New(fx.NopLogger, service(s, strings.TrimPrefix(url, "sqlite:"), "localhost:0"), fx.Populate(&pool, &mux, &mails))
		require.NoError(t, app.Start(t.Context()))
		_, err = pool.ExecContext(t.Context(), "insert into orders values (1, 'ada', 100, '2026-11-20'), (2, 'ada', 0, '2026-11-20'), (3, 'bob', -5, '2026-11-20'), (4, 'bob', 200, '2026-11-20'), (5, 'eve', 300, '2026-11-21')")
		require.NoError(t, err)
		do := func(method, path string, want int) map[string]any {
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
			require.Equal(t, want, w.Code, w.Body.String())
			body := map[string]any{}
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &body), w.Body.String())
			return body
		}
		run := func(path string) {
			id, err := json.Marshal(do("POST", path, http.StatusAccepted)["execution"])
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				body := do("GET", "/executions/"+string(id), http.StatusOK)
				require.NotEqual(t, "FAILED", body["status"], body["error"])
				return body["status"] == "COMPLETED"
			}, 20*time.Second, 5*time.Millisecond)
		}
		run("/jobs/billing?day=2026-11-20")
		run("/jobs/report?day=2026-11-20")
		require.Equal(t, []string{"the invoices of 2026-11-20 are ready"}, mails.sent)
		var report string
		require.NoError(t, pool.QueryRowContext(t.Context(), "select min(customer) || ' ' || min(total) || ', ' || max(customer) || ' ' || max(total) from report").Scan(&report))
		require.Equal(t, "ada 119, bob 238", report)
		again := do("POST", "/jobs/billing?day=2026-11-20", http.StatusConflict)
		require.Equal(t, "complete", again["reason"])
		do("POST", "/jobs/biling", http.StatusConflict)
		do("GET", "/executions/99", http.StatusNotFound)
		do("POST", "/executions/x/stop", http.StatusConflict)
		require.NoError(t, app.Stop(t.Context()))
		require.Error(t, pool.PingContext(t.Context()), "the service has closed it")
	})
}
