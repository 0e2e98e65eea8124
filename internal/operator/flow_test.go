package operator

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const flowJob = `job: tour
parameters:
  year: {type: int}
flow:
- {step: first, tasklet: {sql: select 1}}
- decide: way
  when: params.year > 0
  choose:
  - {when: params.year > 3000, next: end}
  - next: both
- split: both
  parallel: 1
  branches:
  - - step: left
      tasklet:
        sql: >
          select
            1
  - - {step: right, tasklet: {sql: select 1}}
- {step: never, when: params.year < 0, tasklet: {sql: select 1}}
- step: copy
  chunk:
    reader: {csv: {path: in.csv, item: {id: int}}}
    processor: {filter: item.id > 0}
    writer: {csv: out.csv}
  expect: balanced
  next: {FAILED: {stop: {restart: both, message: look at in.csv}}, "*": last}
- {step: last, tasklet: {sql: select 1}}
finally:
- {step: tell, tasklet: {sql: select 1}}
`

func TestTheFlowOfAJobAndOfAnExecution(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s, ctx := newScene(t, url), t.Context()
		s.write("tour.yaml", flowJob)
		s.write("in.csv", "id\nbad\n")
		first := s.run("tour.yaml", map[string]string{"year": "1995"})
		require.Equal(t, core.StatusStopped, first.Status, first.Error)

		job, err := s.s.JobFlow(ctx, "tour", nil)
		require.NoError(t, err)
		s.matches("jobflow", job)
		flow, err := s.s.ExecutionFlow(ctx, first.ID)
		require.NoError(t, err)
		require.Equal(t, job.Flow, flow.Flow)
		require.NotNil(t, flow.Restart)

		s.write("in.csv", "id\n1\n")
		second := s.run("tour.yaml", map[string]string{"year": "1995"})
		require.Equal(t, core.StatusCompleted, second.Status, second.Error)
		flow, err = s.s.ExecutionFlow(ctx, second.ID)
		require.NoError(t, err)
		flow.Job.Flow, flow.Job.Finally = nil, nil
		s.matches("executionflow", flow)
	})
}
