package operator

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// gated reads the ints below n and waits for gate before some of them.
type gated struct {
	next, n int
	// at are the items before which it reports on reached, and waits.
	at      map[int]bool
	reached chan int
	gate    chan struct{}
	fails   bool // after the gate
}

func (r *gated) Read(ctx context.Context) (int, error) {
	if r.at[r.next] {
		r.reached <- r.next
		select {
		case <-r.gate:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		if r.fails {
			return 0, errors.New("told to fail")
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

func watchedJob(e *testengine.Engine, r *gated) *model.Job {
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
		service, err := New(Config{Repository: e.Repository.Ports(), Now: func() time.Time { return clock }})
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
		_, err = e.Repository.RequestStop(ctx, 2, ports.By{Actor: "test"})
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

type counting struct {
	ports.Explorer
	ports.BulkExplorer
	asked int
}

func (c *counting) ExecutionIDs(ctx context.Context, f ports.ExecutionFilter) ([]core.JobExecutionID, error) {
	c.asked++
	return c.Explorer.ExecutionIDs(ctx, f)
}

func (c *counting) StepsOf(ctx context.Context, ids ...core.JobExecutionID) (map[core.JobExecutionID][]core.StepExecution, error) {
	c.asked++
	return c.BulkExplorer.StepsOf(ctx, ids...)
}

func (c *counting) Judged(ctx context.Context, req ports.JudgedRequest) ([]ports.JudgedExecution, error) {
	c.asked++
	return c.BulkExplorer.Judged(ctx, req)
}

func TestProgressJudgesALeaseByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e, ctx := testengine.New(t, url), t.Context()
		owner, err := job.CurrentOwner()
		require.NoError(t, err)
		for n, lease := range []time.Duration{time.Hour, time.Microsecond} {
			_, err = e.Repository.Launch(ctx, ports.LaunchRequest{JobName: "leased", Params: numbered(t, int64(n)), Owner: owner, Lease: lease})
			require.NoError(t, err)
		}
		right, err := New(Config{Repository: e.Repository.Ports()})
		require.NoError(t, err)
		require.Eventually(t, func() bool { // SQLite's clock counts milliseconds: the lease may last for the rest of one
			records, err := right.Progress(ctx, ProgressRequest{})
			return err == nil && len(records) == 2 && records[0].Lease == LeaseExpired
		}, time.Second, time.Millisecond)
		for _, wrong := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
			service, err := New(Config{Repository: e.Repository.Ports(), Now: func() time.Time { return time.Now().Add(wrong) }})
			require.NoError(t, err)
			records, err := service.Progress(ctx, ProgressRequest{})
			require.NoError(t, err)
			require.Len(t, records, 2)
			require.Equal(t, []Lease{LeaseExpired, LeaseHeld}, []Lease{records[0].Lease, records[1].Lease}, "the clock is wrong by %v", wrong)
		}
	})
}

func TestARefreshAsksTheSameHoweverMuchRuns(t *testing.T) {
	t.Parallel()
	e, ctx := testengine.New(t, testdb.SQLite(t)), t.Context()
	owner, err := job.CurrentOwner()
	require.NoError(t, err)
	c, all := &counting{Explorer: e.Repository, BulkExplorer: e.Repository}, e.Repository.Ports()
	all.Explorer, all.BulkExplorer = c, c
	service, err := New(Config{Repository: all})
	require.NoError(t, err)
	m := service.Meter(ProgressRequest{})
	for n := range int64(5) {
		_, err := e.Repository.Launch(ctx, ports.LaunchRequest{JobName: "many", Params: numbered(t, n), Owner: owner, Lease: time.Minute})
		require.NoError(t, err)
		records, err := m.Refresh(ctx)
		require.NoError(t, err)
		require.Len(t, records, int(n)+1)
		c.asked = 0
		_, err = m.Refresh(ctx)
		require.NoError(t, err)
		require.Equal(t, 3, c.asked)
	}
}

func TestPartitionsCountForTheirStep(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	step := func(name string, status core.Status, read int64) core.StepExecution {
		return core.StepExecution{ID: core.StepExecutionID(len(name)*1000 + int(read)), Name: name, Status: status, StartedAt: at, Counters: core.Counters{Read: read, Write: read}}
	}
	service, err := New(Config{Repository: ports.Repository{Explorer: &counting{}}, Now: func() time.Time { return at.Add(time.Second) }})
	require.NoError(t, err)
	m := service.Meter(ProgressRequest{})
	m.baselines["j"] = &baseline{steps: map[string]baselineStep{"load": {visits: 1, rows: 100, took: 10 * time.Second}, "last": {visits: 1, took: 10 * time.Second}}, took: 20 * time.Second}
	m.earlier[1] = &earlier{}
	records := m.measure(&core.JobExecution{ID: 1, JobName: "j", Status: core.StatusStarted}, ports.NewestAttempt{}, []core.StepExecution{
		step("load", core.StatusStarted, 0), step("load:a", core.StatusCompleted, 30), step("load:b", core.StatusStarted, 20), step("load:c", core.StatusStarting, 0),
	}, ports.StepWork{}, map[core.StepExecutionID]measured{})
	require.Len(t, records, 1)
	require.Equal(t, int64(50), records[0].Read)
	require.Equal(t, []int{1, 3}, []int{records[0].PartitionsDone, records[0].Partitions})
	require.InDelta(t, 25.0, *records[0].Percent, 0.01)
	require.InDelta(t, 11.0, *records[0].Left, 0.01, "50 rows at 50 a second, and the step behind")
}

func TestTheForecastKnowsTheRoundsOfALoop(t *testing.T) {
	t.Parallel()
	b := &baseline{took: 40 * time.Second, steps: map[string]baselineStep{
		"first": {visits: 1, took: 10 * time.Second}, "round": {visits: 3, rows: 100, took: 10 * time.Second},
	}}
	for name, c := range map[string]struct {
		before  *earlier
		ended   []string
		rows    int64 // of the running round; 0 if none runs
		percent float64
		left    float64
	}{
		"the first round":               {&earlier{}, []string{"first"}, 50, 37.5, 25},
		"the second round":              {&earlier{}, []string{"first", "round"}, 50, 62.5, 15},
		"between two rounds":            {&earlier{}, []string{"first", "round", "round"}, 0, 75, 10},
		"one more than usual":           {&earlier{}, []string{"first", "round", "round", "round"}, 50, 99, 5},
		"a restart in the second round": {&earlier{visits: map[string]int{"round": 1}, passed: map[string]bool{"first": true}, left: map[string]bool{"round": true}}, nil, 50, 62.5, 15},
		"all rounds may be done": {
			&earlier{visits: map[string]int{"round": 3}, passed: map[string]bool{"first": true, "round": true}, left: map[string]bool{"round": true}}, nil, 0, 75, 10},
		"a step that may start again": {&earlier{visits: map[string]int{"first": 1}, left: map[string]bool{"first": true}}, nil, 0, 0, 40},
	} {
		f := newForecast(b, c.before)
		for _, step := range c.ended {
			f.ended(step)
		}
		if c.rows > 0 {
			f.runs("round", c.rows, 10, time.Second)
		}
		percent, left := f.result()
		require.InDelta(t, c.percent, *percent, 0.01, name)
		require.InDelta(t, c.left, *left, 0.01, name)
	}
	percent, left := newForecast(b, nil).result()
	require.Nil(t, percent, "nothing is known of earlier attempts")
	require.Nil(t, left)
}

func TestProgressOfARestartInALoop(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e, ctx := testengine.New(t, url), t.Context()
		r := &gated{n: 4, reached: make(chan int), gate: make(chan struct{})}
		rounds := 0
		work := testengine.Chunk(e, "work", 2, func() (item.ItemReader[int], item.ItemProcessor[int, int], item.ItemWriter[int]) {
			r.next = 0
			rounds++
			for begin := time.Now(); time.Now().Truncate(time.Millisecond).Before(begin.Add(time.Millisecond)); {
				runtime.Gosched() // a round takes some time by SQLite's clock, which has milliseconds
			}
			return r, even{}, nowhere{}
		})
		j := testengine.Job("watched", work)
		work.Next = []model.Transition{{Success: true, Pattern: "*", Target: model.Target{Kind: model.TargetElement, Name: "more"}}}
		j.Flow.Elements = append(j.Flow.Elements, &model.DecisionElement{
			Name: "more", Decide: func(context.Context, *core.View) (string, error) {
				if rounds%2 == 1 {
					return "AGAIN", nil
				}
				return core.ExitCompleted, nil
			},
			Next: []model.Transition{{Pattern: "AGAIN", Target: model.Target{Kind: model.TargetElement, Name: "work"}}},
		})
		run := func(n int64) core.Status {
			exec, err := e.Launcher.Run(ctx, j, numbered(t, n), nil)
			require.NoError(t, err)
			return exec.Status
		}
		require.Equal(t, core.StatusCompleted, run(1))
		require.Equal(t, 2, rounds)

		service, err := New(Config{Repository: e.Repository.Ports(), Jobs: func(context.Context, string) (*model.Job, error) { return j, nil }})
		require.NoError(t, err)
		percent := func() float64 {
			require.Equal(t, 2, <-r.reached)
			views, err := service.Progress(ctx, ProgressRequest{})
			require.NoError(t, err)
			require.Len(t, views, 1)
			r.gate <- struct{}{}
			return *views[0].Percent
		}
		over := make(chan core.Status)
		r.at = map[int]bool{2: true}
		go func() { over <- run(2) }()
		require.InDelta(t, 25.0, percent(), 0.01)
		require.Equal(t, 2, <-r.reached)
		r.fails = true
		r.gate <- struct{}{}
		require.Equal(t, core.StatusFailed, <-over)
		r.fails = false
		rounds--
		go func() { over <- run(2) }()
		require.InDelta(t, 75.0, percent(), 0.01)
		require.Equal(t, core.StatusCompleted, <-over)
	})
}
