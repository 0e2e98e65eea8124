package step_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/step"
)

func TestWhichPartitionsRunAgainDependsOnHowTheyAndTheWholeStepEnded(t *testing.T) {
	t.Parallel()
	completed, failed, stopped := core.StatusCompleted, core.StatusFailed, core.StatusStopped
	for name, c := range map[string]struct {
		previous []core.Status
		repeated bool // the step completed, and is run again from the start
		allow    bool
		want     []string
	}{
		"nothing is planned":          {nil, false, false, nil},
		"the unfinished":              {[]core.Status{completed, failed, stopped}, false, false, []string{"p1", "p2"}},
		"all where that is allowed":   {[]core.Status{completed, failed}, false, true, []string{"p0", "p1"}},
		"the plan is kept":            {[]core.Status{failed, failed}, false, false, []string{"p0", "p1"}},
		"all of a repetition":         {[]core.Status{completed, completed}, true, false, []string{"p0", "p1"}},
		"none though the step failed": {[]core.Status{completed, completed}, false, false, nil},
	} {
		s := due(t, c.allow)
		run := &model.StepRun{Data: model.StepContext{Parts: map[string]core.StepExecution{}}}
		if !c.repeated {
			run.Data.Earlier = &core.StepExecution{Status: failed}
		}
		for i, status := range c.previous {
			run.Data.Parts[fmt.Sprintf("p%d", i)] = planned(t, i, status)
		}
		parts, passed, err := s.Due(run)
		require.NoError(t, err, name)
		var names []string
		for _, p := range parts {
			require.Equal(t, fmt.Sprintf("p%d", p.Index), p.Name)
			names = append(names, p.Name)
		}
		require.Equal(t, c.want, names, name)
		require.Len(t, passed, len(c.previous)-len(c.want), name)
	}
}

func TestAPartitionOfUnknownOutcomeIsNotRunAgain(t *testing.T) {
	t.Parallel()
	s := due(t, false)
	for _, status := range []core.Status{core.StatusUnknown, core.StatusStarted} {
		_, _, err := s.Due(&model.StepRun{Data: model.StepContext{Earlier: &core.StepExecution{}, Parts: map[string]core.StepExecution{"p0": planned(t, 0, status)}}})
		require.ErrorIs(t, err, ports.ErrUnknownOutcome)
		require.ErrorContains(t, err, "partition p0 of step s is "+string(status))
	}
}

func TestDuePartitionsAreInTheOrderOfThePlan(t *testing.T) {
	t.Parallel()
	run := &model.StepRun{Data: model.StepContext{Earlier: &core.StepExecution{}, Parts: map[string]core.StepExecution{}}}
	for i, name := range []string{"z", "b", "a", "p10", "p9"} {
		run.Data.Parts[name] = planned(t, i, core.StatusFailed)
	}
	parts, _, err := due(t, false).Due(run)
	require.NoError(t, err)
	require.Equal(t, []string{"z", "b", "a", "p10", "p9"}, []string{parts[0].Name, parts[1].Name, parts[2].Name, parts[3].Name, parts[4].Name})
}

func due(t *testing.T, allow bool) *step.PartitionStep {
	t.Helper()
	w := &work{}
	s, err := step.NewPartitioned(step.PartitionConfig{
		Step: w.step(t, testengine.New(t, testdb.SQLite(t)), "s"), AllowStartIfComplete: allow,
		Partitioner: func(context.Context, *model.StepRun) (core.Partitioner, error) { return numbered(3), nil },
	})
	require.NoError(t, err)
	return s
}

func planned(t *testing.T, index int, status core.Status) core.StepExecution {
	t.Helper()
	c := core.NewExecutionContext()
	require.NoError(t, c.Put("surfin.index", index))
	return core.StepExecution{Status: status, Context: c}
}
