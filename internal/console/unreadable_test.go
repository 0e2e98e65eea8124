package console_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
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
