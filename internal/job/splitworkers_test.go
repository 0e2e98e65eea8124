package job_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/job/planner"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type branching struct {
	e      *testengine.Engine
	parked <-chan core.JobExecutionID
	mu     sync.Mutex
	ran    []string
	attr   tx.Attr // of the steps
	// do holds the work of the steps, by name.
	do map[string]func(ctx context.Context, c *core.StepContribution) error
}

func newBranching(t *testing.T, url string) *branching {
	t.Helper()
	s, parked := parkingScript(t, url)
	s.e.Exec("create table done (name varchar(20))")
	return &branching{e: s.e, parked: parked, do: map[string]func(context.Context, *core.StepContribution) error{}}
}

func (b *branching) step(name string, next ...model.Transition) *model.StepElement {
	work := core.TaskletFunc(func(ctx context.Context, c *core.StepContribution) error {
		b.mu.Lock()
		b.ran = append(b.ran, name)
		b.mu.Unlock()
		if do := b.do[name]; do != nil {
			if err := do(ctx, c); err != nil {
				return err
			}
		}
		_, err := tx.ConnOf(ctx, b.e.Database).ExecContext(ctx, fmt.Sprintf("insert into done values ('%s')", name))
		return err
	})
	s, err := step.NewTasklet(step.TaskletConfig{
		Name: name, Database: b.e.Database, Attr: b.attr, Promote: &model.Promotion{Keys: map[string]string{"key": name}},
		Assemble: func(context.Context, *model.StepRun) (core.Tasklet, error) { return work, nil },
	})
	require.NoError(b.e.T, err)
	return &model.StepElement{Step: s, Next: next}
}

func (b *branching) took() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	ran := b.ran
	b.ran = nil
	return ran
}

// split is the job first, split(a to b, c), last: a decision after a, and each branch promotes.
func (b *branching) split(name string, onWorkers bool) *model.Job {
	decide := &model.DecisionElement{Name: "which", Decide: func(context.Context, *core.View) (string, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.ran = append(b.ran, "which")
		return "GO", nil
	}, Next: []model.Transition{{Pattern: "GO", Target: model.Target{Kind: model.TargetElement, Name: "b"}}}}
	split := &model.SplitElement{Name: "both", OnWorkers: onWorkers, Branches: []model.Flow{
		{Elements: []model.Element{b.step("a", to("which")), decide, b.step("b")}},
		{Elements: []model.Element{b.step("c")}},
	}, Next: []model.Transition{to("last")}}
	j := testengine.Job(name)
	j.Flow.Elements = []model.Element{b.step("first", to("both")), split, b.step("last")}
	return j
}

func worker(pid int) core.Owner { return core.Owner{Host: "there", PID: pid, Boot: "b"} }

func (b *branching) take(t *testing.T, owner core.Owner, dead ...core.Owner) *ports.Assignment {
	t.Helper()
	a, err := b.e.Repository.AssignPartition(t.Context(), ports.AssignRequest{Owner: owner, Lease: time.Minute, Dead: func(o core.Owner) bool {
		return len(dead) > 0 && o == dead[0]
	}})
	require.NoError(t, err)
	return a
}

func (b *branching) walk(ctx context.Context, j *model.Job, a *ports.Assignment, release <-chan struct{}) (*core.StepExecution, error) {
	return b.e.Launcher.Branch(ctx, j, a, job.BranchRequest{
		Since: job.ClockNow(b.e.Launcher), Release: release,
		Executor: func(to ports.Transitions) model.StepExecutor {
			return step.NewSimpleStepExecutor(to, b.e.Database.Name(), core.Observers(nil))
		},
	})
}

type running struct {
	exec *core.JobExecution
	err  error
	done chan struct{}
}

func (b *branching) launch(t *testing.T, j *model.Job) *running {
	t.Helper()
	r := &running{done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.exec, r.err = b.e.Launcher.Run(context.WithoutCancel(t.Context()), j, core.Parameters{}, nil)
	}()
	return r
}

func (r *running) wait(t *testing.T) *core.JobExecution {
	t.Helper()
	select {
	case <-r.done:
	case <-time.After(60 * time.Second):
		require.Fail(t, "the execution did not end")
	}
	require.NoError(t, r.err)
	return r.exec
}

func TestBranchesOnWorkersEndAsThoseOfTheProcess(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		b := newBranching(t, url)
		fails := func(context.Context, *core.StepContribution) error { return errors.New("told to fail") }
		keeps := func(name string) func(context.Context, *core.StepContribution) error {
			return func(_ context.Context, c *core.StepContribution) error { return c.Context.Put("key", name) }
		}
		type ended struct {
			status    core.Status
			exit, err string
			ran, left []string
		}
		var all [2][]ended
		for i, onWorkers := range []bool{false, true} {
			j := b.split(fmt.Sprint("job", i), onWorkers)
			b.do["b"], b.do["c"] = fails, keeps("c")
			for attempt := 1; attempt <= 2; attempt++ {
				r := b.launch(t, j)
				if onWorkers {
					id := <-b.parked
					now, err := b.e.Repository.Execution(t.Context(), id)
					require.NoError(t, err)
					require.Equal(t, core.Owner{}, now.Owner)
					var walking sync.WaitGroup
					for pid := 1; ; pid++ {
						a := b.take(t, worker(pid))
						if a == nil {
							break
						}
						walking.Go(func() {
							part, err := b.walk(t.Context(), j, a, nil)
							require.NoError(t, err)
							require.True(t, part.Status.IsOver())
						})
					}
					walking.Wait()
				}
				exec := r.wait(t)
				require.Equal(t, attempt, exec.Attempt)
				stored, err := b.e.Repository.Execution(t.Context(), exec.ID)
				require.NoError(t, err)
				if attempt == 2 {
					require.Equal(t, []string{"b", "c"}, stored.Context.Keys(), "both branches promoted")
				}
				ran := b.took()
				sorted := ran[:0:0]
				for _, name := range []string{"first", "a", "which", "b", "c", "last"} {
					for _, did := range ran {
						if did == name {
							sorted = append(sorted, name)
						}
					}
				}
				all[i] = append(all[i], ended{exec.Status, exec.ExitCode, exec.Error, sorted, nil})
				b.do["b"] = keeps("b")
			}
		}
		require.Equal(t, all[0], all[1])
		require.Equal(t, []ended{
			{core.StatusFailed, core.ExitFailed, "step b: told to fail", []string{"first", "a", "which", "b", "c"}, nil},
			{core.StatusCompleted, core.ExitCompleted, "", []string{"b", "last"}, nil},
		}, all[1])
	})
}

func TestABranchGoesOnWhereItsWorkerWasLost(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		b := newBranching(t, url)
		reached, wake := make(chan struct{}), make(chan struct{})
		var begun atomic.Int64
		b.do["b"] = func(context.Context, *core.StepContribution) error {
			if begun.Add(1) == 1 {
				close(reached)
				<-wake
			}
			return nil
		}
		j := b.split("lost", true)
		r := b.launch(t, j)
		<-b.parked
		first := b.take(t, worker(1))
		require.Equal(t, "both:1", first.Step.Name)
		frozen := make(chan error, 1)
		go func() {
			_, err := b.walk(t.Context(), j, first, nil)
			frozen <- err
		}()
		<-reached
		if b.e.Database.SingleWriter() { // the frozen worker holds it
			close(wake)
			require.NoError(t, <-frozen)
		} else {
			again := b.take(t, worker(2), worker(1))
			require.Equal(t, first.Step.ID, again.Step.ID)
			require.Equal(t, []core.Owner{worker(1)}, again.Step.AssignedFrom)
			part, err := b.walk(t.Context(), j, again, nil)
			require.NoError(t, err)
			require.Equal(t, core.StatusCompleted, part.Status, part.Error)
			close(wake)
			require.ErrorIs(t, <-frozen, core.ErrLostOwner)
		}
		_, err := b.walk(t.Context(), j, b.take(t, worker(3)), nil)
		require.NoError(t, err)
		exec := r.wait(t)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		counts := map[string]int{}
		for _, name := range b.took() {
			counts[name]++
		}
		require.Equal(t, 1, counts["a"])
		require.Equal(t, 1, counts["which"])
		require.EqualValues(t, []int64{5}, b.e.Ints("select count(*) from done"))
	})
}

func TestABranchThatIsGivenBackGoesOnInTheSameAttempt(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		b := newBranching(t, url)
		b.e.Exec("CREATE TABLE got (n bigint NOT NULL)")
		release := make(chan struct{})
		once := sync.OnceFunc(func() { close(release) })
		chunk := testengine.Chunk(b.e, "load", 2, func() (item.ItemReader[int64], item.ItemProcessor[int64, int64], item.ItemWriter[int64]) {
			return &upTo{last: 10, heed: func(n int64) {
				if n == 5 {
					once()
				}
			}}, unchanged{}, inserting{b.e}
		})
		chunk.Next = []model.Transition{to("b")}
		j := testengine.Job("given back")
		j.Flow.Elements = []model.Element{&model.SplitElement{Name: "both", OnWorkers: true, Branches: []model.Flow{
			{Elements: []model.Element{b.step("a", to("load")), chunk, b.step("b")}}, {Elements: []model.Element{b.step("c")}},
		}}}
		r := b.launch(t, j)
		<-b.parked
		first := b.take(t, worker(1))
		part, err := b.walk(t.Context(), j, first, release)
		require.NoError(t, err)
		require.Nil(t, part)
		parked := b.e.Step(&first.Job, "load")
		require.Equal(t, core.StatusParked, parked.Status)
		for pid := range 2 {
			part, err = b.walk(t.Context(), j, b.take(t, worker(2+pid)), nil)
			require.NoError(t, err)
			require.Equal(t, core.StatusCompleted, part.Status, part.Error)
		}
		exec := r.wait(t)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.ElementsMatch(t, []string{"a", "b", "c"}, b.took())
		loaded := b.e.Step(exec, "load")
		require.Equal(t, parked.ID, loaded.ID)
		require.EqualValues(t, 10, loaded.Counters.Write)
		require.Equal(t, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, b.e.Ints("SELECT n FROM got ORDER BY n"))
	})
}

func TestAStopReachesTheBranches(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		b := newBranching(t, url)
		b.attr.Propagation = tx.NotSupported // SQLite has one writer
		reached, stop := make(chan struct{}), make(chan struct{})
		b.do["a"] = func(context.Context, *core.StepContribution) error {
			close(reached)
			<-stop
			return nil
		}
		j := b.split("stops", true)
		r := b.launch(t, j)
		id := <-b.parked
		a := b.take(t, worker(1))
		walked := make(chan error, 1)
		go func() {
			part, err := b.walk(t.Context(), j, a, nil)
			if err == nil && part.Status != core.StatusStopped {
				err = fmt.Errorf("the part is %s: %s", part.Status, part.Error)
			}
			walked <- err
		}()
		<-reached
		_, err := b.e.Repository.RequestStop(t.Context(), id, ports.By{Actor: "test"})
		require.NoError(t, err)
		require.Equal(t, core.StatusStopped, b.e.Step(&a.Job, "both:2").Status)
		require.Nil(t, b.take(t, worker(2)))
		require.Eventually(t, func() bool {
			for _, event := range b.e.Events() {
				if _, is := event.(core.StopAsked); is {
					return true
				}
			}
			return false
		}, time.Minute, 5*time.Millisecond)
		close(stop)
		require.NoError(t, <-walked)
		exec := r.wait(t)
		require.Equal(t, core.StatusStopped, exec.Status, exec.Error)
		require.Equal(t, []string{"first", "a"}, b.took())

		plan, err := planner.New(t.Context(), b.e.Repository, j, exec, nil)
		require.NoError(t, err)
		said := map[string]string{}
		for _, e := range plan.Entries {
			said[e.Element] = fmt.Sprint(e.Act, " ", e.OnWorkers)
		}
		require.Equal(t, map[string]string{"first": "pass false", "a": "pass false", "which": "ask false", "b": "run true", "c": "run true", "last": "run false"}, said)
	})
}
