package job_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func parameters(t *testing.T, list ...core.Parameter) core.Parameters {
	t.Helper()
	p, err := core.NewParameters(list...)
	require.NoError(t, err)
	return p
}

func intParameter(name string, v int64) core.Parameter {
	return core.Parameter{Name: name, Type: core.TypeInt, Value: v, Identifying: true}
}

func text(name, v string) core.Parameter {
	return core.Parameter{Name: name, Type: core.TypeString, Value: v}
}

func TestACountMakesTheNextNumberAndNoOtherParameter(t *testing.T) {
	t.Parallel()
	next := job.Count("run")
	first, err := next(nil, core.Parameters{})
	require.NoError(t, err)
	require.Equal(t, parameters(t, intParameter("run", 1)), first)

	last := &core.JobExecution{Params: parameters(t, intParameter("run", 7), text("input", "a.csv"), text("note", "x"))}
	got, err := next(last, parameters(t, text("note", "y")))
	require.NoError(t, err)
	require.Equal(t, parameters(t, intParameter("run", 8), text("note", "y")), got)

	got, err = next(&core.JobExecution{Params: parameters(t, text("run", "5"))}, core.Parameters{})
	require.NoError(t, err)
	require.Equal(t, parameters(t, intParameter("run", 6)), got, "a numeric text counts")

	got, err = next(last, parameters(t, intParameter("run", 100)))
	require.NoError(t, err)
	run, _ := got.Get("run")
	require.Equal(t, int64(100), run.Value, "what is given is taken")

	got, err = next(&core.JobExecution{Params: parameters(t, text("input", "a.csv"))}, core.Parameters{})
	require.NoError(t, err)
	run, _ = got.Get("run")
	require.Equal(t, int64(1), run.Value)
}

func TestACountRefusesWhatItCannotCountOnFrom(t *testing.T) {
	t.Parallel()
	for _, p := range []core.Parameter{
		text("run", "foo"), text("run", ""), intParameter("run", math.MaxInt64), {Name: "run", Type: core.TypeBool, Value: true},
	} {
		_, err := job.Count("run")(&core.JobExecution{Params: parameters(t, p)}, core.Parameters{})
		var wrong *ports.ParameterError
		require.ErrorAs(t, err, &wrong, p)
		require.Equal(t, "run", wrong.Name)
		require.ErrorContains(t, err, "last execution")
	}
}

func TestTheNextDayFollowsTheLastOne(t *testing.T) {
	t.Parallel()
	date := func(s string) core.Parameter {
		v, err := core.ParseParameter(core.TypeDate, s)
		require.NoError(t, err)
		return core.Parameter{Name: "day", Type: core.TypeDate, Value: v, Identifying: true}
	}
	next := job.NextDay("day")
	for before, after := range map[string]string{"2026-02-28": "2026-03-01", "2024-02-28": "2024-02-29", "2025-12-31": "2026-01-01"} {
		got, err := next(&core.JobExecution{Params: parameters(t, date(before), text("input", "a"))}, core.Parameters{})
		require.NoError(t, err)
		require.Equal(t, parameters(t, date(after)), got)
		got, err = next(&core.JobExecution{Params: parameters(t, text("day", before))}, core.Parameters{})
		require.NoError(t, err)
		require.Equal(t, parameters(t, date(after)), got)
	}
	got, err := next(nil, parameters(t, text("input", "a")))
	require.NoError(t, err)
	require.Equal(t, parameters(t, text("input", "a")), got, "the first day is the parameter's default")
	_, err = next(&core.JobExecution{Params: parameters(t, text("day", "soon"))}, core.Parameters{})
	var wrong *ports.ParameterError
	require.ErrorAs(t, err, &wrong)
}
