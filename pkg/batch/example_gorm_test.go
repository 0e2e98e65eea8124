package batch_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch"
	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// GormLedger writes invoices with gorm, which names their table invoices.
type GormLedger struct{ db tx.Database }

func NewGormLedger(databases tx.Provider) (*GormLedger, error) {
	db, err := databases.Database(tx.Default)
	return &GormLedger{db}, err
}

// Write inserts a chunk. ctx has the chunk's transaction, which the session joins: its rows and the position of the
// reader are committed together, or rolled back together.
func (l *GormLedger) Write(ctx context.Context, invoices []Invoice) error {
	session, err := gormdb.Session(ctx, l.db)
	if err != nil {
		return err
	}
	return session.Create(&invoices).Error
}

func gormJob(check func(Order) error) *batch.Job {
	return batch.NewJob("invoices").
		Step("table", batch.Use("sql", "create table if not exists invoices(id bigint primary key, total bigint not null)")).
		Step("bill", batch.Chunk{
			Size:   1,
			Reader: batch.ReaderOf[Order](NewOrders),
			Processors: []batch.Component{batch.Process(func(_ context.Context, o Order) (Invoice, error) {
				return Invoice{ID: o.ID, Total: o.Amount}, nil
			})},
			Writers: []batch.Component{batch.WriterOf[Invoice](NewGormLedger), batch.Write(func(_ context.Context, list []Invoice) error {
				return check(Order{ID: list[0].ID})
			})},
		})
}

// A writer that uses gorm in the transaction of its chunk. Order 3 fails after gorm has written its row: the row is
// rolled back with the position of the reader, and the restart writes it.
func ExampleWriterOf_gorm() {
	dir, done := testexample.Dir()
	defer done()
	ctx := context.Background()
	fails := true
	job := gormJob(func(o Order) error {
		if fails && o.ID == 3 {
			return batch.Fatal("bill", errors.New("the printer is on fire"))
		}
		return nil
	})
	s := testexample.Must(settings.Load(settings.Source{Dir: dir})) // or batch.LoadSettings()
	app := testexample.Must(batch.New(ctx, s, batch.Jobs(job), batch.Log(nil)))
	defer app.Close(ctx)
	db := testexample.Must(app.Databases.Database(tx.Default))

	failed := testexample.Must(app.Run(ctx, batch.RunRequest{Name: "invoices"}))
	fmt.Println(failed.Status, testexample.Text(db, "select count(*) from invoices"))

	fails = false
	restarted := testexample.Must(app.Restart(ctx, batch.RestartRequest{Execution: failed.ID}))
	completed := testexample.Must(restarted.Follow(ctx, nil))
	fmt.Println(completed.Status, testexample.Text(db, "select count(*) from invoices"))
	// Output:
	// FAILED 2
	// COMPLETED 3
}

func TestTheRowsOfGormAndTheCheckpointCommitOrRollBackTogether(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		fails := true
		var app *batch.App
		written := func() (list []Invoice) {
			db, err := app.Databases.Database(tx.Default)
			require.NoError(t, err)
			session, err := gormdb.Session(t.Context(), db)
			require.NoError(t, err)
			require.NoError(t, session.Order("id").Find(&list).Error)
			return list
		}
		app = newApp(t, settingsFor(t, url), batch.Jobs(gormJob(func(o Order) error {
			if fails && o.ID == 3 {
				return batch.Fatal("bill", errors.New("not today"))
			}
			return nil
		})))
		failed, err := app.Run(t.Context(), batch.RunRequest{Name: "invoices"})
		require.NoError(t, err)
		require.Equal(t, core.StatusFailed, failed.Status)
		require.Equal(t, []Invoice{{1, 100}, {2, 0}}, written(), "gorm's third row is rolled back")

		fails = false
		restarted, err := app.Restart(t.Context(), batch.RestartRequest{Execution: failed.ID})
		require.NoError(t, err)
		completed, err := restarted.Follow(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, completed.Status, completed.Error)
		require.Equal(t, []Invoice{{1, 100}, {2, 0}, {3, 300}}, written())
		steps, err := app.Repository.Steps(t.Context(), completed.ID)
		require.NoError(t, err)
		require.EqualValues(t, 1, steps[0].Counters.Read, "the position of the first two chunks was committed with their rows")
	})
}
