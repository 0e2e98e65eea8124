package step_test

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type child struct {
	e     *testengine.Engine
	job   *model.Job
	asked int
	seen  core.Parameters
	// attr is the attr of the tasklet's transaction, which holds the one writer of SQLite.
	attr tx.Attr
	do   func(ctx context.Context, c *core.StepContribution) error
}

func (c *child) parent(t *testing.T) *model.Job {
	t.Helper()
	c.job = testengine.Job("child", c.e.Tasklet("work", c.attr, func(ctx context.Context, s *core.StepContribution) error {
		c.seen = s.Params
		if c.do == nil {
			return nil
		}
		return c.do(ctx, s)
	}))
	s, err := step.NewJob(step.JobConfig{
		Name: "call", Job: c.job,
		Params: func(context.Context, *core.View) (core.Parameters, error) {
			c.asked++
			return core.NewParameters(
				core.Parameter{Name: "n", Type: core.TypeInt, Value: int64(c.asked), Identifying: true},
				core.Parameter{Name: "day", Type: core.TypeDate, Value: row.NewDate(2026, 11, 21), Identifying: true},
				core.Parameter{Name: "at", Type: core.TypeTimestamp, Value: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)},
				core.Parameter{Name: "share", Type: core.TypeFloat, Value: 0.1},
				core.Parameter{Name: "in", Type: core.TypePath, Value: "a,b=c", Identifying: true},
				core.Parameter{Name: "wait", Type: core.TypeDuration, Value: 90 * time.Second},
				core.Parameter{Name: "dry", Type: core.TypeBool, Value: true},
			)
		},
	})
	require.NoError(t, err)
	return testengine.Job("parent", &model.StepElement{Step: s})
}

func TestARestartedJobStepGoesOnWithTheSameChildInstance(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		c := &child{e: testengine.New(t, url)}
		c.do = func(context.Context, *core.StepContribution) error { return errors.New("no good") }
		j := c.parent(t)
		exec := c.e.Run(j)
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Equal(t, "step call: child job child is FAILED (execution 2): step work: no good", exec.Error)
		first := c.seen
		require.EqualValues(t, 2, c.e.Step(exec, "call").Out["execution"])
		require.Equal(t, "FAILED", c.e.Step(exec, "call").Out["status"])

		c.do = nil
		again := c.e.Run(j)
		require.Equal(t, core.StatusCompleted, again.Status, again.Error)
		require.Equal(t, first.All(), c.seen.All())
		require.Equal(t, 1, c.asked)
		out := c.e.Step(again, "call").Out
		require.EqualValues(t, 4, out["execution"])
		require.Equal(t, "COMPLETED", out["status"])
		require.Equal(t, "COMPLETED", out["exit"])
		ran, err := c.e.Repository.Execution(context.Background(), 4)
		require.NoError(t, err)
		require.Equal(t, 2, ran.Attempt, "of the same instance")
	})
}

func TestAJobStepEndsAsItsChildDoes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do     func(ctx context.Context, s *core.StepContribution) error
		status core.Status
		exit   string
	}{
		"completed": {func(context.Context, *core.StepContribution) error { return nil }, core.StatusCompleted, core.ExitCompleted},
		"custom": {func(_ context.Context, s *core.StepContribution) error {
			s.ExitCode = "COMPLETED WITH SKIPS"
			return nil
		}, core.StatusCompleted, "COMPLETED WITH SKIPS"},
		"failed":  {func(context.Context, *core.StepContribution) error { return errors.New("no good") }, core.StatusFailed, core.ExitFailed},
		"stopped": {func(context.Context, *core.StepContribution) error { return core.ErrStopped }, core.StatusStopped, core.ExitStopped},
		"unknown": {func(context.Context, *core.StepContribution) error { return ports.ErrUnknownOutcome }, core.StatusUnknown, core.ExitUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := &child{e: testengine.New(t, testdb.SQLite(t)), do: c.do}
			exec := k.e.Run(k.parent(t))
			record := k.e.Step(exec, "call")
			require.Equal(t, c.status, record.Status, record.Error)
			require.Equal(t, c.exit, record.ExitCode)
			require.Equal(t, string(c.status), record.Out["status"])
		})
	}
}

func TestAStopOfTheParentStopsTheChild(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		stop := make(chan struct{})
		c := &child{e: testengine.New(t, url), attr: tx.Attr{Propagation: tx.NotSupported}}
		c.do = func(_ context.Context, s *core.StepContribution) error {
			close(stop)
			<-s.Stop
			return core.ErrStopped
		}
		j := c.parent(t)
		exec, err := c.e.Launcher.Run(context.Background(), j, core.Parameters{}, stop)
		require.NoError(t, err)
		require.Equal(t, core.StatusStopped, exec.Status)
		ran, err := c.e.Repository.Execution(context.Background(), 2)
		require.NoError(t, err)
		require.Equal(t, core.StatusStopped, ran.Status)
		c.do = nil
		require.Equal(t, core.StatusCompleted, c.e.Run(j).Status)
	})
}

func TestTheLossOfTheParentCancelsTheChild(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		c := &child{e: testengine.New(t, url), attr: tx.Attr{Propagation: tx.NotSupported}}
		c.do = func(ctx context.Context, _ *core.StepContribution) error {
			c.e.Exec("update surfin_job_execution set owner = 'another', epoch = epoch + 1 where job_name = 'parent'")
			<-ctx.Done()
			return context.Cause(ctx)
		}
		_, err := c.e.Launcher.Run(context.Background(), c.parent(t), core.Parameters{}, nil)
		require.ErrorIs(t, err, core.ErrLostOwner)
		ran, err := c.e.Repository.Execution(context.Background(), 2)
		require.NoError(t, err)
		require.Equal(t, core.StatusFailed, ran.Status)
	})
}

func TestAChildThatCompletedInAnEarlierAttemptIsASuccess(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		c := &child{}
		var dead *deadline
		c.e = testengine.New(t, url, func(config *job.Config) {
			dead = &deadline{config.Executor, false}
			config.Executor = dead
		})
		j := c.parent(t)
		dead.armed = true
		exec := c.e.Run(j)
		require.Equal(t, core.StatusFailed, exec.Status)
		dead.armed = false
		c.seen = core.Parameters{}
		exec = c.e.Run(j)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Zero(t, c.seen.Len(), "it did not run again")
		require.EqualValues(t, 2, c.e.Step(exec, "call").Out["execution"])
	})
}

type deadline struct {
	model.StepExecutor
	armed bool
}

func (d *deadline) Execute(ctx context.Context, s model.Step, run *model.StepRun) (*core.StepExecution, error) {
	if d.armed && s.Name() == "call" {
		s = forgetful{s}
	}
	return d.StepExecutor.Execute(ctx, s, run)
}

type forgetful struct{ model.Step }

func (f forgetful) Execute(ctx context.Context, run *model.StepRun) error {
	return errors.Join(f.Step.Execute(ctx, run), errors.New("the record is lost"))
}

func TestAChildThatMayNotRunFailsTheStepWithTheReason(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		c := &child{e: testengine.New(t, url)}
		c.do = func(context.Context, *core.StepContribution) error { return errors.New("no good") }
		j := c.parent(t)
		c.e.Run(j)
		for status, want := range map[string]string{"ABANDONED": "was abandoned", "UNKNOWN": "cannot start: "} {
			c.e.Exec(fmt.Sprintf("update surfin_job_execution set status = '%s' where job_name = 'child'", status))
			exec := c.e.Run(j)
			require.Equal(t, core.StatusFailed, exec.Status)
			require.Contains(t, exec.Error, "child job child cannot start: ")
			require.Contains(t, exec.Error, want)
		}
		c.e.Exec("update surfin_job_execution set status = 'STARTED', active = 1, lease_until = (select max(lease_until) from surfin_job_execution) where id = 2")
		exec := c.e.Run(j)
		require.Contains(t, exec.Error, "another execution of the same instance is running")
	})
}

func TestAChildJobInAnAtomicGroupIsRefused(t *testing.T) {
	t.Parallel()
	c := &child{e: testengine.New(t, testdb.SQLite(t))}
	s := c.parent(t).Flow.Steps()[0]
	err := s.Execute(context.Background(), &model.StepRun{Data: model.StepContext{Job: &core.JobExecution{}, Group: &model.Group{Name: "books"}}, Step: &core.StepExecution{}})
	require.ErrorIs(t, err, step.ErrInGroup)
	_, err = step.NewJob(step.JobConfig{Name: "call"})
	require.ErrorContains(t, err, "has no job")
	_, err = step.NewJob(step.JobConfig{})
	require.ErrorContains(t, err, "needs a name")
}

type ticking struct{ read chan int }

func (r *ticking) Read(context.Context) (int, error) {
	r.read <- 1
	return 1, nil
}

type passing struct{}

func (passing) Process(_ context.Context, i int) (int, error) { return i, nil }

type discarding struct{}

func (discarding) Write(context.Context, []int) error { return nil }

func TestAStopOfTheParentInTheDatabaseIsSeenByTheChildsOwnCommit(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url, func(c *job.Config) { c.Lease, c.Heartbeat = time.Hour, 10*time.Minute })
		items := make(chan int)
		inner := testengine.Job("child", testengine.Chunk(e, "work", 1, func() (item.ItemReader[int], item.ItemProcessor[int, int], item.ItemWriter[int]) {
			return &ticking{read: items}, passing{}, discarding{}
		}))
		s, err := step.NewJob(step.JobConfig{Name: "call", Job: inner, Params: func(context.Context, *core.View) (core.Parameters, error) {
			return core.NewParameters()
		}})
		require.NoError(t, err)
		running, err := e.Launcher.Start(context.Background(), testengine.Job("parent", &model.StepElement{Step: s}), core.Parameters{})
		require.NoError(t, err)
		<-items
		<-items
		_, err = e.Repository.RequestStop(context.Background(), running.Execution().ID, ports.By{Actor: "test"})
		require.NoError(t, err)
		after := 0
		for over := false; !over; {
			select {
			case <-items:
				after++
			case <-running.Done():
				over = true
			}
		}
		require.LessOrEqual(t, after, 2, "chunks of one item that were begun after the request")
		exec, err := running.Wait()
		require.NoError(t, err)
		require.Equal(t, core.StatusStopped, exec.Status)
		ran, err := e.Repository.Execution(context.Background(), exec.ID+1)
		require.NoError(t, err)
		require.Equal(t, core.StatusStopped, ran.Status)
		require.Equal(t, exec.ID, ran.Parent)
	})
}
