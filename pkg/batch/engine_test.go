package batch_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/internal/runtime/engine"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/engine/river"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func withEngine(t *testing.T, environ ...string) batch.Settings {
	t.Helper()
	s, err := settings.Load(settings.Source{Dir: t.TempDir(), Environ: append(environ, "SURFIN_ENGINE=river")})
	require.NoError(t, err)
	return s
}

func TestAnEngineThatTheProgramLacksOrTheDatabaseIsNotForIsRefusedWithItsPlace(t *testing.T) {
	t.Parallel()
	_, err := batch.New(t.Context(), withEngine(t))
	require.EqualError(t, err, "SURFIN_ENGINE: this program was built without the engine river (it has: local): "+
		"add its Module to the options of batch.New or cli.Main, or use the engine local")
	_, err = batch.New(t.Context(), withEngine(t), river.Module())
	require.EqualError(t, err, "SURFIN_ENGINE: engine river: it needs PostgreSQL, but the database default is sqlite; use the engine local")
}

func TestWithoutASettingTheEngineIsLocal(t *testing.T) {
	t.Parallel()
	var made engine.Engine
	s := batch.Settings{Databases: map[string]settings.Database{tx.Default: {URL: "sqlite:" + filepath.Join(t.TempDir(), "a.db")}},
		Repository: settings.Repository{Database: tx.Default, Prefix: "surfin_"}}
	app, err := batch.New(t.Context(), s, river.Module(), fx.Populate(&made))
	require.NoError(t, err)
	defer func() { require.NoError(t, app.Close(t.Context())) }()
	require.Equal(t, "local", made.Capabilities().Name)
}

func TestMigrateMakesTheTablesOfTheEngine(t *testing.T) {
	t.Parallel()
	url := testdb.Postgres(t)
	var made engine.Engine
	app, err := batch.New(t.Context(), withEngine(t, "DATABASE_URL="+url, "SURFIN_RIVER_SCHEMA=mine"), river.Module(), fx.Populate(&made))
	require.NoError(t, err)
	defer func() { require.NoError(t, app.Close(t.Context())) }()
	refused := &operator.Refusal{}
	require.ErrorAs(t, app.Prepare(t.Context()), &refused)
	require.Equal(t, refusal.Schema, refused.Reason)
	changed, err := app.Migrate(t.Context(), "")
	require.NoError(t, err)
	require.True(t, changed)
	require.NoError(t, app.Prepare(t.Context()))
	changed, err = app.Migrate(t.Context(), "")
	require.NoError(t, err)
	require.False(t, changed)

	// Rule TS6: here the handlers of live workers are known.
	file := write(t, t.TempDir(), "job.yaml", "job: mails\nflow:\n- step: send\n  tasks: {handler: mail, items: [1]}\n")
	plan, err := app.Plan(t.Context(), operator.PlanRequest{File: file})
	require.NoError(t, err)
	require.Equal(t, []string{`no live worker executes tasks of type "mail": they wait for one`}, plan.Steps[0].Warnings)

	later, err := batch.New(t.Context(), withEngine(t, "DATABASE_URL="+url, "SURFIN_RIVER_SCHEMA=another"), river.Module())
	require.NoError(t, err)
	defer func() { require.NoError(t, later.Close(t.Context())) }()
	err = later.Prepare(t.Context())
	require.ErrorIs(t, err, core.ErrSchemaMissing)
	require.ErrorContains(t, err, "the tables in schema another do not exist")
	changed, err = later.Migrate(t.Context(), "")
	require.NoError(t, err)
	require.True(t, changed)
}

func TestTheEngineWorksWithALentPool(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), testdb.Postgres(t))
	require.NoError(t, err)
	defer pool.Close()
	s := withEngine(t)
	s.AutoMigrate = settings.MigrateAlways
	var made engine.Engine
	app, err := batch.New(t.Context(), s, batch.Database(tx.Default, pool), river.Module(), fx.Populate(&made))
	require.NoError(t, err)
	defer func() { require.NoError(t, app.Close(t.Context())) }()
	require.NoError(t, app.Prepare(t.Context()))
	require.NoError(t, made.Enqueue(t.Context(), engine.Delivery{Kind: engine.Task, ID: 1, Epoch: 1, Queue: "mail"}))
	stop, got := make(chan struct{}), make(chan engine.Delivery, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- made.Run(t.Context(), stop, engine.Subscription{Queues: []string{"mail"}, Slots: 1}, func(_ context.Context, d engine.Delivery) engine.Answer {
			got <- d
			return engine.Done()
		})
	}()
	select {
	case d := <-got:
		require.Equal(t, int64(1), d.ID)
	case <-time.After(time.Minute):
		require.FailNow(t, "it was not delivered in time")
	}
	close(stop)
	require.NoError(t, <-ended)
}
