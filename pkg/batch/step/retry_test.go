package step_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/config"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func retried(t *testing.T, e *testengine.Engine, name string, c step.TaskletConfig, f core.TaskletFunc) *model.Job {
	t.Helper()
	c.Name, c.Database = "work", e.Database
	c.Assemble = func(context.Context, *model.StepRun) (core.Tasklet, error) { return f, nil }
	s, err := step.NewTasklet(c)
	require.NoError(t, err)
	return testengine.Job(name, &model.StepElement{Step: s})
}

// Rule TL7.
func TestATaskletRunsAgainInATransactionOfItsOwn(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := engine(t, url)
		tries := 0
		exec := e.Run(retried(t, e, "again", step.TaskletConfig{Retry: model.Retry{Limit: 2}}, func(ctx context.Context, c *core.StepContribution) error {
			tries++
			c.Counters.Write, c.Out = 1, map[string]any{"try": int64(tries)}
			_, had := c.Context.Get("try")
			require.False(t, had, "the context of an attempt that was rolled back")
			require.NoError(t, c.Context.Put("try", tries))
			require.NoError(t, c.Save(ctx))
			current, in := tx.From(ctx, e.Database.Name())
			require.True(t, in)
			if _, err := current.Conn().ExecContext(ctx, fmt.Sprintf("insert into out values (%d, null)", tries)); err != nil {
				return err
			}
			if tries < 3 {
				c.ExitCode = "ODD"
				return exception.Retryable("", errors.New("not yet"))
			}
			return nil
		}))
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, []int64{3}, e.Ints("select id from out"), "those before are rolled back")
		record := e.Step(exec, "work")
		require.Equal(t, int64(1), record.Counters.Write)
		require.EqualValues(t, 3, record.Out["try"])
		require.Equal(t, core.ExitCompleted, record.ExitCode)
	})
}

func TestWhatNoRetryMendsIsFinal(t *testing.T) {
	t.Parallel()
	url := testdb.SQLite(t)
	e := engine(t, url)
	again := exception.Retryable("", errors.New("not yet"))
	for name, c := range map[string]struct {
		config step.TaskletConfig
		fails  func() error
		tries  int
		status core.Status
		says   string
	}{
		"limit":    {step.TaskletConfig{}, func() error { return again }, 3, core.StatusFailed, "failed 3 times, last: not yet"},
		"other":    {step.TaskletConfig{}, func() error { return errors.New("broken") }, 1, core.StatusFailed, "broken"},
		"panic":    {step.TaskletConfig{}, func() error { panic(again) }, 1, core.StatusFailed, "not yet"},
		"stop":     {step.TaskletConfig{}, func() error { return core.ErrStopped }, 1, core.StatusStopped, "stopped on request"},
		"timeout":  {step.TaskletConfig{Timeout: time.Second}, func() error { return again }, 1, core.StatusFailed, "exceeded its timeout"},
		"no group": {step.TaskletConfig{Attr: tx.Attr{Propagation: tx.NotSupported}}, func() error { return again }, 3, core.StatusFailed, "failed 3 times"},
	} {
		c.config.Retry = model.Retry{Limit: 2}
		if c.config.Timeout > 0 {
			c.config.Retry.Backoff = config.Backoff{Initial: time.Hour}
		}
		tries := 0
		exec := e.Run(retried(t, e, "final_"+name[:2], c.config, func(context.Context, *core.StepContribution) error {
			tries++
			return c.fails()
		}))
		require.Equal(t, c.tries, tries, name)
		require.Equal(t, c.status, exec.Status, name)
		require.Contains(t, e.Step(exec, "work").Error, c.says, name)
	}
}
