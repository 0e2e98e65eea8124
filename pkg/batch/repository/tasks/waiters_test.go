package tasks_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type told struct {
	mu  sync.Mutex
	ids []core.JobExecutionID
}

func (r *told) Announce(_ context.Context, list ...ports.Ready) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, ready := range list {
		r.ids = append(r.ids, ready.Execution)
	}
	return nil
}

func (s *scene) parkedFor(executions *repository.Repository, sub task.Submission) (core.JobExecutionID, []taskports.Delivery) {
	s.Helper()
	ref, waiting := s.startedFor(executions, sub)
	_, err := executions.Park(s.Context(), ref, ports.Parking{})
	require.NoError(s, err)
	return ref.ID, waiting
}

func (s *scene) startedFor(executions *repository.Repository, sub task.Submission) (ports.JobRef, []taskports.Delivery) {
	s.Helper()
	owner := core.Owner{Host: "h", PID: 1}
	launched, err := executions.Launch(s.Context(), ports.LaunchRequest{JobName: "waits", Restartable: true, Owner: owner, Lease: time.Hour})
	require.NoError(s, err)
	ref := ports.JobRef{ID: launched.Execution.ID, Owner: owner, Epoch: launched.Execution.Epoch}
	_, err = executions.ChangeJob(s.Context(), ref, ports.JobChange{To: core.StatusStarted})
	require.NoError(s, err)
	step, err := executions.StartStep(s.Context(), ref, ports.StepStart{Name: "work"})
	require.NoError(s, err)
	sub.Step = step.ID
	_, waiting := s.submit(sub)
	return ref, waiting
}

func (s *scene) isBlocked() (blocked bool) {
	s.Helper()
	err := s.db.Conn().QueryRowContext(s.Context(), "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&blocked)
	require.NoError(s, err)
	return blocked
}

// Rule TS3.
func TestTheLastTaskOfAStepMakesItsExecutionResumable(t *testing.T) {
	each(t, func(s *scene) {
		announced := &told{}
		executions := repository.New(s.db, repository.Options{Announcer: announced})
		s.SetWaiters(executions)
		id, waiting := s.parkedFor(executions, task.Submission{Type: "work", Tasks: []task.Spec{{Type: "work"}, {Type: "work"}}})
		first, second := s.claim(waiting[0], worker("a")), s.claim(waiting[1], worker("b"))
		ended := make(chan error, 1)
		err := tx.NewManager(s.db).Do(s.Context(), tx.Attr{}, func(ctx context.Context) error {
			_, err := s.End(ctx, first.Ref, task.Success(), decide)
			go func() {
				_, err := s.End(context.WithoutCancel(t.Context()), second.Ref, task.Failure("no"), func(task.Case) (string, task.Decision) { return "never", task.MarkDead("no") })
				ended <- err
			}()
			if s.db.Dialect() == tx.Postgres {
				require.Eventually(s, func() bool { return s.isBlocked() }, time.Minute, 5*time.Millisecond, "the second waits for what the first has locked")
			}
			return err
		})
		require.NoError(s, err)
		require.NoError(s, <-ended)
		require.Equal(s, []core.JobExecutionID{id}, announced.ids)
		list, err := executions.Resumable(s.Context(), "", 10, nil)
		require.NoError(s, err)
		require.Equal(s, []core.JobExecutionID{id}, list)
		_, err = executions.Resume(s.Context(), id, ports.ResumeRequest{Owner: core.Owner{Host: "h", PID: 2}, Lease: time.Hour})
		require.NoError(s, err)
	})
}

// Rule TS3.
func TestAnExecutionThatIsParkedWhileItsLastTaskEndsIsAnnounced(t *testing.T) {
	each(t, func(s *scene) {
		announced := &told{}
		executions := repository.New(s.db, repository.Options{Announcer: announced})
		s.SetWaiters(executions)
		ref, waiting := s.startedFor(executions, task.Submission{Type: "work", Tasks: []task.Spec{{Type: "work"}}})
		last := s.claim(waiting[0], worker("a"))
		parked := make(chan error, 1)
		err := tx.NewManager(s.db).Do(s.Context(), tx.Attr{}, func(ctx context.Context) error {
			_, err := s.End(ctx, last.Ref, task.Success(), decide)
			go func() {
				_, err := executions.Park(context.WithoutCancel(t.Context()), ref, ports.Parking{})
				parked <- err
			}()
			if s.db.Dialect() == tx.Postgres {
				require.Eventually(s, func() bool { return s.isBlocked() || len(parked) > 0 }, time.Minute, 5*time.Millisecond)
			}
			return err
		})
		require.NoError(s, err)
		require.NoError(s, <-parked)
		require.Equal(s, []core.JobExecutionID{ref.ID}, announced.ids)
	})
}

func TestAGroupIsContinuedForAnotherStep(t *testing.T) {
	each(t, func(s *scene) {
		announced := &told{}
		executions := repository.New(s.db, repository.Options{Announcer: announced})
		id, waiting := s.parkedFor(executions, task.Submission{Type: "work", Tasks: []task.Spec{{Type: "work"}, {Type: "work"}, {Type: "work"}}})
		held := s.claim(waiting[0], worker("a"))
		s.end(s.claim(waiting[1], worker("b")).Ref, task.Success())
		request := ports.ResumeRequest{Owner: core.Owner{Host: "h", PID: 2}, Lease: time.Hour}
		_, err := executions.Resume(s.Context(), id, request)
		require.ErrorAs(s, err, new(*core.TransitionError))
		require.Empty(s, announced.ids)
		_, err = executions.RequestStop(s.Context(), id, ports.By{Actor: "test"})
		require.NoError(s, err)
		require.Equal(s, []core.JobExecutionID{id}, announced.ids)
		_, err = executions.Resume(s.Context(), id, request)
		require.NoError(s, err)

		group := held.Task.GroupID
		_, err = s.CancelGroup(s.Context(), group, "me", "stopped")
		require.NoError(s, err)
		ds, err := s.Continue(s.Context(), group, 77, "me", "restarted")
		require.NoError(s, err)
		require.Len(s, ds, 1, "the worker of the other has it still")
		again, err := s.MakeDue(s.Context(), 10)
		require.NoError(s, err)
		require.Empty(s, again)
		lost, err := s.Heartbeat(s.Context(), worker("a"), []taskports.Ref{held.Ref})
		require.NoError(s, err)
		require.Equal(s, []taskports.Lost{{Ref: held.Ref, Cause: task.ErrCanceled}}, lost.Lost)
		_, err = s.End(s.Context(), held.Ref, task.Success(), decide)
		require.Error(s, err)
		again, err = s.MakeDue(s.Context(), 10)
		require.NoError(s, err)
		require.Len(s, again, 1, "its worker has let go")
		for _, d := range append(ds, again...) {
			s.end(s.claim(d, worker("c")).Ref, task.Success().WithArtifact(task.JSON([]byte(`{"n":1}`))))
		}
		g, err := s.Group(s.Context(), group)
		require.NoError(s, err)
		require.Equal(s, task.GroupCompleted, g.State, "its cancellation is withdrawn")
		results, err := s.Results(s.Context(), group, 100)
		require.NoError(s, err)
		require.Equal(s, []string{`{"n":1}`, "null", `{"n":1}`}, []string{string(results[0]), string(results[1]), string(results[2])})
	})
}

// Rule L13.
func TestNoTaskOfAnExecutionThatIsToStopStarts(t *testing.T) {
	each(t, func(s *scene) {
		executions := repository.New(s.db, repository.Options{})
		ref, waiting := s.startedFor(executions, task.Submission{
			Type: "work", Budget: task.Budget{MaxTotalAttempts: 9}, Tasks: []task.Spec{{Type: "work"}, {Type: "work"}},
		})
		_, other := s.submit(task.Submission{Tasks: []task.Spec{{Type: "work"}}})
		running := s.claim(waiting[0], worker("a"))
		_, err := executions.RequestStop(s.Context(), ref.ID, ports.By{Actor: "test"})
		require.NoError(s, err)
		c, answer, err := s.Claim(s.Context(), waiting[1], worker("a"))
		require.Nil(s, c)
		require.Equal(s, core.Rejected, answer)
		require.ErrorContains(s, err, "a stop of its step's execution was requested")
		s.end(running.Ref, task.Success())
		s.claim(other[0], worker("a"))

		cleaning, err := executions.StartStep(s.Context(), ref, ports.StepStart{Name: "last", Visit: core.Visit{Flow: ports.FlowFinally, Ordinal: 1, Element: "last"}})
		require.NoError(s, err)
		_, last := s.submit(task.Submission{Type: "work", Step: cleaning.ID, Tasks: []task.Spec{{Type: "work"}}})
		s.claim(last[0], worker("a"))
	})
}
