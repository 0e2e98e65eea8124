package operator

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/series"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// steady reads n ints, a millisecond each.
type steady struct{ next, n int }

func (r *steady) Read(context.Context) (int, error) {
	if r.next == r.n {
		return 0, io.EOF
	}
	time.Sleep(time.Millisecond)
	r.next++
	return r.next, nil
}

func steadyStep(e *testengine.Engine, name string, n int) *model.StepElement {
	return testengine.Chunk(e, name, 1, func() (item.ItemReader[int], item.ItemProcessor[int, int], item.ItemWriter[int]) {
		return &steady{n: n}, even{}, nowhere{}
	})
}

type threeParts struct{}

func (threeParts) Partition(context.Context, *core.View) ([]core.Partition, error) {
	list := make([]core.Partition, 3)
	for i := range list {
		list[i].Name = fmt.Sprint(i)
	}
	return list, nil
}

func lastOf(s StepSeries) SeriesPoint { return s.Points[len(s.Points)-1] }

// Rule OP8.
func TestTheCountersOfAnExecutionOverTimeAddStepsAndPartsUp(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e, ctx := testengine.New(t, url), t.Context()
		outer, err := step.NewPartitioned(step.PartitionConfig{
			Step: steadyStep(e, "load", 40).Step, Workers: 2,
			Partitioner: func(context.Context, *model.StepRun) (core.Partitioner, error) { return threeParts{}, nil },
		})
		require.NoError(t, err)
		exec := e.Run(testengine.Job("summed", steadyStep(e, "fetch", 80), &model.StepElement{Step: outer}, steadyStep(e, "short", 1)))
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		service, err := New(Config{Repository: e.Repository.Ports()})
		require.NoError(t, err)

		view, err := service.Series(ctx, SeriesRequest{Execution: exec.ID})
		require.NoError(t, err)
		require.Equal(t, []int{1 + 3 + 1, 3}, []int{view.Whole.Executions, len(view.Steps)})
		require.False(t, view.Cut)
		last := lastOf(*view.Whole)
		require.Equal(t, []int64{201, 151, 50}, []int64{last.Read, last.Written, last.Filtered})
		require.WithinDuration(t, exec.EndedAt, last.At, time.Minute)
		for i, want := range []int64{80, 120, 1} {
			require.Equal(t, want, lastOf(view.Steps[i]).Read, view.Steps[i].Step)
		}
		for _, of := range append(view.Steps, *view.Whole) {
			require.LessOrEqual(t, len(of.Points), series.Most)
			require.Zero(t, of.Points[0].RowsPerSecond)
			require.Equal(t, []time.Time{of.Started, of.Ended}, []time.Time{of.Points[0].At, lastOf(of).At}, of.Step)
			for i := 1; i < len(of.Points); i++ {
				require.LessOrEqual(t, of.Points[i-1].Read, of.Points[i].Read)
			}
		}

		only, err := service.Series(ctx, SeriesRequest{Execution: exec.ID, Step: "fetch"})
		require.NoError(t, err)
		require.Nil(t, only.Whole)
		require.Len(t, only.Steps, 1)
		require.Zero(t, only.Steps[0].Interval, "as it was sampled")
		require.Greater(t, len(only.Steps[0].Points), 4)
		require.EqualValues(t, 80, lastOf(only.Steps[0]).Read)
		require.Positive(t, only.Steps[0].Points[2].RowsPerSecond)

		parts, err := service.Series(ctx, SeriesRequest{Execution: exec.ID, Step: "load"})
		require.NoError(t, err)
		require.Equal(t, 3, parts.Steps[0].Executions)
		require.EqualValues(t, 120, lastOf(parts.Steps[0]).Read)
		one, err := service.Series(ctx, SeriesRequest{Execution: exec.ID, Step: "load:1"})
		require.NoError(t, err)
		require.Equal(t, "load:1", one.Steps[0].Step)
		require.EqualValues(t, 40, lastOf(one.Steps[0]).Read)

		_, err = service.Series(ctx, SeriesRequest{Execution: exec.ID, Step: "lod"})
		require.ErrorIs(t, err, core.ErrNotFound)
		require.ErrorContains(t, err, "did you mean load?")
		_, err = service.Series(ctx, SeriesRequest{Execution: 99})
		require.ErrorIs(t, err, core.ErrNotFound)
	})
}

func TestTheSeriesOfARunningStepEndsNow(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e, ctx := testengine.New(t, url), t.Context()
		r := &gated{n: 10, at: map[int]bool{6: true}, reached: make(chan int), gate: make(chan struct{})}
		over := make(chan error, 1)
		go func() {
			_, err := e.Launcher.Run(ctx, watchedJob(e, r), numbered(t, 1), nil)
			over <- err
		}()
		<-r.reached
		var now time.Time
		service, err := New(Config{Repository: e.Repository.Ports(), Now: func() time.Time { return now }})
		require.NoError(t, err)
		running, err := e.Repository.Steps(ctx, 1)
		require.NoError(t, err)
		now = running[0].StartedAt.Add(time.Minute)
		view, err := service.Series(ctx, SeriesRequest{Execution: 1})
		require.NoError(t, err)
		require.EqualValues(t, 6, lastOf(view.Steps[0]).Read)
		require.Equal(t, now.UTC().Truncate(time.Millisecond), lastOf(*view.Whole).At.Truncate(time.Millisecond))
		require.True(t, view.Steps[0].Ended.IsZero())
		r.gate <- struct{}{}
		require.NoError(t, <-over)
	})
}

// The counters of a step that its process left are those of its row, at its last sample and not at the take-over.
func TestTheSeriesOfALostStepEndsWithItsLastSample(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tally := &tally{from: at, to: at.Add(time.Hour)}
	_, samples, err := tally.line(&ports.SampledStep{
		Error: ports.LostOwner, StartedAt: at, EndedAt: at.Add(time.Hour), Since: at, Committed: core.Counters{Read: 25, Commit: 3},
		Samples: series.Encode([]series.Sample{{At: 10 * time.Second, Counters: core.Counters{Read: 10, Commit: 1}}, {At: 20 * time.Second, Counters: core.Counters{Read: 20, Commit: 2}}}),
	})
	require.NoError(t, err)
	require.Equal(t, []time.Duration{0, 10 * time.Second, 20 * time.Second, 30 * time.Second, time.Hour}, timesOf(samples))
	require.EqualValues(t, 25, samples[3].Counters.Read)
}

func timesOf(samples []series.Sample) (times []time.Duration) {
	for _, s := range samples {
		times = append(times, s.At)
	}
	return times
}

func TestTheSeriesOfManyPartsIsAddedUpPageByPage(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		exec := e.Run(testengine.Job("j", e.Tasklet("s", tx.Attr{}, func(context.Context, *core.StepContribution) error { return nil })))
		e.Exec("UPDATE surfin_step_execution SET read_count = 240000, commit_count = 240")
		const parts = 2000
		addParts(e, 1, parts)
		samples := make([]series.Sample, series.Most)
		for i := range samples {
			samples[i] = series.Sample{At: time.Duration(i) * 1009 * time.Millisecond, Counters: core.Counters{Read: int64(i) * 1000, Write: int64(i) * 990, Filter: int64(10 * i), Commit: int64(i)}}
		}
		values := "SELECT id, 1, started_at, $1 FROM surfin_step_execution"
		e.Exec("INSERT INTO surfin_step_series (step_execution_id, epoch, began_at, samples) "+values, series.Encode(samples))
		hour := "ended_at + interval '1 hour'"
		if e.Database.Dialect() == tx.SQLite {
			hour = "ended_at + 3600000000"
		}
		for _, table := range []string{"surfin_step_execution", "surfin_job_execution"} {
			e.Exec("UPDATE " + table + " SET ended_at = " + hour)
		}
		service, err := New(Config{Repository: e.Repository.Ports()})
		require.NoError(t, err)
		for _, step := range []string{"", "s"} {
			began := time.Now()
			view, err := service.Series(t.Context(), SeriesRequest{Execution: exec.ID, Step: step})
			require.NoError(t, err)
			t.Logf("%d parts with %d samples each (%d bytes): %v", parts, series.Most, len(series.Encode(samples)), time.Since(began))
			require.Len(t, view.Steps, 1)
			require.Equal(t, parts, view.Steps[0].Executions)
			require.EqualValues(t, parts*240000, lastOf(view.Steps[0]).Read)
			require.LessOrEqual(t, len(view.Steps[0].Points), series.Most)
			require.False(t, view.Cut)
		}
	})
}
