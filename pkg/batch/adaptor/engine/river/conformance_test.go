package river

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/surfin-batch/surfin/internal/runtime/engine"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testkit/enginetest"
)

func TestMain(m *testing.M) { os.Exit(enginetest.Main(m, listening)) }

func listening(ctx context.Context, w enginetest.World) (engine.Engine, error) {
	return newEngine(ctx, Config{Database: w.Database, Grace: w.Grace, Log: w.Logger})
}

func polling(ctx context.Context, w enginetest.World) (engine.Engine, error) {
	return newEngine(ctx, Config{Database: w.Database, Grace: w.Grace, Log: w.Logger, PollOnly: true, Poll: 100 * time.Millisecond})
}

func newEngine(ctx context.Context, c Config) (engine.Engine, error) {
	e, err := New(c)
	if err != nil {
		return nil, err
	}
	return e, e.Migrate(ctx)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	enginetest.Run(t, testdb.Postgres, listening)
}

func TestConformanceWithoutNotifications(t *testing.T) {
	t.Parallel()
	enginetest.Run(t, testdb.Postgres, polling)
}

func BenchmarkDeliveries(b *testing.B) { enginetest.Benchmark(b, testdb.Postgres(b), listening) }
