package console_test

import (
	"io"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// Rule OP15.
func TestUnreadableDataOfAnExecutionHidesNothingElse(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s, paths := filled(t, url)
		failed := s.run("fails", nil)
		db := testengine.New(t, url)
		good := s.run("load", map[string]string{"day": "2026-11-23"})
		running := s.run("load", map[string]string{"day": "2026-11-24"})
		for _, change := range []string{
			"UPDATE surfin_job_execution SET context = '{', confinement = 'x', definition_files = '[', owner = 'x y z' WHERE id <> " + text(good),
			"UPDATE surfin_step_execution SET context = '{', out = '{', before_counts = 'x', in_hand_counts = '{', owner = 'x' WHERE job_execution_id <> " + text(good),
			"UPDATE surfin_job_execution_param SET type = 'int' WHERE job_execution_id <> " + text(good),
		} {
			db.Exec(change)
		}
		db.Exec("UPDATE surfin_job_execution SET status = 'STARTED', active = 1, ended_at = NULL WHERE id = " + text(running))
		db.Exec("UPDATE surfin_step_execution SET status = 'STARTED', ended_at = NULL WHERE name = 'load' AND job_execution_id = " + text(running))
		bad := "/executions/" + text(failed)
		for _, path := range append(paths, bad, bad+"/timeline", bad+"/parts", "/executions?text=stored", "/executions?param=day:2026-11-22", "/executions/"+text(running)) {
			got := s.get(path)
			assert.Less(t, got.status, http.StatusInternalServerError, "%s\n%s", path, s.log)
		}
		s.get("/").is(http.StatusOK).clean().says(`href="/executions/`+text(good)+`"`, "load")
		s.get("/executions").is(http.StatusOK).clean().says(`href="/executions/`+text(good)+`"`, `href="`+bad+`"`, "the history has data that cannot be read")
		s.get(bad).is(http.StatusOK).clean().says("stored parameter text", "It cannot be restarted")
		s.get("/executions/" + text(running)).is(http.StatusOK).clean().says("the history has data that cannot be read")

		_, err := s.app.Service.Restart(t.Context(), operator.RestartRequest{Execution: failed})
		var refused *operator.Refusal
		require.ErrorAs(t, err, &refused)
		require.Equal(t, refusal.IllegalState, refused.Reason)
		require.ErrorContains(t, err, "stored parameter text")
		shown, err := s.app.Service.Show(t.Context(), operator.ShowRequest{Execution: good})
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, shown.Status)
		require.Empty(t, shown.Error)
		require.WithinDuration(t, time.Now(), shown.CreatedAt, time.Hour)
	})
}

// Rule OP15.
func TestUnreadableRowsStandInTheirListsWithTheReason(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s, paths := filled(t, url)
		s.write("in.csv", "id\nx\n2\ny\n")
		late := text(s.run("load", map[string]string{"day": "2026-11-23"}))
		for _, file := range []string{"daily.yaml", "load.yaml"} {
			_, err := s.app.Service.Register(t.Context(), operator.RegisterRequest{File: filepath.Join(s.dir, file)})
			require.NoError(t, err)
		}
		two, err := s.app.Tasks.Submit(t.Context(), task.Submission{Title: "two", Tasks: []task.Spec{{Type: "shell", Payload: raw(t, map[string]any{"command": "echo yy"})}}})
		require.NoError(t, err)
		db := testengine.New(t, url)
		for _, change := range []string{
			"UPDATE surfin_skipped_item SET raw = '{', item = '{' WHERE id IN (1, 2)",
			"UPDATE surfin_task SET spec = '{', payload = '{' WHERE group_id <> " + text64(int64(two.Group)),
			"UPDATE surfin_job_definition SET schedule = '{', budget = '[', definition_files = '{' WHERE name = 'daily'",
		} {
			db.Exec(change)
		}
		const why = "the history has data that cannot be read"
		for _, path := range append(paths, "/jobs/daily", "/jobs/daily/times", "/executions/"+late+"/redrive", "/tasks?type=shell") {
			got := s.get(path)
			assert.Less(t, got.status, http.StatusInternalServerError, "%s\n%s", path, s.log)
		}
		s.get("/executions/"+late+"/skips").is(http.StatusOK).clean().says(why, "<code>y</code>")
		s.get("/skips/2").is(http.StatusOK).clean().says(why, "is not an int")
		s.get("/tasks").is(http.StatusOK).clean().says(why, "/tasks/"+text64(int64(two.Tasks[0])))
		s.get("/schedules").is(http.StatusOK).clean().says(why, "load.yaml", "daily.yaml")
		s.get("/").is(http.StatusOK).clean().says(why)
		s.get("/jobs").is(http.StatusOK).clean().says(why)

		views, err := s.app.Service.Definitions(t.Context())
		require.NoError(t, err)
		require.Len(t, views, 2)
		require.Contains(t, views[0].Error, why)
		require.Empty(t, views[1].Error)
		n, err := s.app.Service.ExportSkips(t.Context(), operator.SkipsRequest{Execution: 1}, io.Discard)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		plan, err := s.app.Service.PlanRedrive(t.Context(), operator.RedrivePlanRequest{RedriveRequest: operator.RedriveRequest{Execution: 1}})
		require.NoError(t, err)
		require.Equal(t, 1, plan.Refused)
		require.Contains(t, plan.Items[0].Error, why)
		_, err = s.app.Service.Enable(t.Context(), "daily")
		require.ErrorContains(t, err, why)
	})
}
