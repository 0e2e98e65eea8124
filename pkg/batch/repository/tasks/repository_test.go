package tasks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/testdb"
	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/repository/tasks"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

type scene struct {
	*testing.T
	*tasks.Repository
	db tx.Database
}

func each(t *testing.T, f func(s *scene)) {
	t.Helper()
	t.Parallel()
	testdb.All(t, func(t *testing.T, url string) {
		provider, err := gormdb.Open(t.Context(), map[string]gormdb.Config{tx.Default: {URL: url}})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, provider.Close()) })
		db, err := provider.Database(tx.Default)
		require.NoError(t, err)
		require.NoError(t, repository.New(db, repository.Options{}).Migrate(t.Context()))
		repo, err := tasks.New(db, repository.DefaultPrefix, tasks.Options{})
		require.NoError(t, err)
		f(&scene{t, repo, db})
	})
}

func (s *scene) submit(sub task.Submission) (*task.Submitted, []taskports.Delivery) {
	s.Helper()
	done, waiting, err := s.Submit(s.Context(), sub)
	require.NoError(s, err)
	return done, waiting
}

func (s *scene) one(spec task.Spec, b task.Budget) taskports.Delivery {
	s.Helper()
	if spec.Type == "" {
		spec.Type = "work"
	}
	_, waiting := s.submit(task.Submission{Tasks: []task.Spec{spec}, Budget: b})
	return waiting[0]
}

func worker(name string) taskports.Claimant {
	return taskports.Claimant{Worker: name, Capacity: 2, Types: []string{"work"}, Lease: time.Minute}
}

func (s *scene) claim(d taskports.Delivery, by taskports.Claimant) *taskports.Claimed {
	s.Helper()
	c, answer, err := s.Claim(s.Context(), d, by)
	require.NoError(s, err)
	require.Equal(s, core.Applied, answer)
	require.NotNil(s, c)
	return c
}

func (s *scene) end(ref taskports.Ref, o task.Outcome) taskports.Ended {
	s.Helper()
	ended, err := s.End(s.Context(), ref, o, decide)
	require.NoError(s, err)
	return ended
}

func decide(c task.Case) (string, task.Decision) {
	return "backoff", task.Backoff{Base: time.Millisecond, Jitter: -1}.Decide(c)
}

func (s *scene) state(id task.ID) task.State {
	s.Helper()
	t, err := s.Task(s.Context(), id)
	require.NoError(s, err)
	return t.State
}

func (s *scene) again() taskports.Delivery {
	s.Helper()
	var waiting []taskports.Delivery
	require.Eventually(s, func() bool {
		var err error
		waiting, err = s.MakeDue(s.Context(), 10)
		return err != nil || len(waiting) > 0
	}, 10*time.Second, time.Millisecond)
	require.Len(s, waiting, 1)
	return waiting[0]
}

func TestATaskIsStoredClaimedAndEnded(t *testing.T) {
	each(t, func(s *scene) {
		spec := task.Spec{
			Type: "work", Payload: json.RawMessage(`{"n": 1}`), Title: "one", Hints: task.Hints{Goal: json.RawMessage(`{"x":[1]}`)}, Priority: 1, Timeout: 3 * time.Second,
		}
		done, waiting := s.submit(task.Submission{Title: "all", Tasks: []task.Spec{spec, {Type: "work"}}, Budget: task.Budget{MaxAttempts: 2, Deadline: time.Hour}})
		require.Len(s, done.Tasks, 2)
		require.Equal(s, taskports.Delivery{ID: done.Tasks[0], Epoch: 1, Type: "work", Priority: 1}, waiting[0])
		c := s.claim(waiting[0], worker("a"))
		require.Equal(s, spec, c.Task.Spec)
		require.Equal(s, task.Running, c.Task.State)
		require.Equal(s, []int{1, 1}, []int{c.Task.Attempt, c.Task.Attempts})
		require.InDelta(s, time.Hour, c.Deadline, float64(time.Minute))

		ended := s.end(c.Ref, task.Success().WithArtifact(task.Stdout("hello")).WithArtifact(task.JSON(json.RawMessage(`{"a":1}`))))
		require.Equal(s, taskports.Ended{Answer: core.Applied, State: task.Succeeded}, ended)
		require.Equal(s, core.Duplicate, s.end(c.Ref, task.Success()).Answer, "the reply was lost")
		_, err := s.End(s.Context(), c.Ref, task.Failure("no"), decide)
		require.Error(s, err)
		_, _, err = s.Rerun(s.Context(), done.Tasks[0], "me", "")
		require.Error(s, err, "a task that succeeded is not run again")

		attempts, err := s.Attempts(s.Context(), done.Tasks[0])
		require.NoError(s, err)
		require.Len(s, attempts, 1)
		require.Equal(s, taskports.AttemptSuccess, attempts[0].State)
		require.Equal(s, spec, attempts[0].Action)
		require.Equal(s, []task.Artifact{task.Stdout("hello"), task.JSON(json.RawMessage(`{"a":1}`))}, attempts[0].Outcome.Artifacts)
		g, err := s.Group(s.Context(), done.Group)
		require.NoError(s, err)
		require.Equal(s, task.GroupRunning, g.State)
		require.Equal(s, task.Budget{MaxAttempts: 2, Deadline: time.Hour, MaxNoProgress: 50}, g.Budget)
		_, err = s.Task(s.Context(), 999)
		require.ErrorIs(s, err, core.ErrNotFound)
	})
}

func TestATaskRunsOnceHoweverOftenItIsDelivered(t *testing.T) {
	each(t, func(s *scene) {
		d := s.one(task.Spec{}, task.Budget{})
		var mu sync.Mutex
		answers := map[core.Answer]int{}
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				c, answer, err := s.Claim(context.WithoutCancel(s.Context()), d, worker(fmt.Sprint(i)))
				mu.Lock()
				defer mu.Unlock()
				answers[answer]++
				if err != nil || (c != nil) != (answer == core.Applied) {
					s.Errorf("%v %v %v", c, answer, err)
				}
			})
		}
		wg.Wait()
		require.Equal(s, map[core.Answer]int{core.Applied: 1, core.Duplicate: 7}, answers)
	})
}

func TestAFailureIsTriedAgainUntilTheBudgetIsUsedUp(t *testing.T) {
	each(t, func(s *scene) {
		d := s.one(task.Spec{}, task.Budget{MaxAttempts: 3})
		for i := range 3 {
			c := s.claim(d, worker("a"))
			require.Equal(s, i+1, c.Task.Attempts)
			ended := s.end(c.Ref, task.Failure("broken"))
			if i == 2 {
				require.Equal(s, task.Failed, ended.State)
				break
			}
			require.Equal(s, task.RetryScheduled, ended.State)
			_, _, err := s.Claim(s.Context(), d, worker("b"))
			require.Error(s, err, "it is not due")
			old := d
			d = s.again()
			require.Equal(s, old.Epoch+1, d.Epoch)
			_, answer, err := s.Claim(s.Context(), old, worker("b"))
			require.ErrorIs(s, err, core.ErrLostOwner, "the old delivery")
			require.Equal(s, core.Rejected, answer)
		}
		got, err := s.Task(s.Context(), d.ID)
		require.NoError(s, err)
		require.Contains(s, got.LastError, "broken (it was tried 3 times (max_attempts 3))")
		decisions, err := s.Decisions(s.Context(), d.ID)
		require.NoError(s, err)
		require.Len(s, decisions, 3)
		require.True(s, decisions[2].Decision.Dead)
		require.Equal(s, "FAILURE", decisions[2].Trigger)
		require.Equal(s, "backoff", decisions[2].Policy)

		answer, waiting, err := s.Rerun(s.Context(), d.ID, "me", "fixed")
		require.NoError(s, err)
		require.Equal(s, core.Applied, answer)
		c := s.claim(waiting[0], worker("a"))
		require.Equal(s, 1, c.Task.Attempts)
		require.Equal(s, task.Succeeded, s.end(c.Ref, task.Success()).State)
		attempts, err := s.Attempts(s.Context(), d.ID)
		require.NoError(s, err)
		require.Len(s, attempts, 4, "the history is kept")
	})
}

func TestTheBudgetOfAGroupBoundsAllItsAttempts(t *testing.T) {
	each(t, func(s *scene) {
		specs := make([]task.Spec, 4)
		for i := range specs {
			specs[i].Type = "work"
		}
		done, waiting := s.submit(task.Submission{Tasks: specs, Budget: task.Budget{MaxTotalAttempts: 3}})
		for i, d := range waiting {
			c, answer, err := s.Claim(s.Context(), d, worker("a"))
			require.NoError(s, err)
			require.Equal(s, core.Applied, answer)
			require.Equal(s, i < 3, c != nil)
			if c != nil {
				want := task.RetryScheduled
				if i == 2 {
					want = task.Failed
				}
				require.Equal(s, want, s.end(c.Ref, task.Failure("x")).State)
			}
		}
		require.Equal(s, task.Failed, s.state(done.Tasks[3]))
	})
}

func TestAGroupWithoutProgressIsGivenUp(t *testing.T) {
	each(t, func(s *scene) {
		_, waiting := s.submit(task.Submission{Tasks: []task.Spec{{Type: "work"}, {Type: "work"}, {Type: "work"}}, Budget: task.Budget{MaxNoProgress: 2}})
		states := []task.State{}
		for i, d := range waiting {
			c := s.claim(d, worker("a"))
			o := task.Failure("x")
			if i == 1 {
				o = task.Success()
			}
			states = append(states, s.end(c.Ref, o).State)
		}
		require.Equal(s, []task.State{task.RetryScheduled, task.Succeeded, task.RetryScheduled}, states)
		d := s.again2()
		require.Equal(s, task.Failed, s.end(s.claim(d[0], worker("a")).Ref, task.Failure("x")).State)
	})
}

func (s *scene) again2() []taskports.Delivery {
	s.Helper()
	var all []taskports.Delivery
	require.Eventually(s, func() bool {
		waiting, err := s.MakeDue(s.Context(), 10)
		all = append(all, waiting...)
		return err != nil || len(all) == 2
	}, 10*time.Second, time.Millisecond)
	return all
}

func TestALostWorkersTaskIsTakenAndItsLateEndIsRejected(t *testing.T) {
	each(t, func(s *scene) {
		d := s.one(task.Spec{}, task.Budget{})
		late := worker("late")
		late.Lease = time.Millisecond
		c := s.claim(d, late)
		require.Eventually(s, func() bool { n, err := s.Confirm(s.Context(), 10); return err != nil || n == 1 }, 10*time.Second, time.Millisecond)
		got, err := s.Task(s.Context(), d.ID)
		require.NoError(s, err)
		require.Equal(s, task.Running, got.State, "nobody reassigns it")
		require.True(s, got.Confirming)

		lost, err := s.Heartbeat(s.Context(), late, []taskports.Ref{c.Ref}) // it confirms
		require.NoError(s, err)
		require.Empty(s, lost.Lost)
		n, err := s.Reap(s.Context(), 10, nil, decide)
		require.NoError(s, err)
		require.Zero(s, n)

		require.Eventually(s, func() bool { n, err := s.Confirm(s.Context(), 10); return err != nil || n == 1 }, 10*time.Second, time.Millisecond)
		n, err = s.Reap(s.Context(), 10, nil, decide)
		require.NoError(s, err)
		require.Equal(s, 1, n)
		lost, err = s.Heartbeat(s.Context(), late, []taskports.Ref{c.Ref})
		require.NoError(s, err)
		require.Len(s, lost.Lost, 1)
		require.ErrorIs(s, lost.Lost[0].Cause, core.ErrLostOwner)
		_, err = s.End(s.Context(), c.Ref, task.Success(), decide)
		require.ErrorIs(s, err, core.ErrLostOwner)

		again := s.claim(s.again(), worker("b"))
		require.Equal(s, task.Succeeded, s.end(again.Ref, task.Success()).State)
		attempts, err := s.Attempts(s.Context(), d.ID)
		require.NoError(s, err)
		require.Equal(s, []taskports.AttemptState{taskports.AttemptFailed, taskports.AttemptSuccess}, []taskports.AttemptState{attempts[0].State, attempts[1].State})
		require.Contains(s, attempts[0].Reason, "did not renew its lease")
	})
}

func TestACanceledTaskIsNotRunAgainBeforeItsWorkerLetsGo(t *testing.T) {
	each(t, func(s *scene) {
		d := s.one(task.Spec{}, task.Budget{})
		c := s.claim(d, worker("a"))
		answer, _, err := s.Cancel(s.Context(), d.ID, "me", "wrong file")
		require.NoError(s, err)
		require.Equal(s, core.Applied, answer)
		answer, _, err = s.Cancel(s.Context(), d.ID, "me", "again")
		require.NoError(s, err)
		require.Equal(s, core.Duplicate, answer)
		_, _, err = s.Rerun(s.Context(), d.ID, "me", "")
		require.ErrorContains(s, err, "its worker has not released it yet")
		lost, err := s.Heartbeat(s.Context(), worker("a"), []taskports.Ref{c.Ref})
		require.NoError(s, err)
		require.ErrorIs(s, lost.Lost[0].Cause, task.ErrCanceled)
		_, err = s.End(s.Context(), c.Ref, task.Failure("canceled"), decide)
		require.Error(s, err)
		require.Equal(s, task.Canceled, s.state(d.ID))
		answer, _, err = s.Rerun(s.Context(), d.ID, "me", "")
		require.NoError(s, err)
		require.Equal(s, core.Applied, answer)
	})
}

func TestACanceledGroup(t *testing.T) {
	each(t, func(s *scene) {
		done, waiting := s.submit(task.Submission{Tasks: []task.Spec{{Type: "work"}, {Type: "work"}, {Type: "work"}}})
		s.end(s.claim(waiting[0], worker("a")).Ref, task.Success())
		s.claim(waiting[1], worker("a"))
		answer, err := s.CancelGroup(s.Context(), done.Group, "me", "")
		require.NoError(s, err)
		require.Equal(s, core.Applied, answer)
		g, err := s.Group(s.Context(), done.Group)
		require.NoError(s, err)
		require.Equal(s, task.GroupCancelled, g.State)
		require.Equal(s, map[task.State]int{task.Succeeded: 1, task.Canceled: 2}, g.ByState)
		answer, err = s.CancelGroup(s.Context(), done.Group, "me", "")
		require.NoError(s, err)
		require.Equal(s, core.Duplicate, answer)

		other, waiting := s.submit(task.Submission{Tasks: []task.Spec{{Type: "work"}}})
		s.end(s.claim(waiting[0], worker("a")).Ref, task.Success())
		_, err = s.CancelGroup(s.Context(), other.Group, "me", "")
		over, ok := errors.AsType[*taskports.GroupOverError](err)
		require.True(s, ok, err)
		require.Equal(s, task.GroupCompleted, over.State)
		_, err = s.CancelGroup(s.Context(), 999, "me", "")
		require.ErrorIs(s, err, core.ErrNotFound)
	})
}

func TestASubmissionIsStoredOnceHoweverOftenItIsMade(t *testing.T) {
	each(t, func(s *scene) {
		sub := task.Submission{Tasks: []task.Spec{{Type: "work", Title: "x"}}, IdempotencyKey: "k"}
		ids := make([]*task.Submitted, 6)
		var wg sync.WaitGroup
		for i := range ids {
			wg.Go(func() {
				done, _, err := s.Submit(context.WithoutCancel(s.Context()), sub)
				if err != nil {
					s.Error(err)
				}
				ids[i] = done
			})
		}
		wg.Wait()
		fresh := 0
		for _, done := range ids {
			require.Equal(s, ids[0].Tasks, done.Tasks)
			if !done.Duplicate {
				fresh++
			}
		}
		require.Equal(s, 1, fresh)
		sub.Tasks[0].Title = "y"
		_, _, err := s.Submit(s.Context(), sub)
		require.ErrorIs(s, err, taskports.ErrOtherSubmission)

		keyed := task.Submission{Tasks: []task.Spec{{Type: "work", IdempotencyKey: "t"}}}
		first, _ := s.submit(keyed)
		second, waiting := s.submit(keyed)
		require.Equal(s, first.Tasks, second.Tasks)
		require.True(s, second.Duplicate)
		require.Empty(s, waiting)
		keyed.Tasks = append(keyed.Tasks, task.Spec{Type: "work"})
		_, _, err = s.Submit(s.Context(), keyed)
		require.ErrorIs(s, err, taskports.ErrOtherSubmission)
	})
}

func TestADeadlineEndsWhatNobodyExecutes(t *testing.T) {
	each(t, func(s *scene) {
		done, waiting := s.submit(task.Submission{Tasks: []task.Spec{{Type: "work"}, {Type: "work"}}, Budget: task.Budget{Deadline: 300 * time.Millisecond}})
		c := s.claim(waiting[0], worker("a"))
		require.Eventually(s, func() bool { n, err := s.ExpireDeadlines(s.Context(), 10); return err != nil || n == 1 }, 10*time.Second, 10*time.Millisecond)
		require.Equal(s, task.TimedOut, s.state(done.Tasks[1]))
		require.Equal(s, task.TimedOut, s.end(c.Ref, task.Failure("too late")).State)
		_, _, err := s.Claim(s.Context(), waiting[1], worker("a"))
		require.Error(s, err)
	})
}

func TestALostDeliveryIsMadeAgain(t *testing.T) {
	each(t, func(s *scene) {
		d := s.one(task.Spec{}, task.Budget{})
		waiting, err := s.Waiting(s.Context(), 0, 10)
		require.NoError(s, err)
		require.Equal(s, []taskports.Delivery{d}, waiting)
		again, err := s.Redeliver(s.Context(), waiting)
		require.NoError(s, err)
		require.EqualValues(s, 2, again[0].Epoch)
		none, err := s.Redeliver(s.Context(), waiting)
		require.NoError(s, err)
		require.Empty(s, none)
		_, _, err = s.Claim(s.Context(), d, worker("a"))
		require.ErrorIs(s, err, core.ErrLostOwner, "the old delivery comes late")
		due, err := s.Due(s.Context(), []string{"work"}, nil, 10)
		require.NoError(s, err)
		require.Equal(s, again, due)
	})
}

func TestADelayedTaskIsNotDueBefore(t *testing.T) {
	each(t, func(s *scene) {
		d := s.one(task.Spec{Delay: time.Hour}, task.Budget{})
		require.False(s, d.NotBefore.IsZero())
		due, err := s.Due(s.Context(), []string{"work"}, nil, 10)
		require.NoError(s, err)
		require.Empty(s, due)
		_, _, err = s.Claim(s.Context(), d, worker("a"))
		require.ErrorContains(s, err, "it is not due yet")
	})
}

func TestAClaimWhoseAnswerWasLostIsAskedAgain(t *testing.T) {
	each(t, func(s *scene) {
		d := s.one(task.Spec{}, task.Budget{})
		first := s.claim(d, worker("a"))
		again, answer, err := s.Claim(s.Context(), d, worker("a"))
		require.NoError(s, err)
		require.Equal(s, core.Duplicate, answer)
		require.Equal(s, first.Ref, again.Ref)
		require.Equal(s, first.Task.Spec, again.Task.Spec)
		other, answer, err := s.Claim(s.Context(), d, worker("b"))
		require.NoError(s, err)
		require.Equal(s, core.Duplicate, answer)
		require.Nil(s, other)
		s.end(first.Ref, task.Success())
		over, _, _ := s.Claim(s.Context(), d, worker("a")) //nolint:errcheck // refused or a duplicate
		require.Nil(s, over)
	})
}
