package batch_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func innerJob(name string) *batch.Job {
	insert := func(v string) batch.Component { return batch.Use("sql", "insert into nlog values ('"+v+"')") }
	return batch.NewJob(name).Step("t", batch.Use("sql", "create table if not exists nlog(x text)")).
		Split("sp", []*batch.Flow{
			batch.NewFlow().Step("a", insert("a")).Step("a2", insert("a2")),
			batch.NewFlow().Step("b", insert("b")).Step("b2", insert("b2")),
		})
}

// Rule T2a.
func TestALaunchInATransactionIsRefused(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		var app *batch.App
		var refused, started error
		outer := batch.NewJob("outer").Step("o", batch.TaskletOf(batch.TaskletFunc(func(ctx context.Context, _ *batch.StepContribution) error {
			_, refused = app.Run(ctx, batch.RunRequest{Name: "inner"})
			_, started = app.Start(ctx, batch.RunRequest{Name: "inner"})
			return errors.New("outer fails")
		})))
		app = newApp(t, settingsFor(t, url), batch.Jobs(innerJob("inner"), outer))
		e, err := app.Run(t.Context(), batch.RunRequest{Name: "outer"})
		require.NoError(t, err)
		require.ErrorContains(t, errors.New(e.Error), "outer fails")
		require.ErrorIs(t, refused, ports.ErrInTransaction)
		require.ErrorIs(t, started, ports.ErrInTransaction)
		require.ErrorContains(t, refused, "make it an element of the job (`job: inner`), or give the step the propagation NOT_SUPPORTED")
	})
}

// Rule T2a.
func TestAJobThatAStepWithoutATransactionLaunchesIsNotPartOfTheStep(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		var app *batch.App
		var ran *batch.Execution
		var started *batch.Running
		outer := batch.NewJob("outer").Step("o", batch.TaskletOf(batch.TaskletFunc(func(ctx context.Context, _ *batch.StepContribution) (err error) {
			if ran, err = app.Run(ctx, batch.RunRequest{Name: "inner"}); err != nil {
				return err
			}
			if started, err = app.Start(ctx, batch.RunRequest{Name: "later"}); err != nil {
				return err
			}
			return errors.New("outer fails")
		})), batch.With{Transaction: &batch.Transaction{Propagation: "NOT_SUPPORTED"}})
		app = newApp(t, settingsFor(t, url), batch.Jobs(innerJob("inner"), innerJob("later"), outer))
		e, err := app.Run(t.Context(), batch.RunRequest{Name: "outer"})
		require.NoError(t, err)
		require.ErrorContains(t, errors.New(e.Error), "outer fails")
		later, err := started.Wait()
		require.NoError(t, err)
		for _, e := range []*batch.Execution{ran, later} {
			require.Equal(t, core.StatusCompleted, e.Status, e.Error)
			_, err = app.Repository.Execution(t.Context(), e.ID)
			require.NoError(t, err)
		}
	})
}
