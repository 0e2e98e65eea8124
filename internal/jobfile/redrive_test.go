package jobfile_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/redrive"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// skippedOf is an execution with one skipped item of a step, written directly into the history.
func skippedOf(t *testing.T, e *testengine.Engine, step string) core.JobExecutionID {
	t.Helper()
	owner := core.Owner{Host: "here"}
	params, err := core.NewParameters(core.Parameter{Name: "step", Type: core.TypeString, Value: step, Identifying: true})
	require.NoError(t, err)
	launched, err := e.Repository.Launch(t.Context(), ports.LaunchRequest{JobName: "j", Params: params, Owner: owner, Lease: time.Hour})
	require.NoError(t, err)
	ref := ports.JobRef{ID: launched.Execution.ID, Owner: owner, Epoch: launched.Execution.Epoch}
	_, err = e.Repository.ChangeJob(t.Context(), ref, ports.JobChange{To: core.StatusStarted})
	require.NoError(t, err)
	record, err := e.Repository.StartStep(t.Context(), ref, ports.StepStart{Name: step})
	require.NoError(t, err)
	require.NoError(t, tx.NewManager(e.Database).Do(t.Context(), tx.Attr{}, func(ctx context.Context) error {
		return e.Repository.Checkpoint(ctx, ports.StepRef{ID: record.ID, Owner: owner, Epoch: record.Epoch}, ports.Checkpoint{
			Skipped: []core.SkippedItem{{Phase: core.PhaseWrite, Item: []byte(`{"id":1}`)}},
		})
	}))
	return ref.ID
}

func TestARedriveIsCompiledFromItsStepAlone(t *testing.T) {
	t.Parallel()
	e, b := testengine.New(t, testdb.SQLite(t)), &bench{}
	file := parse(t, "j.yaml", `
job: j
flow:
- step: load
  start_limit: 1
  next: {"*": end, FAILED: idle}
  chunk: {reader: {count: {to: 3}}, writer: {sink: {name: x}}}
- step: idle
  tasklet: idle
`)
	compile := func(step string) (*model.Job, error) {
		plan, err := redrive.New(t.Context(), e.Repository, redrive.Request{Execution: skippedOf(t, e, step)})
		require.NoError(t, err)
		return file.CompileRedrive(jobfile.Deps{Provider: e.Provider, Registry: b.registry(t)}, jobfile.Redrive{Plan: plan})
	}
	j, err := compile("load")
	require.NoError(t, err)
	require.Equal(t, "j", j.Name)
	require.Equal(t, core.JobExecutionID(1), j.RedriveOf)
	require.True(t, j.Restartable)
	require.Len(t, j.Flow.Elements, 1)
	element := j.Flow.Elements[0].(*model.StepElement)
	require.Equal(t, "load", element.ElementName())
	require.Empty(t, element.Next)
	require.Zero(t, element.StartLimit, "it counts the attempts of the job, not its redrives")

	_, err = compile("idle")
	require.EqualError(t, err, "step idle reads no items in j.yaml: it is not a chunk step")
	_, err = compile("lod")
	require.EqualError(t, err, "there is no step lod in j.yaml (did you mean load? allowed: load, idle)")
}

func TestARedriveOfAPartitionKnowsItsPart(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), "j.yaml", `
job: j
flow:
- step: parts
  partition: {by: {chapters: {names: [a, b]}}}
  chunk:
    reader: {count: {from: "${part.last - 1}", to: "${part.last}", label: "${part.name}"}}
    writer: {sink: "${part.file}"}
    skip: 5
`)
	s.refuse = "n=3 label=b "
	exec, err := s.launch(t, nil)
	require.NoError(t, err)
	require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	require.Len(t, s.rows, 3)
	s.refuse = ""
	plan, err := redrive.New(t.Context(), s.Repository, redrive.Request{Execution: exec.ID})
	require.NoError(t, err)
	require.Equal(t, "parts", plan.Step)
	require.Equal(t, []string{"parts:b"}, plan.Parts)
	records, err := s.Repository.Steps(t.Context(), exec.ID)
	require.NoError(t, err)
	steps := map[string]core.StepExecution{}
	for _, record := range records {
		steps[record.Name] = record
	}
	again, err := s.file.CompileRedrive(jobfile.Deps{Provider: s.Provider, Registry: s.registry(t)}, jobfile.Redrive{Plan: plan, Steps: steps})
	require.NoError(t, err)
	params, err := core.NewParameters(core.Parameter{Name: "again", Type: core.TypeInt, Value: int64(1), Identifying: true})
	require.NoError(t, err)
	exec, err = s.Launcher.Run(t.Context(), again, params, nil)
	require.NoError(t, err)
	require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	require.Contains(t, s.rows, "n=3 label=b ")
}
