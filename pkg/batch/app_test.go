package batch_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/assembly"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func settingsFor(t *testing.T, url string, environ ...string) batch.Settings {
	t.Helper()
	s, err := settings.Load(settings.Source{
		Dir: t.TempDir(), Environ: append([]string{"DATABASE_URL=" + url, "SURFIN_AUTO_MIGRATE=true"}, environ...),
	})
	require.NoError(t, err)
	return s
}

func newApp(t *testing.T, s batch.Settings, opts ...fx.Option) *batch.App {
	t.Helper()
	app, err := batch.New(t.Context(), s, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, app.Close(context.Background())) })
	return app
}

func jobFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "job.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func TestAConstructorOfAnotherFormIsRefusedByTheNameOfItsComponent(t *testing.T) {
	t.Parallel()
	var none func() *Orders
	for want, option := range map[string]fx.Option{
		`reader "orders": the constructor is a int, not a function`:                             batch.Reader[Order]("orders", 42),
		`reader "orders": the constructor is a <nil>, not a function`:                           batch.Reader[Order]("orders", nil),
		`reader "orders": the constructor is a func() *batch_test.Orders, not a function`:       batch.Reader[Order]("orders", none),
		`reader "orders": the constructor must not be variadic`:                                 batch.Reader[Order]("orders", func(...string) *Orders { return nil }),
		`reader "orders": the constructor is func(); it must return the component`:              batch.Reader[Order]("orders", func() {}),
		`reader "orders": the constructor is func() (*batch_test.Orders, int); it must`:         batch.Reader[Order]("orders", func() (*Orders, int) { return nil, 0 }),
		`reader "invoices": the constructor returns *batch_test.Orders, which is not a `:        batch.Reader[Invoice]("invoices", NewOrders),
		`processor "price": the constructor returns *batch_test.Price, which is not a `:         batch.Processor[Invoice, Order]("price", NewPrice),
		`writer "ledger": the constructor returns *batch_test.Ledger, which is not a `:          batch.Writer[Order]("ledger", NewLedger),
		`tasklet "sweep": the constructor returns *batch_test.Rates, which is not a core.Taskl`: batch.Tasklet("sweep", NewRates),
	} {
		_, err := assembly.NewRegistry(option)
		require.ErrorContains(t, err, want)
		require.Equal(t, 1, len(strings.Split(err.Error(), "\n")), "one line: %v", err)
	}
}

func TestEveryMissingDependencyIsReportedByTheNameOfItsComponent(t *testing.T) {
	t.Parallel()
	type Clock interface{ Now() time.Time }
	_, err := batch.New(t.Context(), settingsFor(t, testdb.SQLite(t)),
		batch.Processor[Order, Invoice]("price", func(PriceConfig, *Rates, Clock, func() int) *Price { return nil }))
	require.EqualError(t, err, strings.Join([]string{
		`processor "price" needs a *batch_test.Rates: add an fx.Provide of a function that returns one`,
		`processor "price" needs a batch_test.Clock: add an fx.Provide of a function that returns one`,
		`processor "price" needs a func() int: add an fx.Provide of a function that returns one`,
	}, "\n"))
}

func TestTheConstructorOfADependencyMayFail(t *testing.T) {
	t.Parallel()
	_, err := batch.New(t.Context(), settingsFor(t, testdb.SQLite(t)),
		batch.Processor[Order, Invoice]("price", NewPrice),
		fx.Provide(func() (*Rates, error) { return nil, errors.New("no rates today") }))
	require.EqualError(t, err, "no rates today")
}

func TestADescriptionNeedsNoDependency(t *testing.T) {
	t.Parallel()
	described, err := assembly.NewRegistry(
		batch.Processor[Order, Invoice]("price", NewPrice, batch.Summary("orders to invoices")),
		fx.Provide(func() *Rates { panic("built only to run") }),
	)
	require.NoError(t, err)
	price, ok := described.Component(registry.KindProcessor, "price")
	require.True(t, ok)
	require.Equal(t, "orders to invoices", price.Summary)
	require.Nil(t, price.New)
}

func TestNamesUsedTwiceAreAllReportedTogether(t *testing.T) {
	t.Parallel()
	sweep := func() batch.TaskletFunc { return nil }
	twice := fx.Options(
		batch.Item[Order]("order"), batch.Item[Invoice]("order"),
		batch.Tasklet("sweep", sweep), batch.Tasklet("sweep", sweep),
		batch.Tasklet("shell", sweep), // a shipped one
		batch.Reader[Order]("sweep", NewOrders),
	)
	want := "item type \"order\" is registered twice\ntasklet \"shell\" is registered twice\ntasklet \"sweep\" is registered twice"
	_, err := assembly.NewRegistry(twice)
	require.EqualError(t, err, want)
	_, err = batch.New(t.Context(), settingsFor(t, testdb.SQLite(t)), twice)
	require.EqualError(t, err, want)
}

func TestAConstructorThatFailsOrAnswersNilFailsTheStepByName(t *testing.T) {
	t.Parallel()
	app := newApp(t, settingsFor(t, testdb.SQLite(t)),
		batch.Tasklet("broken", func() (batch.TaskletFunc, error) { return nil, errors.New("no licence") }),
		batch.Reader[Order]("empty", func() *Orders { return nil }),
		batch.Tasklet("bomb", func() batch.TaskletFunc { panic("boom") }),
	)
	for tasklet, want := range map[string]string{
		"tasklet: broken": "tasklet broken: no licence",
		"tasklet: bomb":   "panic: boom",
		"chunk: {reader: empty, writer: {table: {name: orders, create: true}}}": "reader empty: the constructor returned nil",
	} {
		name := strings.NewReplacer(":", "_", " ", "_", "{", "", "}", "", ",", "").Replace(tasklet)
		execution, err := app.Run(t.Context(), batch.RunRequest{File: jobFile(t, "job: "+name+"\nflow:\n- {step: a, "+tasklet+"}\n")})
		require.NoError(t, err)
		require.Equal(t, core.StatusFailed, execution.Status)
		require.Contains(t, execution.Error, want)
	}
}

const billJob = `
job: bill
parameters:
  discount: {type: int, default: 0}
flow:
- step: table
  tasklet: {sql: "create table if not exists ledger(id bigint primary key, total bigint not null)"}
- step: bill
  chunk:
    size: 2
    reader: orders
    processor: {price: {discount: "${params.discount}"}}
    writer: ledger
`

func TestAJobOfTypedComponentsRunsFailsAndGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		var provider tx.Provider
		attempts := 0
		full := errors.New("the till is full")
		app := newApp(t, settingsFor(t, url), fx.Provide(NewRates),
			batch.Reader[Order]("orders", NewOrders),
			batch.Processor[Order, Invoice]("price", NewPrice),
			batch.Writer[Invoice]("ledger", func(p tx.Provider) (*till, error) {
				attempts++
				ledger, err := NewLedger(p)
				return &till{Ledger: ledger, full: full, fails: attempts == 1}, err
			}),
			fx.Populate(&provider))
		file := jobFile(t, billJob)

		first, err := app.Run(t.Context(), batch.RunRequest{File: file, Params: map[string]string{"discount": "10"}})
		require.NoError(t, err)
		require.Equal(t, core.StatusFailed, first.Status)
		require.Contains(t, first.Error, full.Error())
		require.Equal(t, [][2]int64{{1, 107}}, ledger(t, provider), "the second chunk was rolled back")

		second, err := app.Run(t.Context(), batch.RunRequest{File: file, Params: map[string]string{"discount": "10"}})
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, second.Status)
		require.Equal(t, 2, second.Attempt)
		require.Equal(t, [][2]int64{{1, 107}, {3, 321}}, ledger(t, provider))
		steps, err := app.Repository.Steps(t.Context(), second.ID)
		require.NoError(t, err)
		require.Len(t, steps, 1, "the completed step is passed")
		require.Equal(t, core.Counters{Read: 1, Write: 1, Commit: 1}, steps[0].Counters)

		_, err = app.Run(t.Context(), batch.RunRequest{File: file, Params: map[string]string{"discount": "10"}})
		var complete *ports.InstanceCompleteError
		require.ErrorAs(t, err, &complete)
		require.Equal(t, second.ID, complete.Execution.ID)
	})
}

type till struct {
	*Ledger
	full  error
	fails bool
}

func (w *till) Write(ctx context.Context, invoices []Invoice) error {
	if err := w.Ledger.Write(ctx, invoices); err != nil {
		return err
	}
	if w.fails && invoices[0].ID == 3 {
		return w.full
	}
	return nil
}

func ledger(t *testing.T, provider tx.Provider) [][2]int64 {
	t.Helper()
	db, err := provider.Database(tx.Default)
	require.NoError(t, err)
	rows, err := db.Conn().QueryContext(t.Context(), "select id, total from ledger order by id")
	require.NoError(t, err)
	defer rows.Close()
	var list [][2]int64
	for rows.Next() {
		var row [2]int64
		require.NoError(t, rows.Scan(&row[0], &row[1]))
		list = append(list, row)
	}
	require.NoError(t, rows.Err())
	return list
}

func TestAWrongFileOrParameterIsRefusedBeforeAnythingRuns(t *testing.T) {
	t.Parallel()
	app := newApp(t, settingsFor(t, testdb.SQLite(t)), fx.Provide(NewRates),
		batch.Reader[Order]("orders", NewOrders), batch.Processor[Invoice, Invoice]("audit", func() invoices { return invoices{} }))
	_, err := app.Run(t.Context(), batch.RunRequest{File: jobFile(t, `job: x
flow:
- step: a
  chunk:
    reader: orders
    processor: audit
    writer: {table: t}
`)})
	var problems jobfile.Problems
	require.ErrorAs(t, err, &problems)
	require.Len(t, problems, 1)
	require.Equal(t, [2]int{6, 16}, [2]int{problems[0].Line, problems[0].Col})
	require.Contains(t, problems[0].Msg, "processor audit: ")

	_, err = app.Run(t.Context(), batch.RunRequest{File: jobFile(t, "job: x\nparameters: {n: {type: int}}\nflow: [{step: a, tasklet: {sql: select 1}}]\n"), Params: map[string]string{"n": "x"}})
	var parameter *ports.ParameterError
	require.ErrorAs(t, err, &parameter)
	executions, err := app.Repository.Executions(t.Context(), ports.ExecutionFilter{Limit: 10})
	require.NoError(t, err)
	require.Empty(t, executions)
}

type invoices struct{}

func (invoices) Process(_ context.Context, i Invoice) (Invoice, error) { return i, nil }

func TestCloseStopsWhatTheOptionsStartedAndClosesTheDatabases(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		var said []string
		var provider tx.Provider
		app, err := batch.New(t.Context(), settingsFor(t, url), fx.Populate(&provider),
			fx.Invoke(func(lc fx.Lifecycle) {
				lc.Append(fx.StartStopHook(func() { said = append(said, "started") }, func() { said = append(said, "stopped") }))
			}))
		require.NoError(t, err)
		require.NoError(t, app.Prepare(t.Context()))
		require.NoError(t, app.Close(t.Context()))
		require.Equal(t, []string{"started", "stopped"}, said)
		db, err := provider.Database(tx.Default)
		require.NoError(t, err)
		_, err = db.Conn().ExecContext(t.Context(), "select 1")
		require.Error(t, err)
		_, err = app.Repository.Executions(t.Context(), ports.ExecutionFilter{Limit: 1})
		require.Error(t, err)
	})
}

func TestADatabaseWithTooFewConnectionsForAStepIsRefused(t *testing.T) {
	t.Parallel()
	_, err := batch.New(t.Context(), settingsFor(t, testdb.Postgres(t), "SURFIN_DATABASES_DEFAULT_MAX_OPEN=2"))
	require.EqualError(t, err, "database default: max_open is 2, but must be at least 3: a running step needs two connections, and one more is reserved")
}

// Rule R6.
func TestHeartbeatsDoNotWaitForTheConnectionsOfTheData(t *testing.T) {
	t.Parallel()
	s := settingsFor(t, testdb.Postgres(t), "SURFIN_DATABASES_DEFAULT_MAX_OPEN=3", "SURFIN_LEASE=20s", "SURFIN_HEARTBEAT=20ms")
	var provider tx.Provider
	var app *batch.App
	app = newApp(t, s, fx.Populate(&provider), batch.Tasklet("hold", func() batch.TaskletFunc {
		return func(ctx context.Context, c *batch.StepContribution) (err error) {
			db, err := provider.Database(tx.Default)
			if err != nil {
				return err
			}
			for range 3 {
				h, err := db.Begin(ctx, tx.Attr{})
				if err != nil {
					return err
				}
				tx.Hold(ctx, db.Name())
				defer func() { err = errors.Join(err, h.Rollback()) }()
			}
			short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
			defer cancel()
			if _, err := db.Conn().ExecContext(short, "select 1"); err == nil || !strings.Contains(err.Error(), "max_open") {
				return errors.Join(errors.New("a connection for data is free"), err)
			}
			return awaitHeartbeat(ctx, app.Repository, c.Step.JobExecutionID)
		}
	}, batch.NoTransaction()))
	execution, err := app.Run(t.Context(), batch.RunRequest{File: jobFile(t, "job: hold\nflow: [{step: hold, tasklet: hold, timeout: 15s}]\n")})
	require.NoError(t, err)
	require.Equal(t, core.StatusCompleted, execution.Status, execution.Error)
}

func awaitHeartbeat(ctx context.Context, r ports.Repository, id core.JobExecutionID) error {
	before, err := r.Execution(ctx, id)
	if err != nil {
		return err
	}
	for {
		now, err := r.Execution(ctx, id)
		if err != nil || now.LeaseUntil.After(before.LeaseUntil) {
			return err
		}
	}
}

// The last chunk's COMMIT fails on a deferred constraint, and its position and
// counters are gone with its rows.
func TestTheCheckpointJoinsTheTransactionOfTheDataOverWhateverPool(t *testing.T) {
	t.Parallel()
	var provider tx.Provider
	app := newApp(t, settingsFor(t, testdb.Postgres(t)), fx.Provide(NewRates), fx.Populate(&provider),
		batch.Reader[Order]("orders", NewOrders),
		batch.Processor[Order, Invoice]("price", func() same { return same{} }),
		batch.Writer[Invoice]("ledger", NewLedger))
	execution, err := app.Run(t.Context(), batch.RunRequest{File: jobFile(t, `
job: bill
flow:
- step: table
  tasklet: {sql: "create table ledger(id bigint unique deferrable initially deferred, total bigint not null)"}
- step: bill
  chunk: {size: 2, reader: orders, processor: price, writer: ledger}
`)})
	require.NoError(t, err)
	require.NotEqual(t, core.StatusCompleted, execution.Status)
	require.Contains(t, execution.Error, "duplicate key")
	require.Equal(t, [][2]int64{{1, 100}, {2, 0}}, ledger(t, provider))
	steps, err := app.Repository.Steps(t.Context(), execution.ID)
	require.NoError(t, err)
	require.Equal(t, int64(1), steps[1].Counters.Commit)
	require.Equal(t, int64(2), steps[1].Counters.Write)
	require.Contains(t, string(steps[1].Position), "2", "behind the first chunk")
	require.NotContains(t, string(steps[1].Position), "3")
}

type same struct{}

func (same) Process(_ context.Context, o Order) (Invoice, error) {
	return Invoice{ID: max(o.ID%3, 1), Total: o.Amount}, nil
}

func TestTheHelloWorldOfTheReadmeIsTheExample(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	hello, err := os.ReadFile("../../example/hello/main.go")
	require.NoError(t, err)
	require.Contains(t, string(readme), "```go\n"+string(hello)+"```\n")
	require.LessOrEqual(t, bytes.Count(hello, []byte("\n")), 20)
	birdstrikes, err := os.ReadFile("../../example/birdstrikes/main.go")
	require.NoError(t, err)
	require.LessOrEqual(t, bytes.Count(birdstrikes, []byte("\n")), 150)
}
