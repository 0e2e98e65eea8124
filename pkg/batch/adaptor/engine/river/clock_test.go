package river

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/runtime/engine"
	"github.com/surfin-batch/surfin/internal/testdb"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// shifted is a database with another clock than this machine's: its sessions find functions in their own
// schema before the server's.
func shifted(t *testing.T, by time.Duration) tx.Database {
	t.Helper()
	url := testdb.Postgres(t)
	admin := open(t, url)
	statements := []string{"CREATE SCHEMA shifted"}
	for _, name := range []string{"now", "clock_timestamp", "statement_timestamp", "transaction_timestamp"} {
		statements = append(statements, fmt.Sprintf(`CREATE FUNCTION shifted.%[1]s() RETURNS timestamptz LANGUAGE sql STABLE
			AS $$ SELECT pg_catalog.%[1]s() + interval '%[2]d seconds' $$`, name, int(by.Seconds())))
	}
	statements = append(statements, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = shifted, pg_catalog, public', current_database()); END $$`)
	for _, s := range statements {
		_, err := admin.Conn().ExecContext(t.Context(), s)
		require.NoError(t, err)
	}
	return open(t, url)
}

func TestADeliveryComesByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{90 * time.Second, -90 * time.Second} {
		t.Run(by.String(), func(t *testing.T) {
			t.Parallel()
			db := shifted(t, by)
			e := migrated(t, Config{Database: db})
			now := func() (at time.Time) {
				require.NoError(t, db.Conn().QueryRowContext(t.Context(), "SELECT clock_timestamp()").Scan(&at))
				return at
			}
			began := now()
			require.InDelta(t, by.Seconds(), time.Until(began).Seconds(), 5)
			late := e.Capabilities().Late
			got := make(chan engine.Delivery, 100)
			again := true
			stop := run(t, e, func(_ context.Context, d engine.Delivery) engine.Answer {
				got <- d
				if d.ID == 4 && again {
					again = false
					return engine.RetryAfter(2 * time.Second)
				}
				return engine.Done()
			})
			defer stop()
			old, later := task(2, 2), task(3, 1)
			old.NotBefore, later.NotBefore = began.Add(-time.Second), began.Add(3*time.Second)
			require.NoError(t, e.Enqueue(t.Context(), task(1, 1), old, later, task(4, 1)))
			at := map[int64][]time.Duration{}
			for range 5 {
				select {
				case d := <-got:
					at[d.ID] = append(at[d.ID], now().Sub(began))
				case <-time.After(3*time.Second + 2*late):
					require.Fail(t, "a delivery does not come", "%v", at)
				}
			}
			require.Less(t, at[1][0], late)
			require.Less(t, at[2][0], late)
			require.GreaterOrEqual(t, at[3][0], 3*time.Second)
			require.Less(t, at[3][0], 3*time.Second+late)
			require.GreaterOrEqual(t, at[4][1]-at[4][0], 1900*time.Millisecond)
			require.Less(t, at[4][1]-at[4][0], 2*time.Second+late)
		})
	}
}
