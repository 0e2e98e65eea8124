package batch_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type shop struct {
	db     *sql.DB
	closed bool
}

func newShop(lc fx.Lifecycle, db *sql.DB) *shop {
	s := &shop{db: db}
	lc.Append(fx.StartHook(func(ctx context.Context) error {
		_, err := db.ExecContext(ctx, "create table orders(id bigint primary key, amount bigint not null)")
		for i := 1; i <= 7 && err == nil; i++ {
			_, err = db.ExecContext(ctx, "insert into orders values ($1, $2)", i, 100*i)
		}
		return err
	}))
	return s
}

const shopJob = `
job: bill
flow:
- step: table
  tasklet: {sql: "create table if not exists invoices(id bigint primary key, total bigint not null)"}
- step: bill
  chunk:
    size: 2
    reader: {query: {sql: "select id, amount as total from orders order by id", key: [id], item: {id: int, total: int}}}
    processor: [{filter: "item.id != 6"}, weigh]
    writer: {table: {name: invoices}}
`

type weigh struct{ fails *bool }

func (w weigh) Process(_ context.Context, r batch.Row) (batch.Row, error) {
	if r.At(0).Any() == int64(5) && *w.fails {
		*w.fails = false
		return r, errors.New("the scales are out of order")
	}
	return r, nil
}

func TestAnApplicationAndItsJobsShareAPool(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		driver, address := "pgx", url
		if filepath.Ext(url) == ".db" {
			driver, address = "sqlite", url[len("sqlite:"):]+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)"
		}
		var app *batch.App
		var s *shop
		fails := true
		whole := fx.New(fx.NopLogger,
			fx.Provide(newShop, func(lc fx.Lifecycle) (*sql.DB, error) {
				db, err := sql.Open(driver, address)
				lc.Append(fx.StopHook(func() error {
					s.closed = true
					return errors.Join(s.db.PingContext(context.Background()), db.Close())
				}))
				return db, err
			}),
			batch.Module(settingsFor(t, "sqlite:/not/there.db")), batch.DatabaseFrom[*sql.DB]("default"),
			batch.Processor[batch.Row, batch.Row]("weigh", func() weigh { return weigh{&fails} }),
			fx.Populate(&s, &app))
		require.NoError(t, whole.Start(t.Context()))
		file := jobFile(t, shopJob)
		first, err := app.Run(t.Context(), batch.RunRequest{File: file})
		require.NoError(t, err)
		require.Equal(t, core.StatusFailed, first.Status)
		require.Contains(t, first.Error, "the scales are out of order")
		require.Equal(t, 4, invoicesOf(t, s.db))
		second, err := app.Run(t.Context(), batch.RunRequest{File: file})
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, second.Status, second.Error)
		require.Equal(t, 6, invoicesOf(t, s.db))
		require.NoError(t, app.Close(t.Context()))
		require.Equal(t, 6, invoicesOf(t, s.db), "the pool is open")
		require.NoError(t, whole.Stop(t.Context()))
		require.True(t, s.closed)
	})
}

func invoicesOf(t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	require.NoError(t, db.QueryRowContext(t.Context(), "select count(*) from invoices").Scan(&n))
	return n
}

func TestAnAppOverAPgxpoolDoesNotCloseIt(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), testdb.Postgres(t))
	require.NoError(t, err)
	defer pool.Close()
	app, err := batch.New(t.Context(), settingsFor(t, "sqlite:/not/there.db"), batch.Database("default", pool))
	require.NoError(t, err)
	execution, err := app.Run(t.Context(), batch.RunRequest{File: jobFile(t, "job: x\nflow: [{step: a, tasklet: {sql: create table t(id bigint)}}]\n")})
	require.NoError(t, err)
	require.Equal(t, core.StatusCompleted, execution.Status, execution.Error)
	require.NoError(t, app.Close(t.Context()))
	require.Eventually(t, func() bool { return pool.Stat().AcquiredConns() == 0 }, 5*time.Second, time.Millisecond, "a closed connection goes back in a goroutine of the pool")
	_, err = pool.Exec(t.Context(), "insert into t values (1)")
	require.NoError(t, err)
}

func TestTwoPoolsForOneNameAreRefused(t *testing.T) {
	t.Parallel()
	var none *sql.DB
	_, err := batch.New(t.Context(), settingsFor(t, testdb.SQLite(t)), batch.Database("default", none), batch.Database("default", none))
	require.EqualError(t, err, "database default: it has two pools of the application")
}
