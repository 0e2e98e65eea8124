package step_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/step"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type asking struct {
	exclusive bool
	attempt   core.Attempt
	work      func(ctx context.Context) error
}

func (s *asking) Name() string { return "ask" }
func (s *asking) Kind() string { return "test" }

func (s *asking) Execute(ctx context.Context, run *model.StepRun) error {
	a, err := run.Attempt(ctx)
	if err != nil {
		return err
	}
	s.exclusive, s.attempt = a.Exclusive, a
	return s.work(ctx)
}

// Rule C15b.
func TestAnAttemptIsExclusiveOnlyIfAllBeforeItAreOver(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		dead := false
		e := testengine.New(t, url, func(c *job.Config) {
			c.Executor.(*step.SimpleStepExecutor).StopTimeout = time.Millisecond
			c.Dead = func(core.Owner) bool { return dead }
		})
		failing := func(context.Context) error { return errors.New("broken") }
		run := func(ctx context.Context, work func(context.Context) error) (core.Attempt, *core.JobExecution) {
			s := &asking{work: work}
			exec, err := e.Launcher.Run(ctx, testengine.Job("ask", &model.StepElement{Step: s}), core.Parameters{}, nil)
			require.NoError(t, err)
			return s.attempt, exec
		}
		first, _ := run(t.Context(), failing)
		require.True(t, first.Exclusive, "there is none before it")
		second, _ := run(t.Context(), failing)
		require.True(t, second.Exclusive, "the first one recorded its own end")
		require.Equal(t, first.Scope(), second.Scope())
		require.Greater(t, second.ID, first.ID)

		// One is abandoned: its goroutine may wake.
		ctx, cancel := context.WithCancel(t.Context())
		wake := make(chan struct{})
		_, exec := run(ctx, func(context.Context) error {
			cancel()
			<-wake
			return nil
		})
		require.Contains(t, exec.Error, step.ErrAbandoned.Error())
		next, _ := run(t.Context(), failing)
		require.False(t, next.Exclusive)
		next, _ = run(t.Context(), failing)
		require.False(t, next.Exclusive, "nor is the one after the next")
		close(wake)
		next, _ = run(t.Context(), failing)
		require.False(t, next.Exclusive, "nothing says that it woke")

		dead = true
		next, _ = run(t.Context(), failing)
		require.True(t, next.Exclusive, "the process of all of them is dead")
	})
}

func TestAnAttemptThatLostItsLeaseIsNotKnownToBeOver(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url, func(c *job.Config) {
			c.Lease, c.Heartbeat = 20*time.Second, 5*time.Second
			c.Dead = func(core.Owner) bool { return false }
		})
		ctx := t.Context()
		l, err := e.Repository.Launch(ctx, ports.LaunchRequest{
			JobName: "ask", Definition: core.Definition{Hash: "test", Text: "test"}, Restartable: true,
			Owner: core.Owner{Host: "elsewhere", PID: 1, Nonce: "n"}, Lease: time.Microsecond,
		})
		require.NoError(t, err)
		ref := ports.JobRef{ID: l.Execution.ID, Owner: l.Execution.Owner, Epoch: l.Execution.Epoch}
		_, err = e.Repository.ChangeJob(ctx, ref, ports.JobChange{To: core.StatusStarted})
		require.NoError(t, err)
		_, err = e.Repository.StartStep(ctx, ref, ports.StepStart{Name: "ask"})
		require.NoError(t, err)
		s := &asking{work: func(context.Context) error { return nil }}
		exec, err := e.Launcher.Run(ctx, testengine.Job("ask", &model.StepElement{Step: s}), core.Parameters{}, nil)
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.False(t, s.exclusive)
	})
}
