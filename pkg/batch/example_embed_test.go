package batch_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/cli/settings"
)

// A pool that your program has opened anyway. It stays open when the App is closed.
func ExampleDatabase() {
	file, done := testexample.File("birds.yaml", "job: birds\nflow: [{step: table, tasklet: {sql: create table bird(name text)}}]\n")
	defer done()
	ctx := context.Background()
	pool, err := sql.Open("sqlite", filepath.Join(filepath.Dir(file), "app.db")+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)")
	testexample.Check(err)
	defer pool.Close()
	s, err := settings.Load(settings.Source{Dir: filepath.Dir(file)}) // or batch.LoadSettings()
	testexample.Check(err)
	app, err := batch.New(ctx, s, batch.Database("default", pool))
	testexample.Check(err)
	execution, err := app.Run(ctx, batch.RunRequest{File: file})
	testexample.Check(err)
	fmt.Println(execution.Status)
	testexample.Check(app.Close(ctx))
	_, err = pool.ExecContext(ctx, "insert into bird values ('owl')")
	fmt.Println(err)
	// Output:
	// COMPLETED
	// <nil>
}

// The pool of an fx application of your own, and of the jobs in it.
func ExampleDatabaseFrom() {
	newPool := func(lc fx.Lifecycle) (*pgxpool.Pool, error) {
		pool, err := pgxpool.New(context.Background(), "postgres://shop@localhost/shop")
		if err == nil {
			lc.Append(fx.StopHook(pool.Close))
		}
		return pool, err
	}
	s, err := batch.LoadSettings()
	testexample.Check(err)
	_ = fx.New(
		fx.Provide(newPool),
		batch.Module(s), batch.DatabaseFrom[*pgxpool.Pool]("default"),
		fx.Invoke(func(*batch.App) {}),
	)
}
