package gormdb

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/pgxconn"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testproxy"
	"github.com/surfin-batch/surfin/internal/txwork"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Rule OP3.
func TestATransactionNamesItsWorkInTheSession(t *testing.T) {
	t.Parallel()
	line := testproxy.New(t, testdb.Postgres(t))
	db := oneConnection(t, line.URL())
	name := func(conn tx.Conn) (name string) {
		require.NoError(t, conn.QueryRowContext(t.Context(), "SELECT application_name FROM pg_stat_activity WHERE pid = pg_backend_pid()").Scan(&name))
		return name
	}
	in := func(ctx context.Context, late bool) (named string) {
		require.NoError(t, tx.NewManager(db).Do(ctx, tx.Attr{Late: late}, func(ctx context.Context) error {
			named = name(tx.ConnOf(ctx, db))
			return nil
		}))
		return named
	}
	work := txwork.WithWork(t.Context(), "execution 12 of load")
	for _, late := range []bool{false, true} {
		require.Equal(t, "surfin execution 12 of load", in(work, late))
		require.Equal(t, "surfin execution 12 of load", in(work, late), "nothing is set again")
		require.Equal(t, "surfin execution 13 of load", in(txwork.WithWork(t.Context(), "execution 13 of load"), late))
		require.Equal(t, "surfin", in(t.Context(), late))
		require.ErrorIs(t, tx.NewManager(db).Do(work, tx.Attr{Late: late}, func(context.Context) error { return context.Canceled }), context.Canceled)
		require.Equal(t, "surfin", in(t.Context(), late))
	}

	long := txwork.WithWork(t.Context(), "execution 7 of l'été \\ "+strings.Repeat("x", 80))
	require.Equal(t, ("surfin execution 7 of l'?t? \\ " + strings.Repeat("x", 80))[:63], in(long, false))

	sent := func(ctx context.Context) int {
		before := line.Busiest().RoundTrips
		require.NoError(t, tx.NewManager(db).Do(ctx, tx.Attr{Late: true}, func(ctx context.Context) error {
			return pgxconn.RunFirst(ctx, tx.ConnOf(ctx, db), "insert", func(c *pgx.Conn, begin pgxconn.Begin) error {
				_, err := begin.CopyFrom(ctx, c, strings.NewReader(""), "copy bird from stdin")
				return err
			})
		}))
		return line.Busiest().RoundTrips - before
	}
	require.Equal(t, sent(t.Context()), sent(work), "round trips")
}

func TestASessionKeepsTheNameThatItsURLHas(t *testing.T) {
	t.Parallel()
	url := testdb.Postgres(t)
	separator := "?"
	if strings.Contains(url, "?") {
		separator = "&"
	}
	db := birds(t, open(t, url+separator+"application_name=billing"))
	require.NoError(t, tx.NewManager(db).Do(txwork.WithWork(t.Context(), "execution 3 of bills"), tx.Attr{}, func(ctx context.Context) error {
		var name string
		require.NoError(t, tx.ConnOf(ctx, db).QueryRowContext(ctx, "SELECT current_setting('application_name')").Scan(&name))
		require.Equal(t, "billing execution 3 of bills", name)
		return nil
	}))
}

// BenchmarkAChunkThatIsNamed is the cost of the name, for chunks of 1000 rows.
func BenchmarkAChunkThatIsNamed(b *testing.B) {
	provider, err := Open(b.Context(), map[string]Config{tx.Default: {URL: testdb.Postgres(b)}})
	require.NoError(b, err)
	defer provider.Close()
	db, err := provider.Database("")
	require.NoError(b, err)
	_, err = db.Conn().ExecContext(b.Context(), "CREATE UNLOGGED TABLE chunk (id int, name text)")
	require.NoError(b, err)
	rows := strings.Repeat("1\tsome text of a row\n", 1000)
	best := map[string]time.Duration{"": time.Hour, "execution 12 of load": time.Hour}
	for b.Loop() { // in turn, and the fastest of each: the machine has other users
		for work := range best {
			begun := time.Now()
			for range 4 {
				require.NoError(b, tx.NewManager(db).Do(txwork.WithWork(b.Context(), work), tx.Attr{Late: true}, func(ctx context.Context) error {
					return pgxconn.RunFirst(ctx, tx.ConnOf(ctx, db), "copy", func(c *pgx.Conn, begin pgxconn.Begin) error {
						_, err := begin.CopyFrom(ctx, c, strings.NewReader(rows), "copy chunk from stdin")
						return err
					})
				}))
			}
			best[work] = min(best[work], time.Since(begun)/4)
		}
	}
	b.ReportMetric(float64(best[""].Microseconds()), "plain-us/chunk")
	b.ReportMetric(float64(best["execution 12 of load"].Microseconds()), "named-us/chunk")
}
