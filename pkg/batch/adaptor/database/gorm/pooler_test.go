package gormdb

import (
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testkit/txtest"
	"github.com/surfin-batch/surfin/internal/txwork"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

const ignored = "ignore_startup_parameters = idle_in_transaction_session_timeout, tcp_keepalives_idle, tcp_keepalives_interval, tcp_keepalives_count, search_path"

// Rule R9.
func TestAPoolerThatSharesSessionsIsRefusedWithTheCure(t *testing.T) {
	t.Parallel()
	database := testdb.Postgres(t)
	for name, of := range map[string]struct {
		mode     string
		settings []string
	}{
		"transaction":              {"transaction", nil},
		"parametersIgnored":        {"transaction", []string{ignored}},
		"oneServerConnection":      {"transaction", []string{"default_pool_size = 1"}},
		"serverConnectionsInTurns": {"transaction", []string{"server_round_robin = 1", "min_pool_size = 2"}},
		"statement":                {"statement", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := testdb.Pooled(t, database, of.mode, of.settings...)
			configs := map[string]Config{"url": {URL: url}}
			if name != "statement" { // in which the application's pool would do nothing, either
				configs["pgxpool"], configs["stdlib"] = Config{Lent: Lend(pgxPool(t, url))}, Config{Lent: Lend(stdlibPool(t, url))}
			}
			for opened, c := range configs {
				p, err := Open(t.Context(), map[string]Config{tx.Default: c})
				require.ErrorContains(t, err, "database default: a pooler in transaction or statement mode is between this process and the server", opened)
				require.ErrorContains(t, err, "Connect to PostgreSQL directly, or to a pool in session mode (PgBouncer: pool_mode = session)", opened)
				require.ErrorIs(t, err, errSharedSessions)
				require.Nil(t, p)
			}
		})
	}
}

// Rules R9, L7 and D5.
func TestSessionsBehindAPoolerInSessionModeAreSetUp(t *testing.T) {
	t.Parallel()
	database := testdb.Postgres(t)
	for name, settings := range map[string][]string{"parametersRefused": nil, "parametersIgnored": {ignored}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := testdb.Pooled(t, database, "session", settings...)
			p := openWith(t, Config{URL: url + "&search_path=pg_catalog", IdleInTransaction: 7 * time.Second})
			data, err := p.Database("")
			require.NoError(t, err)
			control, err := p.Control("")
			require.NoError(t, err)
			for _, db := range []tx.Database{data, control} {
				requireSetUp(t, db.Conn(), "pg_catalog")
				step, aborter := txwork.WithAborter(t.Context())
				_, err := db.Conn().ExecContext(step, "SET timezone = 'Asia/Tokyo'; SET search_path = 'a'; SET datestyle = DEFAULT")
				require.NoError(t, err)
				aborter.End()
				requireSetUp(t, db.Conn(), "pg_catalog") // rule T8b
			}
			require.NoError(t, p.ForceReconnect(t.Context(), ""))
			requireSetUp(t, data.Conn(), "pg_catalog")
		})
	}
}

func requireSetUp(t *testing.T, conn tx.Conn, path string) {
	t.Helper()
	var got string
	require.NoError(t, conn.QueryRowContext(t.Context(), "SELECT concat_ws(' ', current_setting('timezone'), current_setting('datestyle'), "+
		"current_setting('idle_in_transaction_session_timeout'), current_setting('search_path'), current_setting('application_name'))").Scan(&got))
	require.Equal(t, "UTC ISO, MDY 7s "+path+" surfin", got)
}

func TestConformanceOfTheManagerBehindAPoolerInSessionMode(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]func(t *testing.T, url string) Config{
		"url":     func(_ *testing.T, url string) Config { return Config{URL: url} },
		"stdlib":  func(t *testing.T, url string) Config { return Config{Lent: Lend(stdlibPool(t, url))} },
		"pgxpool": func(t *testing.T, url string) Config { return Config{Lent: Lend(pgxPool(t, url))} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			txtest.Run(t, func(t *testing.T) tx.Provider {
				return openWith(t, config(t, testdb.Pooled(t, testdb.Postgres(t), "session")))
			})
		})
	}
}

func TestAPoolThatIsRefusedHasItsSessionsAsTheyWere(t *testing.T) {
	t.Parallel()
	url := testdb.Pooled(t, testdb.Postgres(t), "transaction", "default_pool_size = 1")
	pool := stdlibPool(t, url)
	_, err := Open(t.Context(), map[string]Config{tx.Default: {Lent: Lend(pool)}})
	require.ErrorIs(t, err, errSharedSessions)
	var begun sql.NullString
	require.NoError(t, pool.QueryRowContext(t.Context(), "SELECT current_setting('surfin.begun', true)").Scan(&begun))
	require.Empty(t, begun.String)
}
