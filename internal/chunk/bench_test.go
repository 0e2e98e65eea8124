package chunk_test

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/chunk"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// BenchmarkChunk runs whole steps with components that do nothing, so it measures the pipeline and its
// commits. An operation is one item.
func BenchmarkChunk(b *testing.B) {
	for name, c := range map[string]struct {
		size, items int
		change      func(*chunk.Config)
	}{
		"small":      {size: 100, items: 100_000},
		"large":      {size: 1000, items: 1_000_000},
		"concurrent": {size: 1000, items: 100_000, change: func(c *chunk.Config) { c.Concurrency = 2 }},
		"split": {size: 1000, items: 10_000, change: func(c *chunk.Config) {
			c.Skip, c.Isolate = chunk.LimitSkip{Limit: 1_000, Skippable: func(error) bool { return true }}, chunk.IsolateBisect
		}},
	} {
		b.Run(name, func(b *testing.B) {
			e := testengine.New(b, testdb.SQLite(b))
			b.ReportAllocs()
			for n := 0; n < b.N; {
				items := min(c.items, b.N-n)
				config := chunk.Config{Name: "load", Size: c.size, Database: e.Database}
				if c.change != nil {
					c.change(&config)
				}
				config.Assemble = func(context.Context, *model.StepRun) (chunk.Parts, error) {
					return chunk.Parts{
						Reader:     item.EraseReader[int](&benchReader{items: items}),
						Processors: []item.Processor{item.EraseProcessor[int, int](benchProcessor{})},
						Writers:    []item.Writer{item.EraseWriter[int](benchWriter{poison: name == "split"})},
					}, nil
				}
				s, err := chunk.New(config)
				require.NoError(b, err)
				exec := e.Run(testengine.Job("load", &model.StepElement{Step: s}))
				require.Equal(b, core.StatusCompleted, exec.Status, exec.Error)
				_, err = e.Repository.Purge(b.Context(), ports.PurgeFilter{Instance: exec.InstanceID}, "bench")
				require.NoError(b, err)
				n += items
			}
		})
	}
}

type benchReader struct{ items, at int }

func (r *benchReader) Read(context.Context) (int, error) {
	if r.at == r.items {
		return 0, io.EOF
	}
	r.at++
	return r.at, nil
}

type benchProcessor struct{}

func (benchProcessor) Process(_ context.Context, n int) (int, error) { return n + 1, nil }

// benchWriter fails on one of 500 items if it is poisoned.
type benchWriter struct{ poison bool }

func (w benchWriter) Write(_ context.Context, items []int) error {
	for _, n := range items {
		if w.poison && n%500 == 0 {
			return errBad
		}
	}
	return nil
}
