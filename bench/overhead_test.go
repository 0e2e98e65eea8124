package bench

import (
	"context"
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/bench/overhead"
	"github.com/surfin-batch/surfin/internal/chunk"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

func runStep(t testing.TB, e *testengine.Engine, items int, processor bool) *overhead.Total {
	t.Helper()
	written := &overhead.Total{}
	s, err := chunk.New(chunk.Config{Name: "count", Size: overhead.Chunk, Database: e.Database, Assemble: func(context.Context, *model.StepRun) (chunk.Parts, error) {
		parts := chunk.Parts{Reader: item.EraseReader[int](overhead.NewCounter(items, written)), Writers: []item.Writer{item.EraseWriter[int](written)}}
		if processor {
			parts.Processors = []item.Processor{item.EraseProcessor[int, int](overhead.Increment{})}
		}
		return parts, nil
	}})
	require.NoError(t, err)
	exec := e.Run(testengine.Job("count", &model.StepElement{Step: s}))
	require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	_, err = e.Repository.Purge(t.Context(), ports.PurgeFilter{Instance: exec.InstanceID}, "bench")
	require.NoError(t, err)
	return written
}

// BenchmarkOverhead compares an item of the engine with one of a loop, of a
// loop over values of type any, and of a channel for the items. With a
// processor the engine is to take at most twice as long as the loop, without
// the commits of its chunks.
func BenchmarkOverhead(b *testing.B) {
	var loop float64 // ns
	run := func(name string, work func(b *testing.B, written *overhead.Total)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			written := &overhead.Total{}
			work(b, written)
			b.StopTimer()
			require.Equal(b, b.N, written.Items)
			took := written.Took() // of a step
			if took == 0 {
				took = b.Elapsed()
			}
			perItem := float64(took.Nanoseconds()) / float64(b.N)
			b.ReportMetric(perItem, "ns/item")
			if name == "loop" {
				loop = perItem
			} else if loop > 0 {
				b.ReportMetric(perItem/loop, "x-loop")
			}
		})
	}
	run("loop", func(b *testing.B, written *overhead.Total) {
		require.NoError(b, overhead.Loop(b.Context(), &overhead.Counter{Items: b.N}, overhead.Increment{}, written, overhead.Chunk))
	})
	run("any", func(b *testing.B, written *overhead.Total) {
		require.NoError(b, overhead.Boxed(b.Context(), b.N, written))
	})
	run("channels", func(b *testing.B, written *overhead.Total) {
		require.NoError(b, overhead.Channels(b.Context(), b.N, written))
	})
	step := func(processor bool) func(b *testing.B, written *overhead.Total) {
		return func(b *testing.B, written *overhead.Total) {
			e := testengine.New(b, testdb.SQLite(b))
			b.ResetTimer()
			*written = *runStep(b, e, b.N, processor)
		}
	}
	run("step", step(false))
	run("step-and-processor", step(true))
}

// Allocations for a step and for its chunks are not counted. Heartbeats
// allocate by the clock, so the least of some measurements counts.
func TestAnItemCostsNoAllocation(t *testing.T) {
	e := testengine.New(t, testdb.SQLite(t)) // not parallel: other tests allocate
	allocated := func(items int, processor bool) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		require.Equal(t, items, runStep(t, e, items, processor).Items)
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
