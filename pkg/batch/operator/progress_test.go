package operator

import (
	"context"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/job"
)

// gated reads the ints below n and waits for gate before some of them.
type gated struct {
	next, n int
	// at are the items before which it says that it is there, and waits.
	at      map[int]bool
	reached chan int
	gate    chan struct{}
}

func (r *gated) Read(ctx context.Context) (int, error) {
	if r.at[r.next] {
		r.reached <- r.next
		select {
		case <-r.gate:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	if r.next >= r.n {
		return 0, io.EOF
	}
	r.next++
	return r.next - 1, nil
}

type even struct{}

func (even) Process(_ context.Context, i int) (int, error) {
	if i%4 == 3 {
		return 0, item.ErrFilter
	}
	return i, nil
}

type nowhere struct{}

func (nowhere) Write(context.Context, []int) error { return nil }

// watchedJob reads n items in chunks of 2.
func watchedJob(e *testengine.Engine, r *gated) *core.Job {
	return testengine.Job("watched",
		testengine.Chunk(e, "load", 2, func() (item.ItemReader[int], item.ItemProcessor[int, int], item.ItemWriter[int]) {
			return r, even{}, nowhere{}
		}))
}

func numbered(t *testing.T, n int64) core.Parameters {
	t.Helper()
	p, err := core.NewParameters(core.Parameter{Name: "n", Type: core.TypeInt, Value: n, Identifying: true})
	require.NoError(t, err)
	return p
}

func TestProgressOfARunningJobIsMeasuredFromRefreshToRefresh(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e, ctx := testengine.New(t, url), t.Context()
		r := &gated{n: 10, at: map[int]bool{4: true, 8: true}, reached: make(chan int), gate: make(chan struct{})}
		over := make(chan *core.JobExecution)
		run := func(n int64) {
			exec, err := e.Launcher.Run(ctx, watchedJob(e, r), numbered(t, n), nil)
			require.NoError(t, err)
			over <- exec
		}
		var clock time.Time
		service, err := New(Config{Repository: e.Repository, Now: func() time.Time { return clock }})
		require.NoError(t, err)
		m := service.Meter(ProgressRequest{})

		go run(1)
		<-r.reached
		records, err := m.Refresh(ctx)
		require.NoError(t, err)
		require.Len(t, records, 1)
		require.Nil(t, records[0].Percent, "there is no past")
		r.gate <- struct{}{}
		<-r.reached
		r.gate <- struct{}{}
		require.Equal(t, core.StatusCompleted, (<-over).Status)
		records, err = m.Refresh(ctx)
		require.NoError(t, err)
		require.Empty(t, records)

		r.next = 0
		m = service.Meter(ProgressRequest{Job: "watched"})
		go run(2)
		<-r.reached // two chunks are committed
		running, err := e.Repository.Steps(ctx, 2)
		require.NoError(t, err)
		clock = running[0].StartedAt.Add(2 * time.Second)
		records, err = m.Refresh(ctx)
		require.NoError(t, err)
		require.Len(t, records, 1)
		got := records[0]
		require.Equal(t, []int64{2, 4, 3, 1, 0}, []int64{int64(got.Execution), got.Read, got.Written, got.Filtered, got.Skipped})
		require.Equal(t, "load", got.Step)
		require.InDelta(t, 2.0, got.PerSecond, 0.01, "4 items in 2 seconds")
		require.InDelta(t, 40.0, *got.Percent, 0.01)
		require.InDelta(t, 3.0, *got.Left, 0.01, "6 items at 2 a second")
		require.Equal(t, os.Getpid(), got.Owner.PID)

		r.gate <- struct{}{}
		<-r.reached
		clock = clock.Add(time.Second)
		_, err = e.Repository.RequestStop(ctx, 2)
		require.NoError(t, err)
		records, err = m.Refresh(ctx)
		require.NoError(t, err)
		require.InDelta(t, 4.0, records[0].PerSecond, 0.01, "4 more items in a second")
		require.InDelta(t, 80.0, *records[0].Percent, 0.01)
		require.True(t, records[0].StopRequested)
		require.Equal(t, core.StatusStopping, records[0].Status)
		require.Equal(t, LeaseHeld, records[0].Lease)
		records, err = service.Progress(ctx, ProgressRequest{Job: "another"})
		require.NoError(t, err)
		require.Empty(t, records)
		r.gate <- struct{}{}
		<-over
	})
}

// counting counts the questions to a repository.
type counting struct {
	core.JobRepository
	asked int
}

func (c *counting) Executions(ctx context.Context, f core.ExecutionFilter) ([]core.JobExecution, error) {
	c.asked++
	return c.JobRepository.Executions(ctx, f)
}

func (c *counting) StepsOf(ctx context.Context, ids ...core.JobExecutionID) (map[core.JobExecutionID][]core.StepExecution, error) {
	c.asked++
	return c.JobRepository.StepsOf(ctx, ids...)
}

func TestARefreshAsksTheSameHoweverMuchRuns(t *testing.T) {
	t.Parallel()
	e, ctx := testengine.New(t, testdb.SQLite(t)), t.Context()
	owner, err := job.CurrentOwner()
	require.NoError(t, err)
	c := &counting{JobRepository: e.Repository}
	service, err := New(Config{Repository: c})
	require.NoError(t, err)
	m := service.Meter(ProgressRequest{})
	for n := range int64(5) {
		_, err := e.Repository.Launch(ctx, core.LaunchRequest{JobName: "many", Params: numbered(t, n), Owner: owner, Lease: time.Minute})
		require.NoError(t, err)
		records, err := m.Refresh(ctx)
		require.NoError(t, err)
		require.Len(t, records, int(n)+1)
		c.asked = 0
		_, err = m.Refresh(ctx)
		require.NoError(t, err)
		require.Equal(t, 2, c.asked)
	}
}

func TestPartitionsCountForTheirStep(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	step := func(name string, status core.Status, read int64) core.StepExecution {
		return core.StepExecution{ID: core.StepExecutionID(len(name)*1000 + int(read)), Name: name, Status: status, StartedAt: at, Counters: core.Counters{Read: read, Write: read}}
	}
	service, err := New(Config{Repository: &counting{}, Now: func() time.Time { return at.Add(time.Second) }})
	require.NoError(t, err)
	m := service.Meter(ProgressRequest{})
	m.baselines["j"] = &baseline{steps: map[string]baselineStep{"load": {rows: 100, took: 10 * time.Second}, "last": {took: 10 * time.Second}}, took: 20 * time.Second}
	records := m.measure(&core.JobExecution{ID: 1, JobName: "j", Status: core.StatusStarted}, []core.StepExecution{
		step("load", core.StatusStarted, 0), step("load:a", core.StatusCompleted, 30), step("load:b", core.StatusStarted, 20), step("load:c", core.StatusStarting, 0),
	}, map[core.StepExecutionID]measured{})
	require.Len(t, records, 1)
	require.Equal(t, int64(50), records[0].Read)
	require.Equal(t, []int{1, 3}, []int{records[0].PartitionsDone, records[0].Partitions})
	require.InDelta(t, 25.0, *records[0].Percent, 0.01)
	require.InDelta(t, 11.0, *records[0].Left, 0.01, "50 rows at 50 a second, and the step behind")
}
