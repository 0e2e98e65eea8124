package operator

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job/journal"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const fromJob = `job: from
parameters: {input: {type: path}}
flow:
- {step: prepare, tasklet: {sql: insert into log values ('prepare')}}
- step: load
  chunk:
    size: 2
    reader: {csv: {path: "${params.input}", item: {id: int}}}
    writer: {table: {name: rows, create: true}}
- {step: note, tasklet: {sql: "insert into log values ('note')"}, when: steps.load.written > 0}
- {step: gate, tasklet: {sql: insert into gate values (1)}}
`

func (s *scene) did(plan []PlanEntry, id core.JobExecutionID) (planned, ran []string) {
	for _, e := range plan {
		if e.Action != PlanPass {
			planned = append(planned, e.Step)
		}
	}
	steps, err := s.e.Repository.Steps(s.t.Context(), id)
	require.NoError(s.t, err)
	for _, step := range steps {
		ran = append(ran, step.Name)
	}
	return planned, ran
}

func (s *scene) restart(req RestartRequest) *Execution {
	s.t.Helper()
	running, err := s.s.Restart(s.t.Context(), req)
	require.NoError(s.t, err)
	e, err := running.Wait()
	require.NoError(s.t, err)
	return e
}

func TestARestartFromAStepDoesWhatItsDryRunSays(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s, ctx := newScene(t, url), t.Context()
		s.e.Exec("create table log (step varchar(20))")
		s.write("from.yaml", fromJob)
		s.write("in.csv", numberedLines(5))
		first := s.run("from.yaml", map[string]string{"input": "in.csv"})
		require.Equal(t, core.StatusFailed, first.Status)
		s.write("in.csv", numberedLines(6, 4)) // a wrong input: the restart reads the corrected one from its start
		s.e.Exec("delete from rows")

		dry, err := s.s.Plan(ctx, PlanRequest{Execution: first.ID, From: "load"})
		require.NoError(t, err)
		require.Equal(t, []int{5, 1}, []int{dry.Steps[1].Read, dry.Steps[1].Failed}, "the items from the first one on")
		entries := make([]PlanEntry, len(dry.Steps))
		for i, step := range dry.Steps {
			entries[i] = step.PlanEntry
		}
		require.Equal(t, PlanPass, entries[0].Action)
		second := s.restart(RestartRequest{Execution: first.ID, From: "load"})
		require.Equal(t, core.StatusFailed, second.Status)
		planned, ran := s.did(entries[:2], second.ID)
		require.Equal(t, planned, ran)
		require.Equal(t, []int64{2}, s.e.Ints("select count(*) from rows"), "the first chunk is committed")

		s.write("in.csv", numberedLines(6))
		explained, err := s.s.Explain(ctx, ExplainRequest{Execution: second.ID})
		require.NoError(t, err)
		require.Equal(t, []PlanAct{PlanPass, PlanResume}, []PlanAct{explained.Restart.Entries[0].Action, explained.Restart.Entries[1].Action})
		s.e.Exec("create table gate (n int)")
		third := s.restart(RestartRequest{Execution: second.ID, AcceptChanges: true})
		require.Equal(t, core.StatusCompleted, third.Status, third.Error)
		_, ran = s.did(nil, third.ID)
		require.Equal(t, []string{"load", "note", "gate"}, ran)
		require.Equal(t, []int64{6}, s.e.Ints("select count(*) from rows"))
		require.Equal(t, []int64{1, 2}, s.e.Ints("select count(*) from log group by step order by step desc"), "prepare once, note twice")
	})
}

func TestARestartFromAStepOfAnExecutionThatCompleted(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s, ctx := newScene(t, url), t.Context()
		s.e.Exec("create table log (step varchar(20))")
		s.e.Exec("create table gate (n int)")
		s.write("from.yaml", fromJob)
		s.write("in.csv", numberedLines(2))
		exec := s.run("from.yaml", map[string]string{"input": "in.csv"})
		require.Equal(t, core.StatusCompleted, exec.Status)

		var refused *Refusal
		_, err := s.s.Restart(ctx, RestartRequest{Execution: exec.ID, From: "note"})
		require.ErrorAs(t, err, &refused)
		require.Equal(t, refusal.Complete, refused.Reason)
		require.Contains(t, refused.Actions, Action{Kind: refusal.ActRestart, Execution: exec.ID, Status: exec.Status, From: "note", IfComplete: true})
		_, err = s.s.Plan(ctx, PlanRequest{Execution: exec.ID, From: "note"})
		require.ErrorAs(t, err, &refused)
		require.Equal(t, refusal.Complete, refused.Reason, "a dry run is refused as the restart is")

		s.write("from.yaml", fromJob+"- {step: new, tasklet: {sql: insert into gate values (2)}}\n")
		_, err = s.s.Plan(ctx, PlanRequest{Execution: exec.ID, From: "note", IfComplete: true})
		require.NoError(t, err)
		again := s.restart(RestartRequest{Execution: exec.ID, From: "note", IfComplete: true})
		require.Equal(t, core.StatusCompleted, again.Status, again.Error)
		require.Equal(t, exec.InstanceID, again.InstanceID)
		_, ran := s.did(nil, again.ID)
		require.Equal(t, []string{"note", "gate", "new"}, ran)
	})
}

func TestARestartFromAStepIsRefused(t *testing.T) {
	t.Parallel()
	s, ctx := newScene(t, testdb.SQLite(t)), t.Context()
	s.write("from.yaml", fromJob)
	s.write("in.csv", numberedLines(2))
	exec := s.run("from.yaml", map[string]string{"input": "in.csv"}) // the table log does not exist
	for element, want := range map[string]string{
		"laod": "job from has no step or element laod (did you mean load?): it has prepare (DIR/from.yaml:4:3), load (DIR/from.yaml:5:3), note (DIR/from.yaml:10:3), gate (DIR/from.yaml:11:3); ",
		"gate": "no attempt that counts has reached gate: a plain restart reaches it by itself; a restart can begin at prepare (DIR/from.yaml:4:3)",
	} {
		_, err := s.s.Restart(ctx, RestartRequest{Execution: exec.ID, From: element})
		var refused *Refusal
		require.ErrorAs(t, err, &refused)
		require.Equal(t, refusal.From, refused.Reason)
		require.ErrorIs(t, err, journal.ErrNotFrom)
		require.Contains(t, strings.ReplaceAll(err.Error(), s.dir, "DIR"), want)
		_, err = json.Marshal(refused)
		require.NoError(t, err)
	}
	for field, req := range map[string]RestartRequest{
		"if_complete": {Execution: exec.ID, IfComplete: true},
		"from":        {Execution: exec.ID, From: "prepare", FromStart: true},
	} {
		_, err := s.s.Restart(ctx, req)
		var wrong *RequestError
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, field, wrong.Field)
	}
	_, err := s.s.Plan(ctx, PlanRequest{File: s.dir + "/from.yaml", From: "load"})
	require.ErrorAs(t, err, new(*RequestError))
	_, err = s.s.Plan(ctx, PlanRequest{Execution: 99, From: "load"})
	var refused *Refusal
	require.ErrorAs(t, err, &refused)
	require.Equal(t, refusal.NotFound, refused.Reason)
	require.Len(t, s.executions(), 1)
}

func TestADryRunOfARestartReadsOnAfterTheLastCommit(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s, ctx := newScene(t, url), t.Context()
		s.e.Exec("create table log (step varchar(20))")
		s.write("from.yaml", fromJob)
		s.write("in.csv", numberedLines(6, 4))
		failed := s.run("from.yaml", map[string]string{"input": "in.csv"})
		require.Equal(t, core.StatusFailed, failed.Status)
		plan := func(accept bool) *DryStep {
			dry, err := s.s.Plan(ctx, PlanRequest{Execution: failed.ID, AcceptChanges: accept})
			require.NoError(t, err)
			require.Equal(t, dry.Steps[1].WouldFail(), dry.Fails)
			return dry.Steps[1]
		}
		as := plan(false)
		require.Equal(t, []any{true, 3, 1, "3"}, []any{as.Resumed, as.Read, as.Failed, string(as.Items[0].Read)[6:7]})

		s.write("in.csv", numberedLines(6))
		refused := plan(false).Error
		require.Contains(t, refused, "in.csv changed since it was read: it shrank")
		accepted := plan(true)
		require.Equal(t, []any{true, 4, 0, ""}, []any{accepted.Resumed, accepted.Read, accepted.Failed, accepted.Error})
		again := s.restart(RestartRequest{Execution: failed.ID})
		require.Contains(t, again.Error, refused, "the restart says so, too")
	})
}
