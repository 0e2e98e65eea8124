package tasks_test

import (
	"context"
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

// lead makes this process the leader, and returns its epoch.
func (s *scene) lead() int64 {
	s.Helper()
	epoch, leads, err := s.Lead(s.Context(), "leader", time.Hour)
	require.NoError(s, err)
	require.True(s, leads)
	return epoch
}

// placed submits a task with a placement: it is not delivered before it is assigned.
func (s *scene) placed(spec task.Spec) taskports.Delivery {
	s.Helper()
	spec.Type, spec.On = "work", &core.Placement{Labels: map[string]string{"disk": "eu1"}}
	done, waiting := s.submit(task.Submission{Tasks: []task.Spec{spec}})
	require.Empty(s, waiting)
	return taskports.Delivery{ID: done.Tasks[0], Epoch: 1, Type: spec.Type}
}

func (s *scene) assign(d taskports.Delivery, worker string, leader int64) {
	s.Helper()
	epoch, err := s.AssignPlaced(s.Context(), ports.Placed{Kind: ports.PlacedTask, ID: int64(d.ID), Epoch: d.Epoch}, worker, leader)
	require.NoError(s, err)
	require.Equal(s, d.Epoch, epoch)
}

func TestADrainingHeartbeatDoesNotBringBackAWorkerThatLeft(t *testing.T) {
	each(t, func(s *scene) {
		state := func() string {
			workers, err := s.Workers(s.Context())
			require.NoError(s, err)
			require.Len(s, workers, 1)
			return workers[0].State
		}
		a := worker("a")
		_, err := s.Heartbeat(s.Context(), a, nil)
		require.NoError(s, err)
		require.NoError(s, s.Leave(s.Context(), "a"))
		a.Draining = true
		_, err = s.Heartbeat(s.Context(), a, nil)
		require.NoError(s, err)
		require.Equal(s, "GONE", state())
	})
}

func TestAnAssignedTaskOfALostWorkerIsOrphaned(t *testing.T) {
	each(t, func(s *scene) {
		leader := s.lead()
		d := s.placed(task.Spec{})
		a := worker("a")
		_, err := s.Heartbeat(s.Context(), a, nil)
		require.NoError(s, err)
		s.assign(d, "a", leader)
		orphaned := func(after time.Duration) int {
			n, err := s.OrphanPlaced(s.Context(), after, leader, 10)
			require.NoError(s, err)
			return n
		}
		require.Zero(s, orphaned(0), "its worker lives")
		_, _, err = s.Start(s.Context(), d, worker("b"))
		require.ErrorIs(s, err, core.ErrLostOwner, "b has no right to start it")
		require.NoError(s, s.Leave(s.Context(), "a"))
		require.Zero(s, orphaned(time.Hour), "it was assigned just now")
		n, err := s.OrphanPlaced(s.Context(), 0, leader-1, 10)
		require.NoError(s, err)
		require.Zero(s, n, "another process leads")
		require.Equal(s, 1, orphaned(0))
		_, _, err = s.Start(s.Context(), d, a)
		require.ErrorIs(s, err, core.ErrLostOwner)
		t, err := s.Task(s.Context(), d.ID)
		require.NoError(s, err)
		require.Equal(s, task.Orphaned, t.State)
		require.Empty(s, t.Worker)
		again := taskports.Delivery{ID: d.ID, Epoch: t.Epoch}
		_, _, err = s.Claim(s.Context(), again, worker("b"))
		require.ErrorContains(s, err, "the leader assigns it", "a worker takes no work with a placement by itself")
		s.assign(again, "b", leader)
		c, answer, err := s.Start(s.Context(), again, worker("b"))
		require.NoError(s, err)
		require.Equal(s, core.Applied, answer)
		require.Equal(s, []int{2, 1}, []int{c.Task.Attempt, c.Task.Attempts}, "orphaning alone kills no task")
		workers, err := s.Workers(s.Context())
		require.NoError(s, err)
		require.Equal(s, "GONE", workers[0].State)
	})
}

func TestTheLeaderIsGivenWhatWorkersHaveRoomFor(t *testing.T) {
	each(t, func(s *scene) {
		leader := s.lead()
		for range 3 {
			s.placed(task.Spec{})
		}
		s.placed(task.Spec{Delay: time.Hour})
		s.one(task.Spec{}, task.Budget{})
		unassigned := func(free int) []ports.Placed {
			list, err := s.Unassigned(s.Context(), func(c ports.PlacedClass) ports.Room {
				require.Equal(s, ports.PlacedClass{On: core.Placement{Labels: map[string]string{"disk": "eu1"}}, Type: "work"}, c)
				return ports.Room{Free: free}
			})
			require.NoError(s, err)
			return list
		}
		require.Empty(s, unassigned(0))
		require.Len(s, unassigned(2), 2)
		require.Len(s, unassigned(9), 3, "the delayed one is not due, and one has no placement")
		first := unassigned(1)[0]
		epoch, err := s.AssignPlaced(s.Context(), first, "a", leader-1)
		require.NoError(s, err)
		require.Zero(s, epoch, "another process leads")
		epoch, err = s.AssignPlaced(s.Context(), first, "a", leader)
		require.NoError(s, err)
		require.Equal(s, first.Epoch, epoch)
		epoch, err = s.AssignPlaced(s.Context(), first, "b", leader)
		require.NoError(s, err)
		require.Zero(s, epoch, "a has it")
		require.Len(s, unassigned(9), 2)
		mine, err := s.AssignedTo(s.Context(), "a", 10)
		require.NoError(s, err)
		require.Len(s, mine, 1)
		loads := map[string]int{}
		require.NoError(s, s.LoadOf(s.Context(), loads))
		require.Equal(s, map[string]int{"a": 1}, loads)
	})
}

var onDisk = &core.Placement{Labels: map[string]string{"disk": "eu1"}}

func (s *scene) unassigned() (list []taskports.Delivery) {
	s.Helper()
	found, err := s.Unassigned(s.Context(), func(ports.PlacedClass) ports.Room { return ports.Room{Free: 9} })
	require.NoError(s, err)
	for _, p := range found {
		list = append(list, taskports.Delivery{ID: task.ID(p.ID), Epoch: p.Epoch, Type: p.Type})
	}
	return list
}

// cannotStart requires that the worker a does not start its assigned task, and has a free slot for other work.
func (s *scene) cannotStart(d taskports.Delivery, why string) {
	s.Helper()
	c, answer, err := s.Start(s.Context(), d, worker("a"))
	require.ErrorContains(s, err, why)
	require.Nil(s, c)
	require.Equal(s, core.Rejected, answer)
	got, err := s.Task(s.Context(), d.ID)
	require.NoError(s, err)
	require.Equal(s, task.Assigned, got.State)
	require.Zero(s, got.Attempts)
	attempts, err := s.Attempts(s.Context(), d.ID)
	require.NoError(s, err)
	require.Empty(s, attempts)
	mine, err := s.AssignedTo(s.Context(), "a", 10)
	require.NoError(s, err)
	require.Empty(s, mine, "it is not delivered again and again")
	loads := map[string]int{}
	require.NoError(s, s.LoadOf(s.Context(), loads))
	require.Empty(s, loads)
}

// Rule L13.
func TestNoAssignedTaskOfAnExecutionThatIsToStopStarts(t *testing.T) {
	each(t, func(s *scene) {
		leader := s.lead()
		executions := repository.New(s.db, repository.Options{})
		ref, _ := s.startedFor(executions, task.Submission{Type: "work", Tasks: []task.Spec{{Type: "work", On: onDisk}, {Type: "work", On: onDisk}}})
		d := s.unassigned()[0]
		s.assign(d, "a", leader)
		_, err := executions.RequestStop(s.Context(), ref.ID, ports.By{Actor: "test"})
		require.NoError(s, err)
		s.cannotStart(d, "a stop of its step's execution was requested")
		require.Equal(s, []taskports.Delivery{s.placed(task.Spec{})}, s.unassigned(), "the second task is not in its way")

		cleaning, err := executions.StartStep(s.Context(), ref, ports.StepStart{Name: "last", Visit: core.Visit{Flow: ports.FlowFinally, Ordinal: 1, Element: "last"}})
		require.NoError(s, err)
		last, _ := s.submit(task.Submission{Type: "work", Step: cleaning.ID, Tasks: []task.Spec{{Type: "work", On: onDisk, Priority: 1}}})
		d = s.unassigned()[0]
		require.Equal(s, last.Tasks[0], d.ID)
		s.assign(d, "a", leader)
		_, answer, err := s.Start(s.Context(), d, worker("a"))
		require.NoError(s, err)
		require.Equal(s, core.Applied, answer)
	})
}

func TestNoAssignedTaskStartsPastItsDeadline(t *testing.T) {
	each(t, func(s *scene) {
		leader := s.lead()
		s.submit(task.Submission{Tasks: []task.Spec{{Type: "work", On: onDisk}}, Budget: task.Budget{Deadline: time.Hour}})
		d := s.unassigned()[0]
		s.assign(d, "a", leader)
		_, err := s.db.Conn().ExecContext(s.Context(), "UPDATE surfin_task SET deadline_at = created_at")
		require.NoError(s, err)
		s.cannotStart(d, "the deadline of its group has passed")
		n, err := s.ExpireDeadlines(s.Context(), 10)
		require.NoError(s, err)
		require.Equal(s, 1, n)
		require.Equal(s, task.TimedOut, s.state(d.ID))
	})
}

// The leader moves many tasks in one transaction, in an order of its own, and
// passes over those that another transaction has locked. Else the cancellation
// of a group, which locks by number, and the leader would wait for each other.
func TestTheLeaderPassesOverTasksThatACancellationHasLocked(t *testing.T) {
	each(t, func(s *scene) {
		if s.db.Dialect() != tx.Postgres {
			s.Skip("SQLite has one writer at a time")
		}
		leader := s.lead()
		for name, c := range map[string]struct {
			on   *core.Placement
			move func(ctx context.Context, d taskports.Delivery) (moved bool, err error)
		}{
			"assign": {onDisk, func(ctx context.Context, d taskports.Delivery) (bool, error) {
				epoch, err := s.AssignPlaced(ctx, ports.Placed{Kind: ports.PlacedTask, ID: int64(d.ID), Epoch: d.Epoch}, "a", leader)
				return epoch != 0, err
			}},
			"redeliver": {nil, func(ctx context.Context, d taskports.Delivery) (bool, error) {
				again, err := s.Redeliver(ctx, []taskports.Delivery{d})
				return len(again) > 0, err
			}},
		} {
			done, _ := s.submit(task.Submission{Tasks: []task.Spec{{Type: "work", On: c.on}, {Type: "work", On: c.on}}})
			canceled := make(chan error, 1)
			err := tx.NewManager(s.db).Do(s.Context(), tx.Attr{}, func(ctx context.Context) error {
				moved, err := c.move(ctx, taskports.Delivery{ID: done.Tasks[1], Epoch: 1})
				require.NoError(s, err, name)
				require.True(s, moved, name)
				go func() {
					_, err := s.CancelGroup(context.WithoutCancel(t.Context()), done.Group, "me", "")
					canceled <- err
				}()
				require.Eventually(s, s.isBlocked, time.Minute, time.Millisecond) // it has the first task, and waits for the second
				moved, err = c.move(ctx, taskports.Delivery{ID: done.Tasks[0], Epoch: 1})
				require.False(s, moved, name)
				return err
			})
			require.NoError(s, err, name)
			require.NoError(s, <-canceled, name)
			for _, id := range done.Tasks {
				require.Equal(s, task.Canceled, s.state(id), name)
			}
		}
	})
}
