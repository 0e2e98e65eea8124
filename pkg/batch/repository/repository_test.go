package repository_test

import (
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testkit/repositorytest"
	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

func TestRepository(t *testing.T) {
	t.Parallel()
	kinds := map[string]func(testing.TB) string{"sqlite": testdb.SQLite, "postgres": testdb.Postgres, "mysql": testdb.MySQL}
	for name, url := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repositorytest.Run(t, func(t *testing.T) *repositorytest.Fixture {
				address := url(t)
				first := connect(t, address)
				require.NoError(t, repository.New(first, repository.Options{}).Migrate(t.Context()))
				var opened atomic.Bool // one more connection takes the server as long as many a test
				return &repositorytest.Fixture{
					Connect: func(t *testing.T) tx.Database {
						if opened.CompareAndSwap(false, true) {
							return first
						}
						return connect(t, address)
					},
					New: func(db tx.Database, observer core.Observer) ports.Repository {
						return repository.New(db, repository.Options{Observer: observer}).Ports()
					},
					Prefix: repository.DefaultPrefix,
				}
			})
		})
	}
}

func connect(t *testing.T, url string) tx.Database {
	t.Helper()
	provider, err := gormdb.Open(t.Context(), map[string]gormdb.Config{tx.Default: {URL: url}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, provider.Close()) })
	db, err := provider.Database(tx.Default)
	require.NoError(t, err)
	return db
}

func TestLaunchSeesWhatItWaitedForWhateverTheServersDefaultIsolation(t *testing.T) {
	t.Parallel()
	url := testdb.Postgres(t)
	first := connect(t, url)
	_, err := first.Conn().ExecContext(t.Context(), `DO $$ BEGIN
		EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = %L', current_database(), 'repeatable read'); END $$`)
	require.NoError(t, err)
	db := connect(t, url) // a new session, with the new default
	var level string
	require.NoError(t, db.Conn().QueryRowContext(t.Context(), "SHOW default_transaction_isolation").Scan(&level))
	require.Equal(t, "repeatable read", level)
	repo := repository.New(db, repository.Options{})
	require.NoError(t, repo.Migrate(t.Context()))

	const racers = 8
	errs := make(chan error, racers)
	for i := range racers {
		go func() {
			_, err := repo.Launch(t.Context(), ports.LaunchRequest{JobName: "load", Owner: core.Owner{Host: "h"}, Lease: time.Hour, New: i%2 == 0})
			errs <- err
		}()
	}
	won := 0
	for range racers {
		if err := <-errs; err == nil {
			won++
		} else {
			var running *ports.AlreadyRunningError
			require.ErrorAs(t, err, &running)
		}
	}
	require.Equal(t, 1, won)
}
