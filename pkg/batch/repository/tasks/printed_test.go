package tasks_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

func TestTheFifthPrintedExampleDrivesATask(t *testing.T) {
	each(t, func(s *scene) {
		waiting := s.one(task.Spec{Type: "work", Payload: json.RawMessage(`{"data": "value"}`)}, task.Budget{MaxAttempts: 5})
		is := func(state task.State, attempts int) *task.Task {
			s.Helper()
			got, err := s.Task(s.Context(), waiting.ID)
			require.NoError(s, err)
			require.Equal(s, state, got.State)
			require.Equal(s, attempts, got.Attempts)
			return got
		}
		is(task.Pending, 0)
		first := s.claim(waiting, worker("a"))
		is(task.Running, 1)
		ended, err := s.End(s.Context(), first.Ref, task.Failure("Connection timeout"), func(task.Case) (string, task.Decision) {
			return "printed", task.Retry(2*time.Second, "again")
		})
		require.NoError(s, err)
		require.Equal(s, task.RetryScheduled, ended.State)
		scheduled := is(task.RetryScheduled, 1)
		require.Equal(s, "Connection timeout", scheduled.LastError)
		require.Positive(s, scheduled.NextRunAt.Sub(scheduled.UpdatedAt))
		_, err = s.db.Conn().ExecContext(s.Context(), "UPDATE surfin_task SET next_run_at = created_at")
		require.NoError(s, err)
		again := s.again()
		is(task.Pending, 1)
		second := s.claim(again, worker("a"))
		is(task.Running, 2)
		s.end(second.Ref, task.Success())
		require.True(s, is(task.Succeeded, 2).State.IsOver())
	})
}
