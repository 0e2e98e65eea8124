package tasks_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func dead(c task.Case) (string, task.Decision) { return "never", task.Retry(0, "again").Within(c) }

// Rule TS5.
func TestAGroupThatIsContinuedHasItsBudgetAnew(t *testing.T) {
	each(t, func(s *scene) {
		group, waiting := s.submit(task.Submission{
			Type: "work", Tasks: []task.Spec{{Type: "work"}}, Budget: task.Budget{MaxAttempts: 9, MaxTotalAttempts: 1, MaxNoProgress: 2, Deadline: time.Hour},
		})
		fails := func(d taskports.Delivery) {
			s.Helper()
			ended, err := s.End(s.Context(), s.claim(d, worker("a")).Ref, task.Failure("no"), dead)
			require.NoError(s, err)
			require.Equal(s, task.Failed, ended.State)
		}
		fails(waiting[0])
		for range 3 {
			ds, err := s.Continue(s.Context(), group.Group, 77, "me", "restarted")
			require.NoError(s, err)
			fails(ds[0])
		}

		_, err := s.db.Conn().ExecContext(s.Context(), "UPDATE surfin_task SET deadline_at = created_at")
		require.NoError(s, err)
		ds, err := s.Continue(s.Context(), group.Group, 77, "me", "restarted")
		require.NoError(s, err)
		claimed := s.claim(ds[0], worker("a"))
		require.InDelta(s, time.Hour, claimed.Deadline, float64(10*time.Minute), "it is counted from the restart")
	})
}

// Groups are locked before tasks: a claim in a group that bounds all attempts
// waits for the cancellation of the group, and finds it.
func TestAClaimAndTheCancellationOfItsGroupDoNotBlockEachOther(t *testing.T) {
	each(t, func(s *scene) {
		if s.db.Dialect() != tx.Postgres {
			return // it has one writer
		}
		group, waiting := s.submit(task.Submission{Type: "work", Tasks: []task.Spec{{Type: "work"}}, Budget: task.Budget{MaxTotalAttempts: 5}})
		claimed := make(chan error, 1)
		err := tx.NewManager(s.db).Do(s.Context(), tx.Attr{}, func(ctx context.Context) error {
			if _, err := tx.ConnOf(ctx, s.db).ExecContext(ctx, "SELECT id FROM surfin_task_group FOR UPDATE"); err != nil {
				return err
			}
			go func() {
				_, _, err := s.Claim(context.WithoutCancel(t.Context()), waiting[0], worker("a"))
				claimed <- err
			}()
			require.Eventually(s, func() bool { return s.isBlocked() }, time.Minute, 5*time.Millisecond)
			_, err := s.CancelGroup(ctx, group.Group, "me", "no more")
			return err
		})
		require.NoError(s, err)
		require.ErrorAs(s, <-claimed, new(*core.TransitionError))
	})
}
