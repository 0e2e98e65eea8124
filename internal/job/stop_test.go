package job_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
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
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// meddler is a repository that does something else before a write.
type meddler struct {
	ports.Transitions
	changeJob, startStep func()
}

func (m *meddler) ChangeJob(ctx context.Context, ref ports.JobRef, c ports.JobChange) (core.Answer, error) {
	if m.changeJob != nil {
		m.changeJob()
	}
	return m.Transitions.ChangeJob(ctx, ref, c)
}

func (m *meddler) StartStep(ctx context.Context, ref ports.JobRef, start ports.StepStart) (*core.StepExecution, error) {
	if m.startStep != nil {
		m.startStep()
	}
	return m.Transitions.StartStep(ctx, ref, start)
}

func meddled(t *testing.T, url string, change ...func(*job.Config)) (*testengine.Engine, *meddler) {
	t.Helper()
	m := &meddler{}
	e := testengine.New(t, url, append(change, func(c *job.Config) {
		m.Transitions, c.Repository.Transitions, c.Heartbeat = c.Repository.Transitions, m, 10*time.Second
		c.Executor = step.NewSimpleStepExecutor(m, tx.Default, nil)
	})...)
	return e, m
}

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func TestAStopThatIsAskedForBeforeTheFirstStepRunsNone(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := &script{e: testengine.New(t, url)}
		j := testengine.Job("job", s.step("a"), s.step("b"))
		exec, err := s.e.Launcher.Run(t.Context(), j, core.Parameters{}, closed())
		require.NoError(t, err)
		require.Equal(t, core.StatusStopped, exec.Status)
		require.Empty(t, s.ran)
		exec, ran := s.run(j)
		require.Equal(t, core.StatusCompleted, exec.Status)
		require.Equal(t, []string{"a", "b"}, ran)
	})
}

func TestAStopThatOvertakesTheStartIsSeenAtOnce(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e, m := meddled(t, url)
		s := &script{e: e}
		j := testengine.Job("job", s.step("a"), s.step("b"))
		m.changeJob = func() {
			m.changeJob = nil
			active, err := e.Repository.Executions(context.Background(), ports.ExecutionFilter{})
			require.NoError(t, err)
			_, err = e.Repository.RequestStop(context.Background(), active[0].ID, ports.By{Actor: "test"})
			require.NoError(t, err)
		}
		exec, ran := s.run(j)
		require.Equal(t, core.StatusStopped, exec.Status, exec.Error)
		require.Empty(t, ran)
		exec, ran = s.run(j)
		require.Equal(t, core.StatusCompleted, exec.Status)
		require.Equal(t, []string{"a", "b"}, ran)
	})
}

func TestASecondSignalBetweenStepsLeavesAStoppedExecution(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e, m := meddled(t, url)
		s := &script{e: e}
		j := testengine.Job("job", s.step("a"), s.step("b"))
		ctx, second := context.WithCancel(t.Context())
		first := make(chan struct{})
		m.startStep = func() {
			if len(s.ran) == 1 {
				close(first)
				second()
			}
		}
		exec, err := e.Launcher.Run(ctx, j, core.Parameters{}, first)
		require.NoError(t, err)
		require.Equal(t, core.StatusStopped, exec.Status, exec.Error)
		m.startStep = nil
		exec, ran := s.run(j)
		require.Equal(t, core.StatusCompleted, exec.Status)
		require.Equal(t, []string{"b"}, ran)
	})
}

func TestAStopDuringTheLastElementCompletesTheJob(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		stop := make(chan struct{})
		last := e.Tasklet("last", tx.Attr{}, func(context.Context, *core.StepContribution) error {
			close(stop)
			return nil
		})
		cleaned := false
		j := testengine.Job("job", last)
		j.Finally = model.Flow{Elements: []model.Element{e.Tasklet("clean", tx.Attr{}, func(_ context.Context, c *core.StepContribution) error {
			cleaned = true
			select {
			case <-c.Stop:
				return errors.New("what cleans up is not stopped by a stop")
			default:
				return nil
			}
		})}}
		exec, err := e.Launcher.Run(t.Context(), j, core.Parameters{}, stop)
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.True(t, cleaned)
		require.Equal(t, core.StatusCompleted, e.Step(exec, "clean").Status)
	})
}

// On a busy machine the time can be over before the step begins: then the test
// doubles it.
func TestWhatComesAfterTheFlowIsBoundedWhenTheContextHasEnded(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		for grace := 50 * time.Millisecond; !boundedAfterTheFlow(t, url, grace); grace *= 2 {
			t.Logf("%v were over before the step of finally began", grace)
		}
	})
}

func boundedAfterTheFlow(t *testing.T, url string, grace time.Duration) bool {
	t.Helper()
	e := testengine.New(t, url, func(c *job.Config) { c.Grace = grace })
	ctx, second := context.WithCancel(t.Context())
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	var began atomic.Bool
	j := testengine.Job(fmt.Sprint("job", grace), e.Tasklet("a", tx.Attr{}, func(ctx context.Context, _ *core.StepContribution) error {
		second()
		<-ctx.Done()
		return ctx.Err()
	}))
	j.Finally = model.Flow{Elements: []model.Element{e.Tasklet("clean", tx.Attr{}, func(ctx context.Context, _ *core.StepContribution) error {
		began.Store(true)
		<-ctx.Done()
		return ctx.Err()
	})}}
	j.Listeners = func(context.Context, *core.View) ([]any, error) { return []any{&deaf{release: release}}, nil }
	exec, err := e.Launcher.Run(ctx, j, core.Parameters{}, nil)
	require.NoError(t, err)
	stored, err := e.Repository.Execution(t.Context(), exec.ID)
	require.NoError(t, err)
	require.Equal(t, core.StatusFailed, stored.Status)
	require.Contains(t, stored.Error, "did not return in time")
	if began.Load() {
		require.Equal(t, core.StatusFailed, e.Step(exec, "clean").Status)
	}
	return began.Load()
}

type deaf struct{ release chan struct{} }

func (d *deaf) AfterJob(context.Context, *core.JobExecution) error {
	<-d.release
	return nil
}

func TestADecisionThatDoesNotReturnIsNotWaitedForWhenTheContextHasEnded(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url, func(c *job.Config) { c.Grace = 50 * time.Millisecond })
		ctx, second := context.WithCancel(t.Context())
		release := make(chan struct{})
		t.Cleanup(func() { close(release) })
		j := &model.Job{Name: "job", Restartable: true, Flow: model.Flow{Elements: []model.Element{&model.DecisionElement{
			Name: "d", Decide: func(context.Context, *core.View) (string, error) {
				second()
				<-release
				return "ON", nil
			},
		}}}}
		exec, err := e.Launcher.Run(ctx, j, core.Parameters{}, nil)
		require.NoError(t, err)
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Contains(t, exec.Error, "did not return in time")
	})
}

func TestAStopDoesNotEndAChunkStepOfFinally(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e, _ := meddled(t, url)
		j := testengine.Job("job", e.Tasklet("work", tx.Attr{}, func(context.Context, *core.StepContribution) error { return nil }))
		written := 0
		j.Finally = model.Flow{Elements: []model.Element{testengine.Chunk(e, "clean", 1, func() (item.ItemReader[int], item.ItemProcessor[int, int], item.ItemWriter[int]) {
			p := processing(func(ctx context.Context, n int) (int, error) {
				list, err := e.Repository.Executions(ctx, ports.ExecutionFilter{JobName: "job"})
				if err == nil {
					_, err = e.Repository.RequestStop(ctx, list[0].ID, ports.By{Actor: "test"})
				}
				return n, err
			})
			return &counting{}, p, writing(func() { written++ })
		})}}
		exec, err := e.Launcher.Run(t.Context(), j, core.Parameters{}, nil)
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, e.Step(exec, "clean").Status)
		require.Equal(t, 3, written)
	})
}

// counting reads 1, 2 and 3.
type counting struct{ n int }

func (c *counting) Read(context.Context) (int, error) {
	if c.n == 3 {
		return 0, io.EOF
	}
	c.n++
	return c.n, nil
}

type processing func(ctx context.Context, n int) (int, error)

func (f processing) Process(ctx context.Context, n int) (int, error) { return f(ctx, n) }

type writing func()

func (f writing) Write(context.Context, []int) error {
	f()
	return nil
}

// Rule F2b.
func TestAStepOfUnknownOutcomeStaysUnknownThoughAStopIsRequested(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e, beside := testengine.New(t, url), tx.Attr{Propagation: tx.NotSupported}
		for name, around := range map[string]func(u, other model.Element) model.Element{
			"alone": func(u, _ model.Element) model.Element { return u },
			"split": func(u, other model.Element) model.Element {
				return &model.SplitElement{Name: "sp", Branches: []model.Flow{{Elements: []model.Element{other}}, {Elements: []model.Element{u}}}}
			},
			"flow": func(u, _ model.Element) model.Element {
				return &model.FlowElement{Name: "f", AsStep: true, Flow: model.Flow{Elements: []model.Element{u}}}
			},
		} {
			request := func(c *core.StepContribution) {
				_, err := e.Repository.RequestStop(context.WithoutCancel(t.Context()), c.Step.JobExecutionID, ports.By{Actor: "test"})
				require.NoError(t, err)
				<-c.Stop
			}
			unknown := e.Tasklet("u", beside, func(_ context.Context, c *core.StepContribution) error {
				request(c)
				return fmt.Errorf("sent: %w", ports.ErrUnknownOutcome)
			})
			unknown.Next = []model.Transition{{Pattern: "*", Target: model.Target{Kind: model.TargetEnd}}}
			stops := e.Tasklet("stops", beside, func(_ context.Context, c *core.StepContribution) error {
				<-c.Stop
				return core.ErrStopped
			})
			record := stored(e, e.Run(&model.Job{Name: name, Restartable: true, Flow: model.Flow{Elements: []model.Element{around(unknown, stops)}}}))
			require.Equal(t, core.StatusUnknown, record.Status, name)
			require.Equal(t, core.ExitUnknown, record.ExitCode, name)
			steps, err := e.Repository.Steps(t.Context(), record.ID)
			require.NoError(t, err)
			for _, s := range steps {
				if s.Name != "stops" {
					require.Equal(t, core.StatusUnknown, s.Status, "%s: %s", name, s.Name)
				}
			}
		}
	})
}
