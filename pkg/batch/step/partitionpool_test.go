package step_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestAStopEndsWhatRunsAndWhatHasNotBegunAndARestartRunsBoth(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		stop, begun := make(chan struct{}), make(chan string, 8)
		w := &work{attr: tx.Attr{Propagation: tx.NotSupported}, do: func(ctx context.Context, part core.Partition, c *core.StepContribution) error {
			if part.Name == "p0" {
				return nil
			}
			begun <- part.Name
			<-c.Stop
			return core.ErrStopped
		}}
		j := testengine.Job("job", partitioned(t, w.step(t, e, "s"), numbered(8), func(c *step.PartitionConfig) {
			c.Workers, c.Database = 2, e.Database
		}))
		go func() {
			<-begun
			<-begun
			close(stop)
		}()
		exec, err := e.Launcher.Run(context.Background(), j, core.Parameters{}, stop)
		require.NoError(t, err)
		require.Equal(t, core.StatusStopped, exec.Status, exec.Error)
		all := statuses(e, exec)
		require.Equal(t, core.StatusStopped, all["s"])
		require.Len(t, all, 9)
		for name, status := range all {
			if name == "s:p0" {
				require.Equal(t, core.StatusCompleted, status)
			} else {
				require.Equal(t, core.StatusStopped, status, name)
			}
		}
		require.Contains(t, e.Step(exec, "s:p7").Error, "before it started")

		w.reset()
		w.do = nil
		exec = e.Run(j)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, []string{"p1", "p2", "p3", "p4", "p5", "p6", "p7"}, w.names())
	})
}

func TestTheEndOfTheContextEndsAllPartitions(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		ctx, cancel := context.WithCancelCause(context.Background())
		w := &work{do: func(ctx context.Context, _ core.Partition, _ *core.StepContribution) error {
			cancel(errors.New("no time left"))
			<-ctx.Done()
			return ctx.Err()
		}}
		exec, err := e.Launcher.Run(ctx, testengine.Job("job", partitioned(t, w.step(t, e, "s"), numbered(6), func(c *step.PartitionConfig) { c.Workers = 2 })), core.Parameters{}, nil)
		require.NoError(t, err)
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Contains(t, exec.Error, "no time left")
		for name, status := range statuses(e, exec) {
			require.Equal(t, core.StatusFailed, status, name)
		}
		require.Contains(t, e.Step(exec, "s:p5").Error, "not started: no time left")
	})
}

func TestAPartitionThatNoWorkerTakesHasFailed(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		accepted := 0
		e := testengine.New(t, url, func(c *job.Config) {
			c.Spawn = func(work func()) error {
				if accepted++; accepted > 1 {
					return errors.New("the pool is full")
				}
				go work()
				return nil
			}
		})
		w := &work{}
		j := testengine.Job("job", partitioned(t, w.step(t, e, "s"), numbered(2)))
		exec := e.Run(j)
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Len(t, w.names(), 1)
		require.Equal(t, core.ExitFailed, e.Step(exec, "s").ExitCode)
		require.Equal(t, map[string]core.Status{"s": core.StatusFailed, "s:p0": core.StatusCompleted, "s:p1": core.StatusFailed}, statuses(e, exec))
		require.Contains(t, exec.Error, "p1: no worker accepts it: the pool is full")
		accepted = 0
		exec = e.Run(j)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	})
}

func TestAPoolThatNeverRunsWhatItTookDoesNotHoldUpAStop(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	var kept []func()
	e := testengine.New(t, testdb.SQLite(t), func(c *job.Config) {
		c.Spawn = func(work func()) error {
			if kept = append(kept, work); len(kept) == 2 {
				close(stop)
			}
			return nil
		}
	})
	w := &work{}
	exec, err := e.Launcher.Run(context.Background(), testengine.Job("job", partitioned(t, w.step(t, e, "s"), numbered(3), func(c *step.PartitionConfig) { c.Workers = 2 })), core.Parameters{}, stop)
	require.NoError(t, err)
	require.Equal(t, core.StatusStopped, exec.Status, exec.Error)
	for name, status := range statuses(e, exec) {
		require.Equal(t, core.StatusStopped, status, name)
	}
	for _, late := range kept {
		late()
	}
	require.Empty(t, w.names(), "what comes late does nothing")
}

type crooked struct {
	model.StepExecutor
	name string
	do   func(ctx context.Context, s model.Step, run *model.StepRun) (*core.StepExecution, error)
}

func (c *crooked) Execute(ctx context.Context, s model.Step, run *model.StepRun) (*core.StepExecution, error) {
	if run.Data.Name == c.name {
		return c.do(ctx, s, run)
	}
	return c.StepExecutor.Execute(ctx, s, run)
}

func TestAnExecutorThatPanicsOrCannotRecordIsAFailedPartitionAndNoHang(t *testing.T) {
	t.Parallel()
	c := &crooked{name: "s:p1"}
	e := testengine.New(t, testdb.SQLite(t), func(config *job.Config) {
		c.StepExecutor = config.Executor
		config.Executor = c
	})
	for name, do := range map[string]func(ctx context.Context, s model.Step, run *model.StepRun) (*core.StepExecution, error){
		"panic": func(context.Context, model.Step, *model.StepRun) (*core.StepExecution, error) { panic("lost my head") },
		"error": func(context.Context, model.Step, *model.StepRun) (*core.StepExecution, error) {
			return nil, errors.New("returned no execution")
		},
		"nothing": func(context.Context, model.Step, *model.StepRun) (*core.StepExecution, error) { return nil, nil },
	} {
		c.do = do
		w := &work{}
		exec := e.Run(testengine.Job(name, partitioned(t, w.step(t, e, "s"), numbered(3))))
		require.Equal(t, core.StatusFailed, exec.Status, name)
		require.Contains(t, exec.Error, "1 of 3 partitions failed: p1: ", name)
		require.Equal(t, []string{"p0", "p2"}, w.names(), name)
		require.Equal(t, core.StatusFailed, statuses(e, exec)["s:p1"], name)
	}
}

func TestAPartitionTakenOverByAnotherOwnerEndsTheRun(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		w := &work{}
		plans := &stealing{e: e}
		s := partitioned(t, w.step(t, e, "s"), numbered(3), func(c *step.PartitionConfig) { c.Workers = 1 })
		plans.Step = s.Step
		_, err := e.Launcher.Run(context.Background(), testengine.Job("job", &model.StepElement{Step: plans}), core.Parameters{}, nil)
		require.Error(t, err)
		require.ErrorIs(t, err, core.ErrLostOwner)
		require.Empty(t, w.names())
	})
}

type stealing struct {
	model.Step
	e *testengine.Engine
}

func (s *stealing) Execute(ctx context.Context, run *model.StepRun) error {
	run.Services.Plans = stolenPlans{run.Services.Plans, s.e}
	return s.Step.Execute(ctx, run)
}

type stolenPlans struct {
	model.Plans
	e *testengine.Engine
}

func (p stolenPlans) PlanPartitions(ctx context.Context, ref ports.JobRef, plan ports.PartitionPlan) ([]core.StepExecution, error) {
	records, err := p.Plans.PlanPartitions(ctx, ref, plan)
	if err == nil {
		_, err = p.e.Database.Conn().ExecContext(ctx, "update surfin_step_execution set epoch = epoch + 1, owner = 'another', status = 'FAILED'")
	}
	return records, err
}
