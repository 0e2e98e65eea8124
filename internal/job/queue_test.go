package job_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type queue struct {
	*testengine.Engine
	numbers atomic.Int64
}

func (q *queue) step(name string, work func(ctx context.Context) error) *model.StepElement {
	s, err := step.NewTasklet(step.TaskletConfig{
		Name: name, Database: q.Database, Attr: tx.Attr{Propagation: tx.NotSupported},
		Assemble: func(context.Context, *model.StepRun) (core.Tasklet, error) {
			return core.TaskletFunc(func(ctx context.Context, _ *core.StepContribution) error { return work(ctx) }), nil
		},
	})
	require.NoError(q.T, err)
	return &model.StepElement{Step: s}
}

func (q *queue) alone(name string, steps ...*model.StepElement) *model.Job {
	j := testengine.Job(name, steps...)
	j.Exclusive = func(core.Parameters) (core.ExclusiveKey, error) { return core.ExclusiveJob, nil }
	return j
}

func (q *queue) child(name string, j *model.Job) *model.StepElement {
	s, err := step.NewJob(step.JobConfig{Name: name, Job: j, Params: func(context.Context, *core.View) (core.Parameters, error) {
		return core.NewParameters(core.Parameter{Name: "n", Type: core.TypeInt, Value: q.numbers.Add(1), Identifying: true})
	}})
	require.NoError(q.T, err)
	return &model.StepElement{Step: s}
}

// Rule L12.
func TestChildJobsWithOneKeyWaitForEachOther(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		q := &queue{Engine: testengine.New(t, url)}
		var running, most, ran atomic.Int32
		work := q.step("work", func(context.Context) error {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			time.Sleep(20 * time.Millisecond) // lets the others overlap, if they do
			ran.Add(1)
			return nil
		})
		split := &model.SplitElement{Name: "both"}
		for _, name := range []string{"c1", "c2", "c3"} {
			split.Branches = append(split.Branches, model.Flow{Elements: []model.Element{q.child(name, q.alone("c", work))}})
		}
		j := testengine.Job("parent")
		j.Flow.Elements = []model.Element{split}
		exec, err := q.Launcher.Run(t.Context(), j, core.Parameters{}, nil)
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, int32(1), most.Load())
		require.Equal(t, int32(3), ran.Load())
	})
}

// Rule L12: a child is refused if the holder of the key cannot end before it.
func TestAChildJobDoesNotWaitForWhatWaitsForIt(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		q := &queue{Engine: testengine.New(t, url)}
		var both sync.WaitGroup
		both.Add(2)
		gate := func() *model.StepElement {
			return q.step("gate", func(context.Context) error { both.Done(); both.Wait(); return nil })
		}
		work := q.step("work", func(context.Context) error { return nil })
		x := testengine.Job("px", q.child("x", q.alone("x", gate(), q.child("y", q.alone("y", work)))))
		y := testengine.Job("py", q.child("y", q.alone("y", gate(), q.child("x", q.alone("x", work)))))
		ends := make(chan *core.JobExecution, 2)
		for _, j := range []*model.Job{x, y} {
			go func() {
				exec, err := q.Launcher.Run(context.WithoutCancel(t.Context()), j, core.Parameters{}, nil)
				if err != nil {
					t.Error(err)
				}
				ends <- exec
			}()
		}
		failed := 0
		for range 2 {
			exec := <-ends
			if exec.Status == core.StatusFailed {
				require.Contains(t, exec.Error, "that execution cannot end before this step does")
				failed++
			}
		}
		require.Positive(t, failed)
	})
}

// Rule L12.
func TestAStopEndsTheWaitForAKey(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		q := &queue{Engine: testengine.New(t, url)}
		work := q.step("work", func(context.Context) error { return nil })
		holder, err := q.Repository.Launch(t.Context(), ports.LaunchRequest{
			JobName: "c", Owner: core.Owner{Host: "elsewhere", PID: 1, Nonce: "n"}, Lease: time.Hour, Restartable: true, Exclusive: core.ExclusiveJob,
		})
		require.NoError(t, err)
		running, err := q.Launcher.Start(t.Context(), testengine.Job("parent", q.child("c", q.alone("c", work))), core.Parameters{})
		require.NoError(t, err)
		waits := func() bool {
			steps, err := q.Repository.Steps(t.Context(), running.Execution().ID)
			if err != nil || len(steps) == 0 || steps[0].Context == nil {
				return false
			}
			of, _ := steps[0].Context.Get(ports.WaitsKey)
			return of == int64(holder.Execution.ID)
		}
		require.Eventually(t, waits, time.Minute, 5*time.Millisecond)
		_, err = q.Repository.RequestStop(t.Context(), running.Execution().ID, ports.By{Actor: "test"})
		require.NoError(t, err)
		exec, err := running.Wait()
		require.NoError(t, err)
		require.Equal(t, core.StatusStopped, exec.Status, exec.Error)
	})
}
