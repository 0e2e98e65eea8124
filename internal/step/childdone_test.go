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
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func day(t *testing.T, n int) core.Parameters {
	t.Helper()
	params, err := core.NewParameters(core.Parameter{Name: "day", Type: core.TypeDate, Value: row.NewDate(2026, 11, n), Identifying: true})
	require.NoError(t, err)
	return params
}

type callers struct {
	e     *testengine.Engine
	first int // runs of the child's first step
	child error
	last  error // of the parent's last step
}

func (c *callers) parent(t *testing.T, names ...string) *model.Job {
	t.Helper()
	inner := testengine.Job("child", c.e.Tasklet("first", tx.Attr{}, func(context.Context, *core.StepContribution) error {
		c.first++
		return nil
	}), c.e.Tasklet("second", tx.Attr{}, func(context.Context, *core.StepContribution) error { return c.child }))
	var elements []*model.StepElement
	for _, name := range names {
		s, err := step.NewJob(step.JobConfig{Name: name, Job: inner})
		require.NoError(t, err)
		elements = append(elements, &model.StepElement{Step: s})
	}
	elements = append(elements, c.e.Tasklet("last", tx.Attr{}, func(context.Context, *core.StepContribution) error { return c.last }))
	return testengine.Job("parent", elements...)
}

func (c *callers) run(t *testing.T, j *model.Job, n int, options job.Options) *core.JobExecution {
	t.Helper()
	exec, err := c.e.Launcher.With(options).Run(context.Background(), j, day(t, n), nil)
	require.NoError(t, err)
	return exec
}

func TestAChildThatCompletedForAnotherStepOrDayIsAnError(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		c := &callers{e: testengine.New(t, url)}
		exec := c.run(t, c.parent(t, "one", "two"), 1, job.Options{})
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Equal(t, core.StatusCompleted, c.e.Step(exec, "one").Status)
		require.Contains(t, exec.Error, "step two: child job child has already run with these parameters, for another step, or another round, of this execution")

		exec = c.run(t, c.parent(t, "one"), 2, job.Options{})
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Contains(t, exec.Error, "with these parameters, for execution 1, and would not run again: give it a different identifying parameter")
		require.Equal(t, 1, c.first)
	})
}

func TestFromTheStartAChildRunsAnewAndOneThatCompletedIsAnError(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		c := &callers{e: testengine.New(t, url), child: errors.New("no good"), last: errors.New("nor this")}
		j := c.parent(t, "call")
		require.Equal(t, core.StatusFailed, c.run(t, j, 1, job.Options{}).Status)
		require.Equal(t, core.StatusFailed, c.run(t, j, 1, job.Options{}).Status)
		require.Equal(t, 1, c.first, "a restart passes it")
		require.Equal(t, core.StatusFailed, c.run(t, j, 1, job.Options{FromStart: true}).Status)
		require.Equal(t, 2, c.first, "from the start it runs anew")
		c.child = nil
		exec := c.run(t, j, 1, job.Options{})
		require.Equal(t, 2, c.first, "and a restart of that passes it")
		require.Equal(t, core.StatusCompleted, c.e.Step(exec, "call").Status)

		exec = c.run(t, j, 1, job.Options{FromStart: true})
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Contains(t, exec.Error, "before this job was run again from the start")
		require.Equal(t, 2, c.first)
	})
}

func TestAPurgeKeepsTheChildOfAParentThatMayGoOn(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		c := &callers{e: testengine.New(t, url), last: errors.New("no good")}
		j := c.parent(t, "call")
		require.Equal(t, core.StatusFailed, c.run(t, j, 1, job.Options{}).Status)
		purge := func() int64 {
			done, err := c.e.Repository.Purge(context.Background(), ports.PurgeFilter{EndedBefore: time.Now().Add(time.Hour), JobName: "child"}, "test")
			require.NoError(t, err)
			return done.Executions
		}
		require.Zero(t, purge())
		c.last = nil
		require.Equal(t, core.StatusCompleted, c.run(t, j, 1, job.Options{}).Status)
		require.EqualValues(t, 1, purge())
	})
}
