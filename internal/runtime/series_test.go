package runtime_test

import (
	"context"
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/internal/series"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

const slowRows = 60

// slow reads slowRows ints, with a pause before each, and calls half once before the middle one.
type slow struct {
	next int64
	half func()
}

func (r *slow) Open(_ context.Context, at item.Position) error {
	if len(at) == 0 {
		return nil
	}
	return json.Unmarshal(at, &r.next)
}

func (r *slow) Read(context.Context) (int64, error) {
	if r.next == slowRows {
		return 0, io.EOF
	}
	if r.next == slowRows/2 {
		r.half()
	}
	time.Sleep(3 * time.Millisecond)
	r.next++
	return r.next, nil
}

func (r *slow) Position() (item.Position, error) { return json.Marshal(r.next) }

type unwritten struct{}

func (unwritten) Write(context.Context, []int64) error { return nil }

func slowStep(t *testing.T, e *testengine.Engine, half func()) model.Step {
	t.Helper()
	s, err := chunk.New(chunk.Config{
		Name: "parts", Size: 1, Database: e.Database,
		Assemble: func(context.Context, *model.StepRun) (chunk.Parts, error) {
			return chunk.Parts{
				Reader:     item.EraseReader[int64](&slow{half: half}),
				Processors: []item.Processor{item.EraseProcessor[int64, int64](same{})}, Writers: []item.Writer{item.EraseWriter[int64](unwritten{})},
			}, nil
		},
	})
	require.NoError(t, err)
	return s
}

func (p *workplace) samples() (all [][]series.Sample) {
	p.T.Helper()
	steps, err := p.Repository.SampledSteps(p.T.Context(), ports.SampledRequest{Execution: p.exec.ID, Limit: 100})
	require.NoError(p.T, err)
	for _, s := range steps {
		samples, err := series.Decode(s.Samples)
		require.NoError(p.T, err)
		if s.Manager != 0 && len(samples) > 0 {
			all = append(all, samples)
		}
	}
	return all
}

// Rule OP8.
func TestPartsOnWorkersAreSampled(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		p := workplaceOf(t, e, deliverer(t, e), 3, slowStep(t, e, func() {}))
		p.config.Heartbeat, p.config.Lease = 30*time.Millisecond, 20*time.Second
		require.NoError(t, p.work())
		all := p.samples()
		require.Len(t, all, 3)
		for _, samples := range all {
			require.Greater(t, len(samples), 2)
			require.EqualValues(t, slowRows, samples[len(samples)-1].Counters.Read)
		}
	})
}

func TestTheNextWorkerOfAPartContinuesItsSamples(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		stop := make(chan struct{})
		var p *workplace
		again := false
		p = workplaceOf(t, e, deliverer(t, e), 1, slowStep(t, e, func() {
			if again {
				return
			}
			again = true
			for deadline := time.Now().Add(20 * time.Second); len(p.samples()) == 0 && time.Now().Before(deadline); {
				time.Sleep(5 * time.Millisecond)
			}
			close(stop)
		}))
		p.config.Heartbeat, p.config.Lease = 30*time.Millisecond, 20*time.Second
		first, err := runtime.NewWorker(p.config)
		require.NoError(t, err)
		require.NoError(t, first.Run(t.Context(), stop))
		require.Positive(t, p.happened("released"))
		before := p.samples()
		require.Len(t, before, 1)
		p.parts.Owner.PID++
		require.NoError(t, p.work())
		after := p.samples()
		require.Len(t, after, 1)
		require.Equal(t, before[0][0].Counters, after[0][0].Counters, "the first worker's")
		require.EqualValues(t, slowRows, after[0][len(after[0])-1].Counters.Read)
		for i := 1; i < len(after[0]); i++ {
			require.LessOrEqual(t, after[0][i-1].At, after[0][i].At)
			require.Less(t, after[0][i-1].Counters.Commit, after[0][i].Counters.Commit)
		}
	})
}
