package sampling_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/series/sampling"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type executes func(run *model.StepRun)

func (f executes) Execute(_ context.Context, _ model.Step, run *model.StepRun) (*core.StepExecution, error) {
	f(run)
	return run.Step, nil
}

func TestASampledChunkCostsNoAllocation(t *testing.T) { // not parallel: it counts
	e := testengine.New(t, testdb.SQLite(t))
	seen := 0
	observer := core.ObserverFunc(func(context.Context, core.Event) { seen++ })
	r := sampling.New(sampling.Config{Store: e.Repository.Ports().Series, Guard: ports.JobRef{ID: 1}, Heartbeat: time.Hour, Observer: observer})
	run := &model.StepRun{Services: model.StepServices{Observer: observer}}
	_, err := r.Executor(executes(func(run *model.StepRun) {
		var event core.Event = core.ChunkCommitted{Execution: 1, StepID: 1, Counters: core.Counters{Read: 1}}
		for range 1000 {
			run.Services.Observer.Observe(t.Context(), event)
		}
		require.Zero(t, testing.AllocsPerRun(1000, func() { run.Services.Observer.Observe(t.Context(), event) }))
	})).Execute(t.Context(), nil, run)
	require.NoError(t, err)
	require.Greater(t, seen, 2000)
}

func TestWithoutAStoreNothingIsSampled(t *testing.T) {
	t.Parallel()
	r := sampling.New(sampling.Config{Heartbeat: time.Second})
	inner := executes(func(run *model.StepRun) { require.Nil(t, run.Services.Observer) })
	_, err := r.Executor(inner).Execute(t.Context(), nil, &model.StepRun{})
	require.NoError(t, err)
	r.Start(t.Context())
	r.Beat()
	r.Stop()
}
