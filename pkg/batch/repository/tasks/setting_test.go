package tasks_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/logfolder"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/repository/tasks"
)

func TestSettingsAreCheckedAndKept(t *testing.T) {
	each(t, func(s *scene) {
		list, err := s.Settings.Settings(s.Context())
		require.NoError(s, err)
		require.Equal(s, taskports.DefaultSettings(), list)
		set := func(value, actor string, want core.Answer) {
			got, err := s.Set(s.Context(), taskports.LogRetention, value, actor)
			require.NoError(s, err)
			require.Equal(s, want, got)
		}
		set("0", "me", core.Duplicate)
		set("7", "me", core.Applied)
		set("8", "you", core.Applied)
		set("8", "me", core.Duplicate)
		list, err = s.Settings.Settings(s.Context())
		require.NoError(s, err)
		require.Equal(s, 8, taskports.SettingIn(list, taskports.LogRetention))
		require.Equal(s, 30, taskports.SettingIn(list, taskports.ReassignAfter))
		var audited int
		require.NoError(s, s.db.Conn().QueryRowContext(s.Context(), "SELECT count(*) FROM surfin_task_audit WHERE act = 'set' AND actor IN ('me', 'you')").Scan(&audited))
		require.Equal(s, 2, audited)
		_, err = s.Set(s.Context(), "colour", "red", "me")
		require.ErrorContains(s, err, `"colour" (known: ["audit_retention_days" "continuation_grace"`)
		_, err = s.Set(s.Context(), taskports.LogRetention, "-1", "me")
		require.ErrorIs(s, err, taskports.ErrSetting)
	})
}

func TestTheContinuationGraceIsHonoured(t *testing.T) {
	each(t, func(s *scene) {
		set := func(seconds string) {
			s.Helper()
			_, err := s.Set(s.Context(), taskports.ContinuationGrace, seconds, "me")
			require.NoError(s, err)
		}
		late := worker("late")
		late.Lease = time.Millisecond
		set("3600")
		c := s.claim(s.one(task.Spec{}, task.Budget{}), late)
		set("0")
		confirmed, err := s.Heartbeat(s.Context(), late, []taskports.Ref{c.Ref}) // the worker may not have received the reply
		require.NoError(s, err)
		require.Equal(s, taskports.Confirmed{}, confirmed)
		require.Eventually(s, func() bool { n, err := s.Confirm(s.Context(), 10); return err != nil || n == 1 }, 10*time.Second, time.Millisecond)
		n, err := s.Reap(s.Context(), 10, nil, decide)
		require.NoError(s, err)
		require.Zero(s, n)
		require.Equal(s, task.Running, s.state(c.Task.ID))

		set("1")
		confirmed, err = s.Heartbeat(s.Context(), late, nil)
		require.NoError(s, err)
		require.Equal(s, taskports.Confirmed{Grace: time.Second}, confirmed)
		other := s.claim(s.one(task.Spec{}, task.Budget{}), late)
		require.Eventually(s, func() bool {
			_, err := s.Confirm(s.Context(), 10)
			require.NoError(s, err)
			n, err := s.Reap(s.Context(), 10, nil, decide)
			return err != nil || n == 1
		}, 10*time.Second, 5*time.Millisecond)
		reaped, err := s.Task(s.Context(), other.Task.ID)
		require.NoError(s, err)
		require.GreaterOrEqual(s, reaped.UpdatedAt.Sub(other.Task.UpdatedAt), time.Second)
	})
}

func TestOldLogTextMovesToFilesAndIsStillRead(t *testing.T) {
	each(t, func(s *scene) {
		d := s.one(task.Spec{}, task.Budget{})
		s.end(s.claim(d, worker("a")).Ref, task.Success().WithArtifact(task.URL("https://x.y")).WithArtifact(task.Stdout("hello\n")))
		folder := logfolder.New(filepath.Join(s.TempDir(), "logs"))
		n, err := s.MoveLogs(s.Context(), folder, time.Hour, 10)
		require.NoError(s, err)
		require.Zero(s, n, "it is young")
		for range 2 { // a process that is killed in between writes the file again
			require.Eventually(s, func() bool { n, err = s.MoveLogs(s.Context(), folder, 0, 10); return err != nil || n == 1 }, 10*time.Second, time.Millisecond)
			require.NoError(s, err)
			_, err = s.db.Conn().ExecContext(s.Context(), "UPDATE surfin_task_log SET body = 'hello\n' WHERE body IS NULL")
			require.NoError(s, err)
		}
		n, err = s.MoveLogs(s.Context(), folder, -time.Hour, 10)
		require.NoError(s, err)
		require.Equal(s, 1, n)
		text := func(store taskports.LogStore) string {
			r, err := tasks.New(s.db, repository.DefaultPrefix, tasks.Options{Logs: store})
			require.NoError(s, err)
			attempts, err := r.Attempts(s.Context(), d.ID)
			require.NoError(s, err)
			return attempts[0].Outcome.Artifacts[1].Text
		}
		require.Equal(s, "hello\n", text(folder))
		require.Contains(s, text(nil), "(moved to attempt-")
		require.Contains(s, text(logfolder.New(s.TempDir())), "which cannot be read here")
	})
}
