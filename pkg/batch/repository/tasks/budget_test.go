package tasks_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

func (s *scene) group(n int, b task.Budget, decider string) (*task.Submitted, []taskports.Delivery) {
	s.Helper()
	specs := make([]task.Spec, n)
	for i := range specs {
		specs[i].Type = "work"
	}
	return s.submit(task.Submission{Tasks: specs, Budget: b, Decider: decider})
}

// tried claims a delivery and ends its attempt. It returns false if the claim ended the task.
func (s *scene) tried(d taskports.Delivery, o task.Outcome) bool {
	s.Helper()
	c, answer, err := s.Claim(s.Context(), d, worker("a"))
	require.NoError(s, err)
	require.Equal(s, core.Applied, answer)
	if c != nil {
		s.end(c.Ref, o)
	}
	return c != nil
}

func (s *scene) decisions(id task.ID) []taskports.DecisionRecord {
	s.Helper()
	list, err := s.Decisions(s.Context(), id)
	require.NoError(s, err)
	return list
}

func TestNothingIsBegunOfAGroupThatMakesNoProgress(t *testing.T) {
	each(t, func(s *scene) {
		done, waiting := s.group(30, task.Budget{MaxAttempts: 1, MaxNoProgress: 3}, "")
		for i, d := range waiting {
			require.Equal(s, i < 3, s.tried(d, task.Failure("x")), "task %d", i+1)
		}
		g, err := s.Group(s.Context(), done.Group)
		require.NoError(s, err)
		require.Equal(s, 30, g.Failed)
		last := s.decisions(done.Tasks[29])
		require.Len(s, last, 1)
		require.Equal(s, task.Spent{TotalAttempts: 3, NoProgress: 3}, last[0].Spent)
		require.Equal(s, "budget", last[0].Policy)
		failed, err := s.Task(s.Context(), done.Tasks[29])
		require.NoError(s, err)
		require.Contains(s, failed.LastError, "max_no_progress 3")
	})
}

func TestALateSuccessIsProgress(t *testing.T) {
	each(t, func(s *scene) {
		_, waiting := s.group(6, task.Budget{MaxAttempts: 1, MaxNoProgress: 2}, "")
		slow := s.claim(waiting[0], worker("slow"))
		require.True(s, s.tried(waiting[1], task.Failure("x")))
		require.True(s, s.tried(waiting[2], task.Failure("x")))
		require.False(s, s.tried(waiting[3], task.Failure("x")))
		s.end(slow.Ref, task.Success())
		require.True(s, s.tried(waiting[4], task.Failure("x")))
		require.True(s, s.tried(waiting[5], task.Success()))
	})
}

func TestARerunBeginsTheBudgetOfItsGroupAgain(t *testing.T) {
	each(t, func(s *scene) {
		for _, b := range []task.Budget{{MaxAttempts: 1, MaxTotalAttempts: 2}, {MaxAttempts: 1, MaxNoProgress: 2}} {
			done, waiting := s.group(3, b, "")
			for i, d := range waiting {
				require.Equal(s, i < 2, s.tried(d, task.Failure("x")))
			}
			answer, again, err := s.Rerun(s.Context(), done.Tasks[2], "me", "")
			require.NoError(s, err)
			require.Equal(s, core.Applied, answer)
			require.Len(s, again, 1)
			require.True(s, s.tried(again[0], task.Success()), "%+v", b)
			require.Equal(s, task.Succeeded, s.state(done.Tasks[2]))
		}
	})
}

func TestARerunWithdrawsTheCancellationOfItsGroup(t *testing.T) {
	each(t, func(s *scene) {
		done, waiting := s.group(2, task.Budget{MaxAttempts: 1}, "")
		require.True(s, s.tried(waiting[0], task.Failure("x")))
		_, err := s.CancelGroup(s.Context(), done.Group, "me", "")
		require.NoError(s, err)
		for _, id := range done.Tasks {
			_, again, err := s.Rerun(s.Context(), id, "me", "")
			require.NoError(s, err)
			g, err := s.Group(s.Context(), done.Group)
			require.NoError(s, err)
			require.Equal(s, task.GroupRunning, g.State)
			require.True(s, s.tried(again[0], task.Success()))
		}
		g, err := s.Group(s.Context(), done.Group)
		require.NoError(s, err)
		require.Equal(s, task.GroupCompleted, g.State)
	})
}

func TestADeciderSeesTheAttemptsOfAllTasksOfItsGroup(t *testing.T) {
	each(t, func(s *scene) {
		done, waiting := s.group(4, task.Budget{MaxAttempts: 1, Deadline: time.Hour}, "")
		for i, d := range waiting[:3] {
			require.True(s, s.tried(d, task.Failure("x")))
			got := s.decisions(done.Tasks[i])
			require.Len(s, got, 1)
			require.Equal(s, task.Spent{Attempts: 1, TotalAttempts: i + 1, NoProgress: i + 1}, got[0].Spent)
		}
		_, err := s.db.Conn().ExecContext(s.Context(), "UPDATE surfin_task SET deadline_at = created_at")
		require.NoError(s, err)
		n, err := s.ExpireDeadlines(s.Context(), 10)
		require.NoError(s, err)
		require.Equal(s, 1, n)
		require.Equal(s, task.Spent{TotalAttempts: 3, NoProgress: 3, Overdue: true}, s.decisions(done.Tasks[3])[0].Spent)
	})
}

func deciding(name string) taskports.Claimant {
	w := worker(name)
	w.Deciders = []string{"careful"}
	return w
}

func TestATaskIsLeftToAWorkerThatHasTheDeciderOfItsGroup(t *testing.T) {
	each(t, func(s *scene) {
		done, waiting := s.group(2, task.Budget{}, "careful")
		heartbeat := func(by taskports.Claimant) {
			_, err := s.Heartbeat(s.Context(), by, nil)
			require.NoError(s, err)
		}
		heartbeat(worker("a"))
		c, answer, err := s.Claim(s.Context(), waiting[0], worker("a"))
		lacks := &taskports.NoDeciderError{}
		require.ErrorAs(s, err, &lacks)
		require.Nil(s, c)
		require.Equal(s, core.Rejected, answer)
		require.Equal(s, task.Pending, s.state(done.Tasks[0]))
		due, err := s.Due(s.Context(), []string{"work"}, nil, 10)
		require.NoError(s, err)
		require.Empty(s, due)
		missing, err := s.WaitingDeciders(s.Context())
		require.NoError(s, err)
		require.Equal(s, []taskports.WaitingDecider{{Name: "careful", Tasks: 2}}, missing)

		heartbeat(deciding("b"))
		missing, err = s.WaitingDeciders(s.Context())
		require.NoError(s, err)
		require.Empty(s, missing)
		due, err = s.Due(s.Context(), []string{"work"}, []string{"careful"}, 10)
		require.NoError(s, err)
		require.Len(s, due, 2)
		s.claim(due[0], deciding("b"))
	})
}

func TestALostTaskIsLeftToAWorkerThatHasTheDeciderOfItsGroup(t *testing.T) {
	each(t, func(s *scene) {
		done, waiting := s.group(2, task.Budget{Deadline: time.Hour}, "careful")
		late := deciding("late")
		late.Lease = time.Millisecond
		s.claim(waiting[0], late)
		s.claim(waiting[1], late)
		confirmed := 0
		require.Eventually(s, func() bool {
			n, err := s.Confirm(s.Context(), 10)
			confirmed += n
			return err != nil || confirmed == 2
		}, 10*time.Second, time.Millisecond)
		reap := func(want int, deciders ...string) {
			s.Helper()
			n, err := s.Reap(s.Context(), 1, deciders, decide)
			require.NoError(s, err)
			require.Equal(s, want, n)
		}
		reap(0)
		require.Equal(s, task.Running, s.state(done.Tasks[0]))
		reap(1, "careful")
		require.Equal(s, task.RetryScheduled, s.state(done.Tasks[0]))
		_, err := s.db.Conn().ExecContext(s.Context(), "UPDATE surfin_task SET deadline_at = created_at WHERE id = "+s.db.Dialect().Placeholder(1), done.Tasks[1])
		require.NoError(s, err)
		reap(1)
		require.Equal(s, task.TimedOut, s.state(done.Tasks[1]))
	})
}
