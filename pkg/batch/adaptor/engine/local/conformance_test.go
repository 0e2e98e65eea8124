package local

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/surfin-batch/surfin/internal/runtime/engine"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testkit/enginetest"
)

func TestMain(m *testing.M) { os.Exit(enginetest.Main(m, newEngine)) }

func newEngine(_ context.Context, w enginetest.World) (engine.Engine, error) {
	return New(Config{Database: w.Database, Source: w.Work, Scan: 100 * time.Millisecond, Log: w.Logger})
}

func TestConformanceOnSQLite(t *testing.T) {
	t.Parallel()
	enginetest.Run(t, testdb.SQLite, newEngine)
}

func TestConformanceOnPostgreSQL(t *testing.T) {
	t.Parallel()
	enginetest.Run(t, testdb.Postgres, newEngine)
}

func TestConformanceOnMariaDB(t *testing.T) {
	t.Parallel()
	enginetest.Run(t, testdb.MySQL, newEngine)
}

func BenchmarkDeliveries(b *testing.B) { enginetest.Benchmark(b, testdb.Postgres(b), newEngine) }
