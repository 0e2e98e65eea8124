package operator

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// againJob enters its split again if the check fails. load cannot do its work twice, and the check
// needs a table.
const againJob = `job: again
flow:
- split: both
  branches:
  - [{step: load, tasklet: {sql: insert into once values (1)}}]
  - [{step: other, tasklet: {sql: insert into often values (1)}}]
- {step: check, tasklet: {sql: insert into gate values (1)}, next: {FAILED: both, "*": end}}
`

func TestExplainAndARestartAgreeAboutASplitThatAFailureEnteredAgain(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s, ctx := newScene(t, url), t.Context()
		s.write("again.yaml", againJob)
		s.e.Exec("create table once (n int primary key)")
		s.e.Exec("create table often (n int)")
		exec := s.run("again.yaml", nil)
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Equal(t, []int64{2}, s.e.Ints("select count(*) from often"))

		s.e.Exec("create table gate (n int)")
		s.e.Exec("delete from once")
		explained, err := s.s.Explain(ctx, ExplainRequest{Execution: exec.ID})
		require.NoError(t, err)
		says := map[PlanAct][]string{}
		for _, e := range explained.Restart.Entries {
			if e.Certainty == Certain {
				says[e.Action] = append(says[e.Action], e.Step)
			}
		}
		require.Equal(t, map[PlanAct][]string{PlanResume: {"load"}, PlanPass: {"other"}}, says)

		running, err := s.s.Restart(ctx, RestartRequest{Execution: exec.ID})
		require.NoError(t, err)
		restarted, err := running.Wait()
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, restarted.Status, restarted.Error)
		steps, err := s.e.Repository.Steps(ctx, restarted.ID)
		require.NoError(t, err)
		var ran []string
		for _, step := range steps {
			ran = append(ran, step.Name)
		}
		slices.Sort(ran)
		require.Equal(t, []string{"check", "load"}, ran)
		require.Equal(t, []int64{1, 2}, append(s.e.Ints("select count(*) from once"), s.e.Ints("select count(*) from often")...))
	})
}
