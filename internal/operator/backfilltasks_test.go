package operator

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

const rangedJob = `job: ranged
parameters:
  day: {type: date}
  note: {type: string, default: plain, identifying: false}
  file: {type: path, default: in.csv, identifying: false}
  word: {type: string, secret: true}
incrementer: day
flow:
- step: book
  tasklet: {sql: "insert into booked values (${params.day})"}
- {step: check, tasklet: {sql: insert into checked values (1)}}
`

func ranged(from, to, only string, expect int) BackfillTasksRequest {
	return BackfillTasksRequest{
		BackfillRequest: BackfillRequest{RunRequest: RunRequest{Name: "ranged", Params: map[string]string{"note": "again"}}, Param: "day", From: from, To: to, Parallel: 3},
		Only:            only, Expect: expect,
	}
}

func effects(t *testing.T, s *scene, req BackfillTasksRequest) (list []string) {
	t.Helper()
	plan, err := s.s.PlanBackfill(t.Context(), req)
	require.NoError(t, err)
	for _, item := range plan.Items {
		list = append(list, fmt.Sprintf("%s %s %d", item.Value, item.Effect, item.Execution))
	}
	return list
}

// Rule OP17.
func TestABackfillByTasksRunsEachMissingValueOnce(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url)
		ctx := WithReason(ports.WithActor(t.Context(), "ada"), "ticket 7")
		s.e.Exec("create table booked (day varchar(10) primary key)")
		s.e.Exec("create table checked (n int)")
		s.write("ranged.yaml", rangedJob)
		path := filepath.Join(s.dir, "ranged.yaml")
		unknown := ranged("2026-11-02", "2026-11-08", "", 0)
		unknown.Name, unknown.File = "", path
		_, err := s.s.BackfillTasks(ctx, unknown)
		require.ErrorContains(t, err, "workers do not know job ranged")
		for _, day := range []string{"2026-11-02", "2026-11-04"} {
			require.Equal(t, core.StatusCompleted, s.run("ranged.yaml", map[string]string{"day": day}).Status)
		}
		s.e.Exec("drop table checked")
		failed := s.run("ranged.yaml", map[string]string{"day": "2026-11-05"})
		require.Equal(t, core.StatusFailed, failed.Status)
		s.e.Exec("create table checked (n int)")

		require.Equal(t, []string{"2026-11-02 left_out 1", "2026-11-03 new 0", "2026-11-04 left_out 2", "2026-11-05 resume 3", "2026-11-06 new 0", "2026-11-07 new 0", "2026-11-08 new 0"},
			effects(t, s, ranged("2026-11-02", "2026-11-08", OnlyAll, 0)))
		require.Equal(t, []string{"2026-11-04 left_out 2", "2026-11-05 left_out 3", "2026-11-06 new 0"}, effects(t, s, ranged("2026-11-04", "2026-11-06", OnlyMissing, 0)))
		require.Equal(t, []string{"2026-11-04 left_out 2", "2026-11-05 resume 3", "2026-11-06 left_out 0"}, effects(t, s, ranged("2026-11-04", "2026-11-06", OnlyFailed, 0)))

		var r *Refusal
		_, err = s.s.BackfillTasks(ctx, ranged("2026-11-02", "2026-11-08", "", 4))
		require.ErrorAs(t, err, &r)
		require.Equal(t, refusal.Moved, r.Reason)
		_, err = s.s.BackfillTasks(ctx, ranged("2026-11-04", "2026-11-04", "", 0))
		require.ErrorContains(t, err, "no instance of job ranged from 2026-11-04 to 2026-11-04 is left to run")
		_, err = s.s.PlanBackfill(ctx, ranged("2026-11-04", "2026-11-05", "some", 0))
		require.ErrorAs(t, err, new(*RequestError))
		_, err = s.s.PlanBackfill(ctx, ranged("2026-01-01", "2028-11-05", "", 0))
		require.ErrorContains(t, err, "more than 1000 values")
		secret := ranged("2026-11-03", "2026-11-05", "", 0)
		secret.Params = map[string]string{"word": "hush"}
		_, err = s.s.BackfillTasks(ctx, secret)
		require.ErrorContains(t, err, "the secret parameters word cannot be set by a task")
		outside := ranged("2026-11-03", "2026-11-05", "", 0)
		outside.Params = map[string]string{"file": "/etc/passwd"}
		_, err = s.s.PlanBackfill(WithClient(ctx, nil), outside)
		require.ErrorContains(t, err, "/etc/passwd")

		sub, err := s.s.BackfillTasks(ctx, ranged("2026-11-02", "2026-11-08", "", 5))
		require.NoError(t, err)
		require.Equal(t, 3, sub.Parallel)
		require.Equal(t, "back-fill of ranged by day from 2026-11-02 to 2026-11-08: 5 instances: ticket 7", sub.Title)
		require.Len(t, sub.Tasks, 5)
		require.True(t, IsAct(sub.Tasks[0].Payload))
		require.Equal(t, core.StatusCompleted, s.run("ranged.yaml", map[string]string{"day": "2026-11-07"}).Status, "meanwhile by hand")
		for i, spec := range slices.Backward(sub.Tasks) { // in any order, and each twice: the first reply was lost
			for range 2 {
				o, err := NewJobHandler(s.s, nil).Execute(ctx, task.Task{ID: task.ID(i + 1), GroupID: 3, Spec: spec})
				require.NoError(t, err)
				require.Equal(t, task.OutcomeSuccess, o.Kind, o.Reason)
			}
		}
		executions := s.executions()
		require.Len(t, executions, 8, "four, and four by tasks")
		for _, e := range executions[:4] {
			require.Positive(t, e.Task)
		}
		shown, err := s.s.Show(ctx, ShowRequest{Execution: executions[0].ID, Audit: true})
		require.NoError(t, err)
		require.Contains(t, shown.Audit[0].Detail, "for ada: group 3: back-fill of ranged by day")
		var n int
		require.NoError(t, s.e.Database.Conn().QueryRowContext(ctx, "select count(*) from booked").Scan(&n))
		require.Equal(t, 7, n)
		require.Equal(t, slices.Repeat([]string{"left_out"}, 7), states(t, s))

		// The incrementer counts no instance of a back-fill.
		choice, err := s.s.Choose(ctx, RunRequest{File: path, Next: true})
		require.NoError(t, err)
		day, _ := choice.Params.Get("day")
		require.Equal(t, "2026-11-09", day.Text())
	})
}

func states(t *testing.T, s *scene) (list []string) {
	t.Helper()
	plan, err := s.s.PlanBackfill(t.Context(), ranged("2026-11-02", "2026-11-08", OnlyAll, 0))
	require.NoError(t, err)
	for _, item := range plan.Items {
		require.Equal(t, core.StatusCompleted, item.Status)
		list = append(list, string(item.Effect))
	}
	return list
}

func TestTheDryRunOfABackfillSaysWhatIsRefused(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url)
		s.e.Exec("create table booked (day varchar(10))")
		s.write("ranged.yaml", rangedJob)
		failed := s.run("ranged.yaml", map[string]string{"day": "2026-11-02"})
		changed := s.run("ranged.yaml", map[string]string{"day": "2026-11-03"})
		require.Equal(t, core.StatusFailed, changed.Status)
		_, err := s.s.Abandon(t.Context(), failed.ID)
		require.NoError(t, err)
		plan, err := s.s.PlanBackfill(t.Context(), ranged("2026-11-02", "2026-11-04", OnlyAll, 0))
		require.NoError(t, err)
		require.Equal(t, 2, plan.Selected)
		require.Equal(t, refusal.Abandoned, plan.Items[0].Refused.Reason)
		text, err := json.Marshal(plan.Items[0])
		require.NoError(t, err)
		require.Contains(t, string(text), "abandoned")
		require.Equal(t, BackfillResume, plan.Items[1].Effect)
		s.write("ranged.yaml", strings.Replace(rangedJob, "step: book", "step: books", 1))
		req := ranged("2026-11-03", "2026-11-03", OnlyAll, 0)
		plan, err = s.s.PlanBackfill(t.Context(), req)
		require.NoError(t, err)
		require.Zero(t, plan.Selected)
		require.Equal(t, refusal.Changed, plan.Items[0].Refused.Reason)
		req.AcceptChanges = true
		require.Equal(t, []string{"2026-11-03 resume 2"}, effects(t, s, req))
	})
}
