package job_test

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
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

// paced reads ints, each after a pause, and each gate once before it.
type paced struct {
	n, pause int // pause in milliseconds
	gates    map[int]func()
	next     int
}

func (r *paced) Read(context.Context) (int, error) {
	if gate := r.gates[r.next]; gate != nil {
		gate()
	}
	if r.next == r.n {
		return 0, io.EOF
	}
	time.Sleep(time.Duration(r.pause) * time.Millisecond)
	r.next++
	return r.next, nil
}

type asRead struct{}

func (asRead) Process(_ context.Context, n int) (int, error) { return n, nil }

type discarded struct{}

func (discarded) Write(context.Context, []int) error { return nil }

func pacedStep(e *testengine.Engine, name string, r func() *paced) *model.StepElement {
	return testengine.Chunk(e, name, 1, func() (item.ItemReader[int], item.ItemProcessor[int, int], item.ItemWriter[int]) {
		return r(), asRead{}, discarded{}
	})
}

// sampled returns the steps of the execution that have samples, decoded.
func sampled(t *testing.T, e *testengine.Engine, id core.JobExecutionID) map[string][]series.Sample {
	t.Helper()
	steps, err := e.Repository.SampledSteps(t.Context(), ports.SampledRequest{Execution: id, Limit: 1000})
	require.NoError(t, err)
	found := map[string][]series.Sample{}
	for _, s := range steps {
		samples, err := series.Decode(s.Samples)
		require.NoError(t, err)
		if len(samples) > 0 {
			found[s.Name] = samples
			require.WithinDuration(t, s.StartedAt, s.Since, 5*time.Second)
		}
	}
	return found
}

// Rule OP8.
func TestTheCountersOfAStepAreStoredWithHeartbeatsAndAtItsEnd(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url, func(c *job.Config) { c.Heartbeat = time.Second })
		during := func() {
			require.Eventually(t, func() bool {
				samples := sampled(t, e, 1)["long"]
				return len(samples) > 0 && samples[len(samples)-1].Counters.Read >= 199
			}, 20*time.Second, 10*time.Millisecond)
		}
		exec := e.Run(testengine.Job("sampled",
			pacedStep(e, "long", func() *paced { return &paced{n: 400, pause: 3, gates: map[int]func(){200: during}} }),
			pacedStep(e, "short", func() *paced { return &paced{n: 1} })))
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		found := sampled(t, e, exec.ID)
		require.NotContains(t, found, "short", "it is shorter than a heartbeat")
		samples := found["long"]
		require.Greater(t, len(samples), 3)
		require.Equal(t, e.Step(exec, "long").Counters, samples[len(samples)-1].Counters)
	})
}

func TestEachPartIsSampled(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		inner := pacedStep(e, "load", func() *paced { return &paced{n: 40, pause: 2} }).Step
		outer, err := step.NewPartitioned(step.PartitionConfig{
			Step: inner, Workers: 3, Partitioner: func(context.Context, *model.StepRun) (core.Partitioner, error) { return parts(3), nil },
		})
		require.NoError(t, err)
		exec := e.Run(testengine.Job("parts", &model.StepElement{Step: outer}))
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		found := sampled(t, e, exec.ID)
		require.Len(t, found, 3)
		for i := range 3 {
			samples := found[fmt.Sprint("load:", i)]
			require.EqualValues(t, 40, samples[len(samples)-1].Counters.Write)
		}
	})
}

type parts int

func (n parts) Partition(context.Context, *core.View) ([]core.Partition, error) {
	list := make([]core.Partition, n)
	for i := range list {
		list[i].Name = fmt.Sprint(i)
	}
	return list, nil
}

func notStored(e *testengine.Engine) (events []core.SeriesNotStored) {
	for _, event := range e.Events() {
		if failed, is := event.(core.SeriesNotStored); is {
			events = append(events, failed)
		}
	}
	return events
}

func TestSamplesThatCannotBeStoredFailNothingAndAreStoredLater(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		e.Exec("ALTER TABLE surfin_step_series RENAME TO away")
		failed := func() {
			require.Eventually(t, func() bool { return len(notStored(e)) > 0 }, 20*time.Second, 10*time.Millisecond)
			time.Sleep(100 * time.Millisecond) // more heartbeats fail to store
			e.Exec("ALTER TABLE away RENAME TO surfin_step_series")
		}
		exec := e.Run(testengine.Job("hindered", pacedStep(e, "load", func() *paced { return &paced{n: 60, pause: 2, gates: map[int]func(){30: failed}} })))
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		events := notStored(e)
		require.Len(t, events, 1, "it is said once")
		require.Equal(t, exec.ID, events[0].Execution)
		require.ErrorContains(t, events[0].Err, "store the samples of")
		samples := sampled(t, e, exec.ID)["load"]
		require.EqualValues(t, 60, samples[len(samples)-1].Counters.Read)
	})
}

// A statement that hangs delays neither heartbeats nor the step.
func TestHeartbeatsAndStepsDoNotWaitForSamples(t *testing.T) {
	t.Parallel()
	e := testengine.New(t, testdb.Postgres(t), func(c *job.Config) { c.Lease, c.Heartbeat = 2*time.Second, 100*time.Millisecond })
	locked := make(chan struct{})
	unlock := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- tx.NewManager(e.Database).Do(context.Background(), tx.Attr{}, func(ctx context.Context) error {
			_, err := tx.ConnOf(ctx, e.Database).ExecContext(ctx, "LOCK TABLE surfin_step_series")
			close(locked)
			<-unlock
			return err
		})
	}()
	<-locked
	began := time.Now()
	exec := e.Run(testengine.Job("locked", pacedStep(e, "load", func() *paced { return &paced{n: 1000, pause: 3} })))
	took := time.Since(began)
	close(unlock)
	require.NoError(t, <-done)
	require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	require.Greater(t, took, 3*time.Second, "longer than its lease")
	require.Len(t, notStored(e), 1)
	for _, event := range e.Events() {
		_, failed := event.(core.HeartbeatFailed)
		require.False(t, failed, "%v", event)
	}
}

// The process that lost the execution writes nothing over its successor's samples, or its own.
func TestAProcessThatLostItsLeaseStoresNoSamples(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		var before []series.Sample
		lost := func() {
			require.Eventually(t, func() bool { return len(sampled(t, e, 1)["load"]) > 0 }, 20*time.Second, 10*time.Millisecond)
			e.Exec("UPDATE surfin_job_execution SET epoch = epoch + 1, owner = 'another'")
			before = sampled(t, e, 1)["load"]
		}
		_, err := e.Launcher.Run(t.Context(), testengine.Job("lost", pacedStep(e, "load", func() *paced {
			return &paced{n: 60, pause: 2, gates: map[int]func(){30: lost}}
		})), core.Parameters{}, nil)
		require.ErrorIs(t, err, core.ErrLostOwner)
		require.Equal(t, before, sampled(t, e, 1)["load"])
	})
}
