package jobfile_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/step"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func compile(t *testing.T, url, text string) (*model.Job, error) {
	t.Helper()
	engine := testengine.New(t, url)
	return parse(t, "job.yaml", text).Compile(jobfile.Deps{Provider: engine.Provider, Registry: (&bench{}).registry(t)})
}

func TestWhatADatabaseCannotDoIsReportedWithThePosition(t *testing.T) {
	t.Parallel()
	_, err := compile(t, testdb.SQLite(t), `
job: x
flow:
- step: a
  tasklet: idle
  transaction: {isolation: read_committed}
- step: b
  tasklet: idle
  transaction: {timeout: 3s}
- step: c
  chunk:
    reader: {count: {to: 3}}
    writer: {sink: {name: a, database: warehouse}}
`)
	var problems jobfile.Problems
	require.ErrorAs(t, err, &problems)
	require.Len(t, problems, 2)
	require.Equal(t, [2]int{6, 28}, [2]int{problems[0].Line, problems[0].Col})
	require.Contains(t, problems[0].Msg, "does not have the isolation level Read Committed")
	require.Equal(t, [2]int{13, 40}, [2]int{problems[1].Line, problems[1].Col})
	require.Contains(t, problems[1].Msg, "warehouse")

	_, err = compile(t, testdb.SQLite(t), "job: x\ndatabase: warehouse\nflow:\n- step: a\n  tasklet: idle\n")
	require.ErrorAs(t, err, &problems)
	require.Equal(t, [2]int{2, 11}, [2]int{problems[0].Line, problems[0].Col})
}

func TestATaskletStepHasTheTransactionOfTheFile(t *testing.T) {
	t.Parallel()
	job, err := compile(t, testdb.Postgres(t), `
job: x
flow:
- {step: plain, tasklet: note}
- {step: without, tasklet: idle}
- {step: more, tasklet: idle, transaction: {propagation: REQUIRED, isolation: serializable, read_only: true, timeout: 30s}, timeout: 2h}
`)
	require.NoError(t, err)
	attr := func(i int) tx.Attr {
		_, attr := job.Flow.Elements[i].(*model.StepElement).Step.(*step.TaskletStep).Transaction()
		return attr
	}
	require.Equal(t, tx.Attr{}, attr(0))
	require.Equal(t, tx.Attr{Propagation: tx.NotSupported}, attr(1))
	more := attr(2)
	require.Equal(t, tx.Required, more.Propagation)
	require.True(t, more.ReadOnly)
	require.Equal(t, "Serializable", more.Isolation.String())
	require.Equal(t, "30s", more.Timeout.String())
	require.Equal(t, "2h0m0s", job.Flow.Elements[2].(*model.StepElement).Step.(*step.TaskletStep).Timeout().String())
}

func TestARegistryThatOnlyDescribesDoesNotCompile(t *testing.T) {
	t.Parallel()
	engine := testengine.New(t, testdb.SQLite(t))
	file := parse(t, "job.yaml", "job: x\nflow:\n- step: a\n  chunk: {reader: {count: {to: 3}}, writer: {sink: x}}\n")
	_, err := file.Compile(jobfile.Deps{Provider: engine.Provider, Registry: described(t)})
	require.EqualError(t, err, "this application cannot make reader count: its registry only describes it\nthis application cannot make writer sink: its registry only describes it")
}

func TestNextBecomesExplicitEdges(t *testing.T) {
	t.Parallel()
	job, err := compile(t, testdb.SQLite(t), `
job: x
flow:
- {step: implicit, tasklet: idle, start_limit: 3, allow_start_if_complete: true, next: {A: failing, B: stops, C: ends, D: named_end}}
- {step: named, tasklet: idle, next: last}
- {step: failing, tasklet: idle, next: {FAILED: last, "CODE *": {stop: {restart: named, message: look}}}}
- {step: all, tasklet: idle, next: {"*": last}}
- {step: stops, tasklet: idle, next: {stop: {restart: last}}}
- {step: ends, tasklet: idle, next: {end: {exit: EMPTY}}}
- {step: named_end, tasklet: idle, next: {"F*": end, FAILED: {fail: {exit: BAD}}}}
- {step: last, tasklet: idle}
`)
	require.NoError(t, err)
	to := func(name, code string) model.Target {
		e, ok := job.Flow.Find(name)
		require.True(t, ok)
		status := core.StatusCompleted
		if code == core.ExitFailed {
			status = core.StatusFailed
		}
		target, _ := model.Next(e.Edges(), status, code) // none: the zero target
		return target
	}
	element := func(name string) model.Target { return model.Target{Kind: model.TargetElement, Name: name} }
	none := model.Target{}

	require.Equal(t, element("named"), to("implicit", "COMPLETED"))
	require.Equal(t, element("named"), to("implicit", "COMPLETED WITH SKIPS"))
	require.Equal(t, none, to("implicit", "FAILED"))
	require.Equal(t, element("last"), to("named", "NOOP"))
	require.Equal(t, none, to("named", "FAILED"))
	require.Equal(t, element("last"), to("failing", "FAILED"))
	require.Equal(t, model.Target{Kind: model.TargetStop, Restart: "named", Message: "look"}, to("failing", "CODE 3"))
	require.Equal(t, element("all"), to("failing", "COMPLETED"))
	require.Equal(t, element("last"), to("all", "FAILED"))
	require.Equal(t, element("last"), to("all", "COMPLETED"))
	require.Equal(t, model.Target{Kind: model.TargetStop, Restart: "last"}, to("stops", "COMPLETED"))
	require.Equal(t, model.Target{Kind: model.TargetEnd, Exit: "EMPTY"}, to("ends", "COMPLETED"))
	require.Equal(t, model.Target{Kind: model.TargetFail, Exit: "BAD"}, to("named_end", "FAILED"))
	require.Equal(t, model.Target{Kind: model.TargetEnd}, to("last", "COMPLETED"))
	require.Equal(t, none, to("last", "FAILED"))

	first := job.Flow.Elements[0].(*model.StepElement)
	require.Equal(t, 3, *first.StartLimit)
	require.True(t, first.AllowStartIfComplete)
}

func TestTheDatabaseOfAStepIsThatOfItsWriters(t *testing.T) {
	t.Parallel()
	job, err := compile(t, testdb.SQLite(t), `
job: x
flow:
- step: a
  chunk: {reader: {count: {to: 3}}, writer: [sink: {name: a, database: default}, sink: b]}
`)
	require.NoError(t, err)
	require.Equal(t, "chunk", job.Flow.Elements[0].(*model.StepElement).Step.Kind())
}
