package operator

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

func TestABulkDoesItsActOnEachExecutionOnce(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s, ctx := newScene(t, url), WithReason(ports.WithActor(t.Context(), "ada"), "ticket 7")
		s.e.Exec("create table loaded (id int)")
		s.write("load.yaml", "job: load\nflow:\n- step: load\n  chunk: {size: 2, skip: {limit: 5}, reader: {csv: {path: in.csv, item: {id: int}}}, writer: {table: loaded}}\n- {step: check, tasklet: {sql: select n from gate}}\n")
		s.write("in.csv", numberedLines(4, 2))
		failed := s.run("load.yaml", nil)
		require.Equal(t, core.StatusFailed, failed.Status)
		running, err := s.e.Repository.Launch(ctx, ports.LaunchRequest{JobName: "other", Restartable: true, Lease: time.Hour, Owner: core.Owner{Host: "elsewhere", PID: 7}})
		require.NoError(t, err)
		id := running.Execution.ID
		// do executes the tasks of a bulk twice: the first reply was lost.
		next := task.ID(0)
		do := func(req BulkRequest) (all []task.Outcome) {
			t.Helper()
			sub, err := s.s.Bulk(ctx, req)
			require.NoError(t, err)
			require.Len(t, sub.Tasks, req.Expect)
			for _, spec := range sub.Tasks {
				next++
				_, err := NewJobHandler(s.s, nil).Execute(ctx, task.Task{ID: next, GroupID: 3, Spec: spec})
				require.NoError(t, err)
				o, err := NewJobHandler(s.s, nil).Execute(ctx, task.Task{ID: next, GroupID: 3, Spec: spec})
				require.NoError(t, err)
				all = append(all, o)
			}
			return all
		}
		planned := func(act string) []BulkItem {
			t.Helper()
			plan, err := s.s.PlanBulk(ctx, BulkRequest{Act: act, Executions: []core.JobExecutionID{id, failed.ID}, Expect: 2}, 0)
			require.NoError(t, err)
			require.Equal(t, 2, plan.Selected)
			require.Len(t, plan.Items, 2)
			return plan.Items
		}
		s.e.Exec("create table gate (n int)")
		items := planned(ports.VerbRestart)
		require.Equal(t, BulkItem{Execution: failed.ID, JobName: "load", Status: core.StatusFailed, Epoch: 1, Steps: []BulkStep{{"check", PlanResume}}}, items[0])
		require.NotNil(t, items[1].Refused)
		items = planned(ports.VerbStop)
		require.Equal(t, refusal.Over, items[0].Refused.Reason)
		require.Nil(t, items[1].Refused)
		items = planned(ports.VerbAbandon)
		require.Nil(t, items[0].Refused)
		require.Equal(t, refusal.IllegalState, items[1].Refused.Reason)
		items = planned(ports.VerbRedrive)
		require.Equal(t, []BulkStep{{"load", PlanRun}}, items[0].Steps)

		o := do(BulkRequest{Act: ports.VerbRestart, Filter: &ListRequest{Statuses: []core.Status{core.StatusFailed}}, Expect: 1})
		require.Equal(t, task.OutcomeSuccess, o[0].Kind, o[0].Reason)
		o = do(BulkRequest{Act: ports.VerbStop, Executions: []core.JobExecutionID{id}, Expect: 1})
		require.Equal(t, task.OutcomeSuccess, o[0].Kind, o[0].Reason)
		o = do(BulkRequest{Act: ports.VerbAbandon, Executions: []core.JobExecutionID{id, failed.ID}, Expect: 2})
		require.Contains(t, o[0].Reason, "a later execution")
		require.True(t, o[0].Fatal)
		require.Equal(t, task.OutcomeSuccess, o[1].Kind, o[1].Reason)
		acts, err := s.e.Repository.Executions(ctx, ports.ExecutionFilter{})
		require.NoError(t, err)
		require.Len(t, acts, 3, "one restart")
		shown, err := s.s.Show(ctx, ShowRequest{Execution: acts[0].ID, Audit: true})
		require.NoError(t, err)
		require.Equal(t, "for ada: group 3: restart of 1 execution: ticket 7", shown.Audit[0].Detail)

		_, err = s.s.Bulk(ctx, BulkRequest{Act: ports.VerbStop, Filter: &ListRequest{Job: "load"}, Expect: 3})
		var r *Refusal
		require.ErrorAs(t, err, &r)
		require.Equal(t, refusal.Moved, r.Reason)
		for _, wrong := range []BulkRequest{{Act: "run", Executions: []core.JobExecutionID{1}}, {Act: ports.VerbStop}, {Act: ports.VerbStop, Filter: &ListRequest{}}, {Act: ports.VerbStop, Filter: &ListRequest{Job: "load", Limit: 3}}} {
			_, err = s.s.Bulk(ctx, wrong)
			require.ErrorAs(t, err, new(*RequestError))
		}
		_, err = s.s.Bulk(ctx, BulkRequest{Act: ports.VerbStop, Executions: []core.JobExecutionID{1, 99}})
		require.ErrorAs(t, err, &r)
		require.Equal(t, refusal.NotFound, r.Reason)
	})
}
