package batch_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// tariff is a dependency of a dependency.
type tariff struct{}

func newRatesOf(*tariff) *Rates { return &Rates{Percent: 19} }

func priceJob() *batch.Job {
	return batch.NewJob("price").Step("price", batch.Chunk{
		Reader:     batch.ReaderOf[Order](NewOrders),
		Processors: []batch.Component{batch.ProcessorOf[Order, Invoice](func(*Rates) *Price { panic("built only to run") })},
		Writers:    []batch.Component{batch.WriterOf[Invoice](NewLedger)},
	})
}

func TestCheckJobsFindsMissingDependencies(t *testing.T) {
	t.Parallel()
	never := func() *Rates { panic("built only to run") }
	jobs := []*batch.Job{priceJob()}
	require.EqualError(t, batch.CheckJobs(jobs), `processor "price.price.processor" needs a *batch_test.Rates: add an fx.Provide of a function that returns one`)
	require.NoError(t, batch.CheckJobs(jobs, fx.Provide(never)), "the tx.Provider of the writer is the App's")
	require.NoError(t, batch.CheckJobs(jobs, fx.Provide(newRatesOf), fx.Supply(&tariff{})))
	err := batch.CheckJobs(jobs, fx.Provide(newRatesOf), batch.Handler("bill", func(tx.Provider, tariff) task.HandlerFunc { return nil }))
	require.ErrorContains(t, err, `processor "price.price.processor" needs a *batch_test.Rates, which cannot be built: missing dependencies for function`)
	require.ErrorContains(t, err, "newRatesOf")
	require.ErrorContains(t, err, "needs_test.go:")
	require.ErrorContains(t, err, "missing type: *batch_test.tariff")
	require.ErrorContains(t, err, `handler of tasks "bill" needs a batch_test.tariff: add`)
	require.NotContains(t, err.Error(), "tx.Provider")
}

func TestTheStartOfAnAppNamesTheConstructorThatLacksADependency(t *testing.T) {
	t.Parallel()
	_, err := batch.New(t.Context(), settingsFor(t, testdb.SQLite(t)), batch.Jobs(priceJob()), fx.Provide(newRatesOf))
	require.ErrorContains(t, err, `processor "price.price.processor" needs a *batch_test.Rates, which cannot be built`)
	require.ErrorContains(t, err, "missing type: *batch_test.tariff")
}

func TestAnAppLendsItsDatabases(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		app := newApp(t, settingsFor(t, url))
		require.NoError(t, app.Prepare(t.Context()))
		db, err := app.Databases.Database(tx.Default)
		require.NoError(t, err)
		_, err = db.Conn().ExecContext(t.Context(), "create table note(id bigint primary key)")
		require.NoError(t, err)
		insert := func(id, end string) error {
			return tx.NewManager(db).Do(t.Context(), tx.Attr{}, func(ctx context.Context) error {
				_, err := tx.ConnOf(ctx, db).ExecContext(ctx, "insert into note values ("+id+")")
				require.NoError(t, err)
				accepted, err := app.Tasks.Submit(ctx, task.Submission{Type: "job", Title: end, Tasks: []task.Spec{{Payload: []byte(`{"job": "x"}`)}}})
				require.NoError(t, err)
				require.NotZero(t, accepted.Group)
				if end == "roll back" {
					return context.Canceled
				}
				return nil
			})
		}
		require.NoError(t, insert("1", "commit"))
		require.Error(t, insert("2", "roll back"))
		var notes int
		require.NoError(t, db.Conn().QueryRowContext(t.Context(), "select count(*) from note").Scan(&notes))
		require.Equal(t, 1, notes)
	})
}
