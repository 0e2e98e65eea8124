package batch_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing/fstest"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

// A pool that your program has already opened. It stays open when the App is closed.
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

// A job without YAML. It is run by its name.
func ExampleNewJob() {
	dir, done := testexample.Dir()
	defer done()
	price := func(_ context.Context, o Order) (Invoice, error) {
		if o.Amount == 0 {
			return Invoice{}, batch.ErrFilter
		}
		return Invoice{ID: o.ID, Total: o.Amount * 119 / 100}, nil
	}
	job := batch.NewJob("billing").
		Parameter(batch.Parameter{Name: "day", Type: "date", Default: "2026-11-20"}).
		Step("bill", batch.Chunk{
			Size:       2,
			Reader:     batch.ReaderOf[Order](NewOrders),
			Processors: []batch.Component{batch.Process(price)},
			Writers:    []batch.Component{batch.Use("table", batch.Config{"name": "invoices", "create": true})},
		}, batch.With{On: batch.On{"FAILED": batch.Fail("NOT_BILLED")}}).
		Step("tell", batch.Do(func(_ context.Context, c *batch.StepContribution) error {
			day, err := c.Params.Date("day")
			fmt.Println("billed", day)
			return err
		}), batch.With{When: "steps.bill.written > 0"})

	ctx := context.Background()
	s, err := settings.Load(settings.Source{Dir: dir}) // or batch.LoadSettings()
	testexample.Check(err)
	app, err := batch.New(ctx, s, batch.Jobs(job))
	testexample.Check(err)
	defer app.Close(ctx)
	execution, err := app.Run(ctx, batch.RunRequest{Name: "billing"})
	testexample.Check(err)
	steps, err := app.Repository.Steps(ctx, execution.ID)
	testexample.Check(err)
	fmt.Println(execution.Status, steps[0].Counters.Read, steps[0].Counters.Filter, steps[0].Counters.Write)
	// Output:
	// billed 2026-11-20
	// COMPLETED 3 1 2
}

// The errors of a job in Go name its step and option, all together.
func ExampleCheckJobs() {
	job := batch.NewJob("billing").
		Step("bill", batch.Chunk{
			Size:    -1,
			Reader:  batch.ReaderOf[Order](NewOrders),
			Writers: []batch.Component{batch.WriterOf[Invoice](NewLedger)},
		}, batch.With{Next: "tel"}).
		Step("tell", batch.Use("shel", "true"))
	fmt.Println(batch.CheckJobs([]*batch.Job{job}))
	// Output:
	// job billing: step bill: chunk.size: size must be at least 1
	// job billing: step bill: chunk.writer: writer billing.bill.writer: it takes batch_test.Invoice, but receives batch_test.Order
	// job billing: step bill: next: there is no element tel (did you mean tell? allowed: bill, tell, end, fail, stop)
	// job billing: step tell: tasklet.shel: there is no tasklet shel (did you mean shell? allowed: check, compare, fail, files, http, mail, migration, shell, sql, wait_file)
}

// Elements of a job in Go: a decision, parallel flows, steps that run in every execution.
func ExampleJob() {
	say := func(text string) batch.Component {
		return batch.Do(func(context.Context, *batch.StepContribution) error {
			fmt.Println(text)
			return nil
		})
	}
	job := batch.NewJob("flow").
		Parameter(batch.Parameter{Name: "n", Type: "int", Default: 4}).
		Decide("size", batch.If("params.n > 3", batch.To("both")), batch.Else(batch.End("SMALL"))).
		Split("both", []*batch.Flow{
			batch.NewFlow().Step("left", say("beside")),
			batch.NewFlow().Step("right", say("beside")),
		}).
		Atomic("group", batch.NewFlow().Step("one", say("one")).Step("two", say("two"))).
		Finally(batch.NewFlow().Step("tidy", say("tidied")))
	dir, done := testexample.Dir()
	defer done()
	ctx := context.Background()
	s, err := settings.Load(settings.Source{Dir: dir})
	testexample.Check(err)
	app, err := batch.New(ctx, s, batch.Jobs(job))
	testexample.Check(err)
	defer app.Close(ctx)
	execution, err := app.Run(ctx, batch.RunRequest{Name: "flow"})
	testexample.Check(err)
	fmt.Println(execution.Status)
	// Output:
	// beside
	// beside
	// one
	// two
	// tidied
	// COMPLETED
}

// Job files that the program carries, such as in an embed.FS, run by the names of their jobs. A file
// that is not registered is run as a Source.
func ExampleJobFiles() {
	files := fstest.MapFS{
		"nightly.yaml": {Data: []byte("job: nightly\nflow: [{job: clean, file: clean.yaml}]\n")},
		"clean.yaml":   {Data: []byte("job: clean\nflow: [{step: clean, tasklet: {sql: create table log(age int)}}]\n")},
	}
	dir, done := testexample.Dir()
	defer done()
	ctx := context.Background()
	s, err := settings.Load(settings.Source{Dir: dir})
	testexample.Check(err)
	app, err := batch.New(ctx, s, batch.JobFiles(batch.FS(files, "nightly.yaml")))
	testexample.Check(err)
	defer app.Close(ctx)
	execution, err := app.Run(ctx, batch.RunRequest{Name: "nightly"})
	testexample.Check(err)
	fmt.Println(execution.JobName, execution.Status)
	text := []byte("job: once\nflow: [{step: once, tasklet: {sql: delete from log}}]\n")
	execution, err = app.Run(ctx, batch.RunRequest{Source: batch.Bytes("once", text)})
	testexample.Check(err)
	fmt.Println(execution.JobName, execution.Status)
	// Output:
	// nightly COMPLETED
	// once COMPLETED
}
