package batch_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func lentPools(t *testing.T, url string, limit int, setup string) map[string]fx.Option {
	t.Helper()
	after := func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, setup)
		return err
	}
	config, err := pgxpool.ParseConfig(url)
	require.NoError(t, err)
	config.MaxConns, config.AfterConnect = int32(limit), after
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	conn, err := pgx.ParseConfig(url)
	require.NoError(t, err)
	db := stdlib.OpenDB(*conn, stdlib.OptionAfterConnect(after))
	db.SetMaxOpenConns(limit)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return map[string]fx.Option{"pgxpool": batch.Database[*pgxpool.Pool]("default", pool), "stdlib": batch.Database[*sql.DB]("default", db)}
}

// Rule R8.
func TestStepsWaitForTheConnectionsOfALentPool(t *testing.T) {
	t.Parallel()
	chunk := func(n string) batch.Chunk {
		return batch.Chunk{
			Size:       50,
			Reader:     batch.Use("query", batch.Config{"sql": "select id from src", "key": []string{"id"}, "item": batch.Config{"id": "int"}}),
			Processors: []batch.Component{batch.Use("map", batch.Config{"b": "'" + n + "'"})}, Writers: []batch.Component{batch.Use("table", "dst")},
		}
	}
	for _, limit := range []int{3, 6} {
		for kind := range lentPools(t, testdb.Postgres(t), limit, "") {
			t.Run(fmt.Sprint(kind, limit), func(t *testing.T) {
				t.Parallel()
				var branches []*batch.Flow
				for i := range 8 {
					branches = append(branches, batch.NewFlow().Step(fmt.Sprintf("c%d", i), chunk(fmt.Sprint("c", i))))
				}
				many := batch.NewJob("many").Step("t", batch.Use("sql", "create table src(id int primary key); insert into src select generate_series(1,500); create table dst(id int, b text)")).
					Split("sp", branches).
					Step("p", chunk("p"), batch.With{Partition: &batch.Partitioned{By: batch.Use("count", 12), Workers: (limit - 1) / 2}})
				pool := lentPools(t, testdb.Postgres(t), limit, "")[kind]
				app := newApp(t, settingsFor(t, "sqlite:/not/there.db"), pool, batch.Jobs(many))
				e, err := app.Run(t.Context(), batch.RunRequest{Name: "many"})
				require.NoError(t, err)
				require.Equal(t, core.StatusCompleted, e.Status, e.Error)
			})
		}
	}
}

// Rule R8.
func TestTheHistoryIsWhereTheSessionsOfALentPoolLook(t *testing.T) {
	t.Parallel()
	for kind := range lentPools(t, testdb.EmptyPostgres(t), 5, "") {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			url := testdb.EmptyPostgres(t)
			setup, err := sql.Open("pgx", url)
			require.NoError(t, err)
			defer func() { require.NoError(t, setup.Close()) }()
			_, err = setup.ExecContext(t.Context(), `create schema app`)
			require.NoError(t, err)
			one := batch.NewJob("one").Step("t", batch.Use("sql", "create table here(id int)"))
			pool := lentPools(t, url, 5, "set search_path = app; set timezone = 'Asia/Tokyo'")[kind]
			app := newApp(t, settingsFor(t, "sqlite:/not/there.db"), pool, batch.Jobs(one))
			e, err := app.Run(t.Context(), batch.RunRequest{Name: "one"})
			require.NoError(t, err)
			require.Equal(t, core.StatusCompleted, e.Status, e.Error)
			var outside int
			require.NoError(t, setup.QueryRowContext(t.Context(), "select count(*) from information_schema.tables where table_schema = 'public'").Scan(&outside))
			require.Zero(t, outside)
		})
	}
}
