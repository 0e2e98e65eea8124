package tasks_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type graph struct {
	*scene
	group task.GroupID
	ids   map[string]task.ID
	begin map[string]taskports.Delivery
}

func (s *scene) graph(b task.Budget, tasks ...string) *graph {
	s.Helper()
	sub := task.Submission{Budget: b}
	for _, text := range tasks {
		key, after, waits := strings.Cut(text, "<")
		spec := task.Spec{Type: "work", Key: key}
		if waits {
			spec.After = strings.Split(after, ",")
		}
		sub.Tasks = append(sub.Tasks, spec)
	}
	done, waiting := s.submit(sub)
	g := &graph{scene: s, group: done.Group, ids: map[string]task.ID{}, begin: map[string]taskports.Delivery{}}
	for i, spec := range sub.Tasks {
		g.ids[spec.Key] = done.Tasks[i]
	}
	for _, d := range waiting {
		g.begin[g.key(d.ID)] = d
	}
	return g
}

func (g *graph) key(id task.ID) string {
	for key, its := range g.ids {
		if its == id {
			return key
		}
	}
	return ""
}

func (g *graph) states(keys string) string {
	g.Helper()
	var all []string
	for key := range strings.FieldsSeq(keys) {
		all = append(all, key, string(g.state(g.ids[key])))
	}
	return strings.Join(all, " ")
}

func (g *graph) ends(d taskports.Delivery, o task.Outcome) map[string]taskports.Delivery {
	g.Helper()
	opened := map[string]taskports.Delivery{}
	for _, d := range g.end(g.claim(d, worker("a")).Ref, o).Opened {
		opened[g.key(d.ID)] = d
	}
	return opened
}

func (g *graph) task(key string) *task.Task {
	g.Helper()
	t, err := g.Task(g.Context(), g.ids[key])
	require.NoError(g, err)
	return t
}

func (g *graph) rerun(key string) (core.Answer, []taskports.Delivery, error) {
	g.Helper()
	return g.Rerun(g.Context(), g.ids[key], "me", "try")
}

var fatal = task.Outcome{Kind: task.OutcomeFailure, Reason: "exit 3", Fatal: true}

func TestATaskWaitsForTheSuccessOfTheTasksThatItNames(t *testing.T) {
	each(t, func(s *scene) {
		g := s.graph(task.Budget{}, "d<b,c", "a", "b<a", "c<a")
		require.Len(s, g.begin, 1)
		require.Equal(s, "a PENDING b WAITING c WAITING d WAITING", g.states("a b c d"))
		_, _, err := s.Claim(s.Context(), taskports.Delivery{ID: g.ids["b"], Epoch: 1}, worker("a"))
		require.ErrorAs(s, err, new(*core.TransitionError), "a delivery that nobody made")
		due, err := s.Due(s.Context(), []string{"work"}, nil, 10)
		require.NoError(s, err)
		require.Len(s, due, 1)
		require.Equal(s, `task 2 ("a"), which is PENDING`, g.task("b").WaitsFor())

		opened := g.ends(g.begin["a"], task.Success())
		require.Len(s, opened, 2)
		require.Empty(s, g.ends(opened["b"], task.Success()))
		list, err := s.Tasks(s.Context(), task.Filter{Group: g.group, State: task.Waiting})
		require.NoError(s, err)
		require.Len(s, list, 1)
		require.Equal(s, []task.Awaited{{ID: g.ids["c"], Key: "c", State: task.Pending}}, list[0].OpenAfter)
		last := g.ends(opened["c"], task.Success())
		require.Empty(s, g.ends(last["d"], task.Success()))
		require.Equal(s, "a SUCCEEDED b SUCCEEDED c SUCCEEDED d SUCCEEDED", g.states("a b c d"))
	})
}

func TestAFinalFailureCancelsWhatWaitsForItAndARerunOpensThatAgain(t *testing.T) {
	each(t, func(s *scene) {
		g := s.graph(task.Budget{MaxAttempts: 2}, "a", "b<a", "c<b,x", "x", "y")
		g.end(g.claim(g.begin["a"], worker("a")).Ref, task.Failure("no"))
		require.Equal(s, "a RETRY_SCHEDULED b WAITING c WAITING", g.states("a b c"), "it is not final")
		g.ends(s.again(), task.Failure("exit 3"))
		require.Equal(s, "a FAILED b CANCELED c CANCELED x PENDING y PENDING", g.states("a b c x y"))
		require.Contains(s, g.task("c").LastError, `canceled: task 1 ("a"), for which it waits, is FAILED: exit 3`)

		_, _, err := g.rerun("b")
		require.ErrorContains(s, err, `task 1 ("a"), for which it waits, is FAILED: run that task again`)
		answer, waiting, err := g.rerun("a")
		require.NoError(s, err)
		require.Equal(s, core.Applied, answer)
		require.Len(s, waiting, 1)
		require.Equal(s, "a PENDING b WAITING c WAITING", g.states("a b c"))
		require.Empty(s, g.task("c").LastError)
		opened := g.ends(waiting[0], task.Success())
		require.Empty(s, g.ends(opened["b"], task.Success()))
		require.Equal(s, "c WAITING", g.states("c"))
		require.Len(s, g.ends(g.begin["x"], task.Success()), 1)
	})
}

func TestWhatWaitsForTwoFailuresWaitsForBothReruns(t *testing.T) {
	each(t, func(s *scene) {
		g := s.graph(task.Budget{}, "a", "b", "c<a,b", "d<c", "e<a")
		g.ends(g.begin["a"], fatal)
		g.ends(g.begin["b"], fatal)
		_, _, err := g.rerun("a")
		require.NoError(s, err)
		require.Equal(s, "a PENDING b FAILED c CANCELED d CANCELED e WAITING", g.states("a b c d e"))
		_, _, err = g.rerun("b")
		require.NoError(s, err)
		require.Equal(s, "a PENDING b PENDING c WAITING d WAITING e WAITING", g.states("a b c d e"))
	})
}

func TestWhatAnOperatorCanceledStaysCanceled(t *testing.T) {
	each(t, func(s *scene) {
		g := s.graph(task.Budget{}, "a", "b<a", "c<b", "d<a")
		_, _, err := s.Cancel(s.Context(), g.ids["b"], "me", "not wanted")
		require.NoError(s, err)
		require.Equal(s, "a PENDING b CANCELED c CANCELED d WAITING", g.states("a b c d"))
		g.ends(g.begin["a"], fatal)
		_, _, err = g.rerun("a")
		require.NoError(s, err)
		require.Equal(s, "a PENDING b CANCELED c CANCELED d WAITING", g.states("a b c d"))
		answer, waiting, err := g.rerun("b")
		require.NoError(s, err)
		require.Equal(s, core.Applied, answer)
		require.Empty(s, waiting, "it waits for a")
		require.Equal(s, "a PENDING b WAITING c WAITING d WAITING", g.states("a b c d"))

		_, err = s.CancelGroup(s.Context(), g.group, "me", "")
		require.NoError(s, err)
		require.Equal(s, "a CANCELED b CANCELED c CANCELED d CANCELED", g.states("a b c d"))
		ds, err := s.Continue(s.Context(), g.group, 1, "me", "restarted")
		require.NoError(s, err)
		require.Len(s, ds, 1)
		require.Equal(s, "a PENDING b WAITING c WAITING d WAITING", g.states("a b c d"))
		opened := g.ends(ds[0], task.Success())
		require.Len(s, opened, 2)
	})
}

func TestTheBoundsOfAGroupHoldForTasksThatWait(t *testing.T) {
	each(t, func(s *scene) {
		g := s.graph(task.Budget{MaxTotalAttempts: 1}, "a", "b<a", "c<b")
		opened := g.ends(g.begin["a"], task.Success())
		require.False(s, s.tried(opened["b"], task.Success()), "no attempt is left")
		require.Equal(s, "b FAILED c CANCELED", g.states("b c"))

		g = s.graph(task.Budget{MaxNoProgress: 1, MaxAttempts: 1}, "a", "b", "c<b")
		g.ends(g.begin["a"], task.Failure("no"))
		require.False(s, s.tried(g.begin["b"], task.Success()))
		require.Equal(s, "b FAILED c CANCELED", g.states("b c"))

		g = s.graph(task.Budget{Deadline: time.Hour}, "a", "b<a", "c<b")
		_, err := s.db.Conn().ExecContext(s.Context(), "UPDATE surfin_task SET deadline_at = created_at WHERE deadline_at IS NOT NULL")
		require.NoError(s, err)
		n, err := s.ExpireDeadlines(s.Context(), 10)
		require.NoError(s, err)
		require.Equal(s, 3, n)
		require.Equal(s, "a TIMED_OUT b TIMED_OUT c TIMED_OUT", g.states("a b c"))
		_, waiting, err := g.rerun("a")
		require.NoError(s, err)
		require.Equal(s, "a PENDING b WAITING c WAITING", g.states("a b c"))
		n, err = s.ExpireDeadlines(s.Context(), 10)
		require.NoError(s, err)
		require.Zero(s, n, "the deadline does not hold any more")
		require.Len(s, g.ends(waiting[0], task.Success()), 1)
	})
}

func TestALostTaskCancelsWhatWaitsForItWhenItIsGivenUp(t *testing.T) {
	each(t, func(s *scene) {
		g := s.graph(task.Budget{MaxAttempts: 1}, "a", "b<a")
		lost := worker("a")
		lost.Lease = time.Microsecond
		s.claim(g.begin["a"], lost)
		require.Eventually(s, func() bool {
			n, err := s.Confirm(s.Context(), 10)
			return err != nil || n == 1
		}, 10*time.Second, time.Millisecond)
		n, err := s.Reap(s.Context(), 10, nil, decide)
		require.NoError(s, err)
		require.Equal(s, 1, n)
		require.Equal(s, "a TIMED_OUT b CANCELED", g.states("a b"))
		require.Contains(s, g.task("b").LastError, "did not renew its lease")
	})
}

func TestOfTwoEndsAtOnceTheSecondOneOpensWhatWaitsForBoth(t *testing.T) {
	each(t, func(s *scene) {
		g := s.graph(task.Budget{}, "c<a,b", "a", "b")
		refs := []taskports.Ref{s.claim(g.begin["a"], worker("a")).Ref, s.claim(g.begin["b"], worker("b")).Ref}
		opened, errs := make([]int, 2), make([]error, 2)
		var both sync.WaitGroup
		end := func() {
			for i, ref := range refs {
				both.Go(func() {
					ended, err := s.End(context.WithoutCancel(t.Context()), ref, task.Success(), decide)
					opened[i], errs[i] = len(ended.Opened), err
				})
			}
		}
		if s.db.Dialect() != tx.Postgres {
			end() // it has one writer
		} else {
			err := tx.NewManager(s.db).Do(s.Context(), tx.Attr{}, func(ctx context.Context) error {
				if _, err := tx.ConnOf(ctx, s.db).ExecContext(ctx, "SELECT id FROM surfin_task_group FOR UPDATE"); err != nil {
					return err
				}
				end()
				require.Eventually(s, func() bool { return s.isBlocked() }, time.Minute, 5*time.Millisecond)
				return nil
			})
			require.NoError(s, err)
		}
		both.Wait()
		require.NoError(s, errs[0])
		require.NoError(s, errs[1])
		require.Equal(s, 1, opened[0]+opened[1])
		require.Equal(s, "c PENDING", g.states("c"))
	})
}

func TestWhatAnOlderProgramLeftWaitingIsOpened(t *testing.T) {
	each(t, func(s *scene) {
		g := s.graph(task.Budget{}, "a", "b<a", "x", "y<x", "z<a,x")
		none, err := s.OpenLeft(s.Context(), 10)
		require.NoError(s, err)
		require.Empty(s, none)
		for key, o := range map[string]task.Outcome{"a": task.Success(), "x": fatal} {
			ref := s.claim(g.begin[key], worker("old")).Ref
			ref.Group, ref.Ordered = 0, false
			s.end(ref, o)
		}
		require.Equal(s, "b WAITING y WAITING z WAITING", g.states("b y z"))
		opened, err := s.OpenLeft(s.Context(), 10)
		require.NoError(s, err)
		require.Len(s, opened, 1)
		require.Equal(s, "b PENDING y CANCELED z CANCELED", g.states("b y z"))
	})
}

func TestARerunInBetweenLeavesTheOtherTasksToBeOpened(t *testing.T) {
	each(t, func(s *scene) {
		if s.db.Dialect() != tx.Postgres {
			s.Skip("SQLite has one writer at a time")
		}
		first, second := s.graph(task.Budget{}, "a", "b<a"), s.graph(task.Budget{}, "a", "b<a")
		for g, o := range map[*graph]task.Outcome{first: fatal, second: task.Success()} {
			ref := s.claim(g.begin["a"], worker("old")).Ref
			ref.Group, ref.Ordered = 0, false
			s.end(ref, o)
		}
		type result struct {
			opened []taskports.Delivery
			err    error
		}
		left := make(chan result, 1)
		err := tx.NewManager(s.db).Do(s.Context(), tx.Attr{}, func(ctx context.Context) error {
			_, _, err := s.Rerun(ctx, first.ids["a"], "me", "")
			go func() {
				opened, err := s.OpenLeft(context.WithoutCancel(t.Context()), 10)
				left <- result{opened, err}
			}()
			require.Eventually(s, s.isBlocked, time.Minute, time.Millisecond)
			return err
		})
		require.NoError(s, err)
		r := <-left
		require.NoError(s, r.err)
		require.Equal(s, "a PENDING b WAITING", first.states("a b"))
		require.Equal(s, "a SUCCEEDED b PENDING", second.states("a b"))
		require.Len(s, r.opened, 1)
	})
}

// Rule OP17.
func TestAGroupHasAtMostSoManyTasksBegun(t *testing.T) {
	each(t, func(s *scene) {
		sub := task.Submission{Parallel: 2, Budget: task.Budget{MaxAttempts: 2}}
		for _, key := range strings.Fields("a b c d e f") {
			sub.Tasks = append(sub.Tasks, task.Spec{Type: "work", Key: key})
		}
		sub.Tasks[3].After = []string{"b"}
		done, begin := s.submit(sub)
		g := &graph{scene: s, group: done.Group, ids: map[string]task.ID{}}
		for i, spec := range sub.Tasks {
			g.ids[spec.Key] = done.Tasks[i]
		}
		require.Len(s, begin, 2)
		require.Equal(s, "a PENDING b PENDING c WAITING d WAITING e WAITING f WAITING", g.states("a b c d e f"))
		group, err := s.Group(s.Context(), done.Group)
		require.NoError(s, err)
		require.Equal(s, 2, group.Parallel)

		require.Len(s, g.ends(begin[0], task.Success()), 1)
		require.Equal(s, "a SUCCEEDED b PENDING c PENDING d WAITING e WAITING", g.states("a b c d e"))
		require.Empty(s, g.ends(begin[1], task.Failure("no")), "it keeps its place until its retry is over")
		opened := g.ends(s.again(), task.Failure("no"))
		require.Len(s, opened, 1, "d is canceled, and e has its place")
		require.Equal(s, "b FAILED c PENDING d CANCELED e PENDING f WAITING", g.states("b c d e f"))

		answer, deliveries, err := g.rerun("b")
		require.NoError(s, err)
		require.Equal(s, core.Applied, answer)
		require.Empty(s, deliveries, "there is no place for it")
		require.Equal(s, "b WAITING d WAITING", g.states("b d"))
		_, deliveries, err = s.Cancel(s.Context(), g.ids["e"], "me", "not wanted")
		require.NoError(s, err)
		require.Len(s, deliveries, 1)
		require.Equal(s, "b PENDING c PENDING d WAITING e CANCELED f WAITING", g.states("b c d e f"))

		none, err := s.OpenLeft(s.Context(), 10)
		require.NoError(s, err)
		require.Empty(s, none, "there is no place")
		ref := s.claim(deliveries[0], worker("old")).Ref
		ref.Group, ref.Ordered = 0, false
		s.end(ref, task.Success()) // by a program that does not open tasks
		require.Equal(s, "c PENDING d WAITING f WAITING", g.states("c d f"))
		left, err := s.OpenLeft(s.Context(), 10)
		require.NoError(s, err)
		require.Len(s, left, 1)
		require.Equal(s, "c PENDING d PENDING f WAITING", g.states("c d f"))
	})
}

func TestTwoEndsAtOnceOpenNoMoreThanTheirPlaces(t *testing.T) {
	each(t, func(s *scene) {
		const n = 12
		sub := task.Submission{Parallel: 4, Tasks: make([]task.Spec, n)}
		for i := range sub.Tasks {
			sub.Tasks[i].Type = "work"
		}
		done, begin := s.submit(sub)
		for len(begin) > 0 {
			require.LessOrEqual(s, len(begin), 4)
			opened, errs := make([][]taskports.Delivery, len(begin)), make([]error, len(begin))
			var all sync.WaitGroup
			for i, d := range begin {
				ref := s.claim(d, worker("a")).Ref
				all.Go(func() {
					ended, err := s.End(context.WithoutCancel(t.Context()), ref, task.Success(), decide)
					opened[i], errs[i] = ended.Opened, err
				})
			}
			all.Wait()
			begin = nil
			for i := range opened {
				require.NoError(s, errs[i])
				begin = append(begin, opened[i]...)
			}
		}
		group, err := s.Group(s.Context(), done.Group)
		require.NoError(s, err)
		require.Equal(s, n, group.Succeeded)
	})
}

func TestALongChainIsCanceledAndOpenedAtOnce(t *testing.T) {
	each(t, func(s *scene) {
		tasks := []string{"0"}
		for i := 1; i < 1500; i++ {
			tasks = append(tasks, strconv.Itoa(i)+"<"+strconv.Itoa(i-1))
		}
		g := s.graph(task.Budget{}, tasks...)
		g.ends(g.begin["0"], fatal)
		status, err := s.Group(s.Context(), g.group)
		require.NoError(s, err)
		require.Equal(s, 1499, status.Canceled)
		_, _, err = g.rerun("0")
		require.NoError(s, err)
		status, err = s.Group(s.Context(), g.group)
		require.NoError(s, err)
		require.Equal(s, map[task.State]int{task.Pending: 1, task.Waiting: 1499}, status.ByState)
		groups, err := s.PurgeTasks(s.Context(), 0, 10, "me")
		require.NoError(s, err)
		require.Zero(s, groups, "tasks that wait are not over")
	})
}
