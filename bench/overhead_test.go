package bench

import (
	"context"
	"errors"
	"io"
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// overheadSize is the size of the chunks: so large that their commits do not count.
const overheadSize = 100_000

// counter reads the numbers below items.
type counter struct{ at, items int }

func (c *counter) Read(context.Context) (int, error) {
	if c.at == c.items {
		return 0, io.EOF
	}
	c.at++
	return c.at, nil
}

type increment struct{}

func (increment) Process(_ context.Context, n int) (int, error) { return n + 1, nil }

// total writes nothing.
type total struct{ items int }

func (t *total) Write(_ context.Context, items []int) error {
	t.items += len(items)
	return nil
}

// loop is what the engine is compared with: the same components behind their generic
// interfaces, chunk by chunk.
func loop[I, O any](ctx context.Context, r item.ItemReader[I], p item.ItemProcessor[I, O], w item.ItemWriter[O], size int) error {
	out := make([]O, 0, size)
	for {
		out = out[:0]
		var ended error
		for range size {
			in, err := r.Read(ctx)
			if err != nil {
				ended = err
				break
			}
			made, err := p.Process(ctx, in)
			if err != nil {
				return err
			}
			out = append(out, made)
		}
		if err := w.Write(ctx, out); err != nil {
			return err
		}
		if errors.Is(ended, io.EOF) {
			return nil
		}
		if ended != nil {
			return ended
		}
	}
}

// runStep runs the components as a step, with a processor or without, and returns how
// many items were written.
func runStep(t testing.TB, e *testengine.Engine, items, size int, processor bool) int {
	t.Helper()
	written := &total{}
	s, err := chunk.New(chunk.Config{Name: "count", Size: size, Database: e.Database, Assemble: func(context.Context, *core.StepRun) (chunk.Parts, error) {
		parts := chunk.Parts{Reader: item.EraseReader[int](&counter{items: items}), Writers: []item.Writer{item.EraseWriter[int](written)}}
		if processor {
			parts.Processors = []item.Processor{item.EraseProcessor[int, int](increment{})}
		}
		return parts, nil
	}})
	require.NoError(t, err)
	exec := e.Run(testengine.Job("count", &core.StepElement{Step: s}))
	require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	_, err = e.Repository.Purge(t.Context(), core.PurgeFilter{Instance: exec.InstanceID}, "bench")
	require.NoError(t, err)
	return written.items
}

// BenchmarkOverhead is an item of the engine beside one of a loop. With a processor the
// engine is to take at most twice as long as the loop.
func BenchmarkOverhead(b *testing.B) {
	b.Run("loop", func(b *testing.B) {
		b.ReportAllocs()
		require.NoError(b, loop(b.Context(), &counter{items: b.N}, increment{}, &total{}, overheadSize))
	})
	for name, processor := range map[string]bool{"step": false, "step-and-processor": true} {
		b.Run(name, func(b *testing.B) {
			e := testengine.New(b, testdb.SQLite(b))
			b.ReportAllocs()
			b.ResetTimer()
			require.Equal(b, b.N, runStep(b, e, b.N, overheadSize, processor))
		})
	}
}

// What is allocated for a step and for its chunks is not counted: it is the same for both
// runs, but for some chunks more. Heartbeats allocate by the clock, so the least of some
// measurements counts: what an item allocates is in each of them.
func TestAnItemCostsNoAllocation(t *testing.T) {
	e := testengine.New(t, testdb.SQLite(t)) // not parallel: other tests allocate
	allocated := func(items int, processor bool) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		require.Equal(t, items, runStep(t, e, items, overheadSize, processor))
		runtime.ReadMemStats(&after)
		return after.Mallocs - before.Mallocs
	}
	const few, many = 500_000, 1_500_000
	for _, processor := range []bool{false, true} {
		allocated(few, processor)
		perItem := math.Inf(1)
		for range 3 {
			less, more := allocated(few, processor), allocated(many, processor)
			if perItem = min(perItem, math.Abs(float64(more)-float64(less))/(many-few)); perItem < 0.01 {
				break
			}
		}
		t.Logf("%.4f allocations for each item (processor: %t)", perItem, processor)
		require.Less(t, perItem, 0.01, "processor: %t", processor)
	}
}
