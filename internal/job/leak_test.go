package job_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Not parallel, so every new goroutine is the execution's.
func TestNothingRunsOnWhenAnExecutionIsOver(t *testing.T) { //nolint:paralleltest // it counts goroutines
	testdb.Each(t, func(t *testing.T, url string) {
		w := &weather{Engine: testengine.New(t, url), name: "job"}
		w.Exec("CREATE TABLE done (job text NOT NULL, step text NOT NULL)")
		flow := func(w *weather) model.Flow {
			return w.rounds(&model.SplitElement{Name: "s", Branches: []model.Flow{
				{Elements: []model.Element{w.partitioned("p", 3)}}, {Elements: []model.Element{w.group("g")}}, {Elements: []model.Element{w.child("c", "m")}},
			}})
		}
		warm := &weather{Engine: w.Engine, name: "warm"} // connections of the pool
		_, err := warm.launch(warm.ofFlow(flow))
		require.NoError(t, err)

		before := goleak.IgnoreCurrent()
		j := w.ofFlow(flow)
		j.Listeners = func(context.Context, *core.View) ([]any, error) { return []any{silent{""}}, nil }
		j.Finally = model.Flow{Elements: []model.Element{w.step("finally")}}
		for _, stop := range []chan struct{}{closed(), nil} {
			_, err := w.Launcher.Run(t.Context(), j, core.Parameters{}, stop)
			require.NoError(t, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_, err = w.Launcher.Run(ctx, testengine.Job("cancelled", w.Tasklet("a", tx.Attr{}, func(ctx context.Context, _ *core.StepContribution) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		})), core.Parameters{}, nil)
		require.NoError(t, err)
		goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction("database/sql.(*DB).connectionOpener"), goleak.IgnoreAnyFunction("github.com/go-sql-driver/mysql.(*mysqlConn).startWatcher.func1"),
			goleak.IgnoreAnyFunction("github.com/jackc/pgx/v5/pgconn/internal/bgreader.(*BGReader).bgRead"))
	})
}
