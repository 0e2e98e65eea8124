package tasks_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// Rule PU1.
func TestOldTasksArePurgedWithAllThatBelongsToThem(t *testing.T) {
	each(t, func(s *scene) {
		over, open := s.one(task.Spec{}, task.Budget{}), s.one(task.Spec{}, task.Budget{})
		s.end(s.claim(over, worker("a")).Ref, task.Success().WithArtifact(task.Stdout("hello\n")))
		n, err := s.PurgeTasks(s.Context(), time.Hour, 10, "me")
		require.NoError(s, err)
		require.Zero(s, n, "it is young")
		n, err = s.PurgeTasks(s.Context(), -time.Hour, 10, "me")
		require.NoError(s, err)
		require.Equal(s, 1, n)
		_, err = s.Task(s.Context(), over.ID)
		require.ErrorIs(s, err, core.ErrNotFound)
		require.Equal(s, task.Pending, s.state(open.ID))
		for table, rows := range map[string]int{"task_group": 1, "task": 1, "task_attempt": 0, "task_decision": 0, "task_log": 0} {
			var count int
			require.NoError(s, s.db.Conn().QueryRowContext(s.Context(), "SELECT count(*) FROM surfin_"+table).Scan(&count))
			require.Equal(s, rows, count, table)
		}
		var detail string
		require.NoError(s, s.db.Conn().QueryRowContext(s.Context(), "SELECT detail FROM surfin_task_audit WHERE act = 'purge' AND actor = 'me'").Scan(&detail))
		require.Regexp(s, `^group \d+$`, detail)
	})
}
