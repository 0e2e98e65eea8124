package step_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/panics"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type grid struct {
	names []string
	asked int
}

func (g *grid) Partition(context.Context, *core.View) ([]core.Partition, error) {
	g.asked++
	parts := make([]core.Partition, len(g.names))
	for i, name := range g.names {
		parts[i] = core.Partition{Name: name, Context: core.NewExecutionContext()}
		if err := parts[i].Context.Put("self", name); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

func numbered(n int) *grid {
	g := &grid{}
	for i := range n {
		g.names = append(g.names, fmt.Sprintf("p%d", i))
	}
	return g
}

func partitioned(t require.TestingT, inner model.Step, g core.Partitioner, change ...func(*step.PartitionConfig)) *model.StepElement {
	config := step.PartitionConfig{Step: inner, Workers: 4, Partitioner: func(context.Context, *model.StepRun) (core.Partitioner, error) { return g, nil }}
	for _, c := range change {
		c(&config)
	}
	s, err := step.NewPartitioned(config)
	require.NoError(t, err)
	return &model.StepElement{Step: s}
}

type work struct {
	mu  sync.Mutex
	ran map[string]core.Partition
	// attr is the attr of each partition's transaction: on SQLite two of them are not open at once.
	attr tx.Attr
	do   func(ctx context.Context, part core.Partition, c *core.StepContribution) error
}

func (w *work) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ran = nil
}

func (w *work) names() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.ran))
}

func (w *work) step(t require.TestingT, e *testengine.Engine, name string) model.Step {
	s, err := step.NewTasklet(step.TaskletConfig{
		Name: name, Database: e.Database, Attr: w.attr,
		Assemble: func(_ context.Context, run *model.StepRun) (core.Tasklet, error) {
			return core.TaskletFunc(func(ctx context.Context, c *core.StepContribution) error {
				w.mu.Lock()
				if w.ran == nil {
					w.ran = map[string]core.Partition{}
				}
				w.ran[run.Data.Part.Name] = *run.Data.Part
				w.mu.Unlock()
				if w.do == nil {
					return nil
				}
				return w.do(ctx, *run.Data.Part, c)
			}), nil
		},
	})
	require.NoError(t, err)
	return s
}

func statuses(e *testengine.Engine, exec *core.JobExecution) map[string]core.Status {
	e.T.Helper()
	steps, err := e.Repository.Steps(context.Background(), exec.ID)
	require.NoError(e.T, err)
	all := map[string]core.Status{}
	for _, s := range steps {
		all[s.Name] = s.Status
	}
	return all
}

// numbers reads 0 to 29, and fails once before the poisoned one.
type numbers struct {
	at     int
	poison *int
}

func (r *numbers) Open(_ context.Context, at item.Position) error {
	if at == nil {
		return nil
	}
	return json.Unmarshal(at, &r.at)
}

func (r *numbers) Position() (item.Position, error) {
	at, err := json.Marshal(r.at)
	return at, err
}

func (r *numbers) Read(context.Context) (int, error) {
	switch {
	case r.at == 30:
		return 0, io.EOF
	case r.poison != nil && r.at == *r.poison:
		*r.poison = -1
		return 0, errors.New("poisoned")
	}
	r.at++
	return r.at - 1, nil
}

type table struct {
	e    *testengine.Engine
	part int
}

func (w *table) Write(ctx context.Context, items []int) error {
	var n int64 // reading outside the transaction takes another connection
	if err := w.e.Database.Conn().QueryRowContext(ctx, "select count(*) from done where part = -1").Scan(&n); err != nil {
		return err
	}
	d := w.e.Database.Dialect()
	for _, n := range items {
		if _, err := tx.ConnOf(ctx, w.e.Database).ExecContext(ctx,
			fmt.Sprintf("insert into done (part, n) values (%s, %s)", d.Placeholder(1), d.Placeholder(2)), w.part, n); err != nil {
			return err
		}
	}
	return nil
}

// loads is a chunk step with partitions that each load 30 numbers in chunks of 10.
func loads(t *testing.T, e *testengine.Engine, poison map[string]*int) model.Step {
	t.Helper()
	e.Exec("create table done (part int, n int, primary key (part, n))")
	s, err := chunk.New(chunk.Config{
		Name: "load", Size: 10, Database: e.Database,
		Assemble: func(_ context.Context, run *model.StepRun) (chunk.Parts, error) {
			return chunk.Parts{
				Reader:  item.EraseReader[int](&numbers{poison: poison[run.Data.Part.Name]}),
				Writers: []item.Writer{item.EraseWriter[int](&table{e: e, part: run.Data.Part.Index})},
			}, nil
		},
	})
	require.NoError(t, err)
	return s
}

func TestAFailingPartitionLeavesTheOthersToFinishAndARestartRunsItAlone(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		at := 22
		g := numbered(8)
		// On SQLite all eight wait for the one writer; PostgreSQL has connections for four.
		workers := 4
		if e.Database.SingleWriter() {
			workers = 8
		}
		j := testengine.Job("job", partitioned(t, loads(t, e, map[string]*int{"p3": &at}), g, func(c *step.PartitionConfig) {
			c.Workers, c.Database = workers, e.Database
		}))
		exec := e.Run(j)
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Contains(t, exec.Error, "1 of 8 partitions failed: p3: ")
		require.Contains(t, exec.Error, "poisoned")
		all := statuses(e, exec)
		require.Len(t, all, 9)
		for i := range 8 {
			want := core.StatusCompleted
			if i == 3 {
				want = core.StatusFailed
			}
			require.Equal(t, want, all[fmt.Sprintf("load:p%d", i)], i)
		}
		manager := e.Step(exec, "load")
		require.Equal(t, core.StatusFailed, manager.Status)
		require.EqualValues(t, 7*30+20, manager.Counters.Write)
		require.EqualValues(t, 7*30+22, manager.Counters.Read)
		require.EqualValues(t, 2, manager.InHand.Read)

		again := e.Run(j)
		require.Equal(t, core.StatusCompleted, again.Status, again.Error)
		require.Equal(t, map[string]core.Status{"load": core.StatusCompleted, "load:p3": core.StatusCompleted}, statuses(e, again))
		require.EqualValues(t, 10, e.Step(again, "load:p3").Counters.Read, "from item 20 on")
		manager = e.Step(again, "load")
		require.EqualValues(t, 10, manager.Counters.Write)
		require.EqualValues(t, 10, manager.Counters.Read)
		require.EqualValues(t, 8*30, manager.Total().Write)
		require.EqualValues(t, 8*30, manager.Total().Read, "what was read twice counts once")
		require.Equal(t, []int64{240}, e.Ints("select count(*) from done"))
		require.Equal(t, []int64{3}, e.Ints("select distinct part from done where n = 29 and part = 3"), "its index is the same")
		require.Equal(t, 1, g.asked)
	})
}

func TestNoPartitionsAreNoWork(t *testing.T) {
	t.Parallel()
	e := testengine.New(t, testdb.SQLite(t))
	w := &work{}
	exec := e.Run(testengine.Job("job", partitioned(t, w.step(t, e, "s"), numbered(0))))
	require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	require.Equal(t, map[string]core.Status{"s": core.StatusCompleted}, statuses(e, exec))
}

func TestAPlanThatCannotBeIsRefusedBeforeAnyPartitionStarts(t *testing.T) {
	t.Parallel()
	e := testengine.New(t, testdb.SQLite(t))
	many := &grid{names: []string{"", "a b", "a", "a", strings.Repeat("x", 201), "\xff", "c:d", "ok-1_2.3/é"}}
	for name, c := range map[string]struct {
		partitioner func(ctx context.Context, run *model.StepRun) (core.Partitioner, error)
		want        []string
	}{
		"names": {
			func(context.Context, *model.StepRun) (core.Partitioner, error) { return many, nil },
			[]string{`partition 0: the name "" is empty`, `has the character ' ' (allowed: letters, digits and _ - . /)`, `partitions 2 and 3 have the same name "a"`, "has 201 bytes", "and 1 more"},
		},
		"panic": {func(context.Context, *model.StepRun) (core.Partitioner, error) { panic("lost my head") }, []string{"partition step s", "lost my head"}},
		"error": {func(context.Context, *model.StepRun) (core.Partitioner, error) { return nil, errors.New("no idea") }, []string{"no idea"}},
		"many": {
			func(context.Context, *model.StepRun) (core.Partitioner, error) {
				return numbered(core.MaxPartitions + 1), nil
			},
			[]string{"100001 partitions are more than the allowed 100000"},
		},
	} {
		w := &work{}
		exec := e.Run(testengine.Job(name, partitioned(t, w.step(t, e, "s"), nil, func(p *step.PartitionConfig) { p.Partitioner = c.partitioner })))
		require.Equal(t, core.StatusFailed, exec.Status, name)
		for _, want := range c.want {
			require.Contains(t, exec.Error, want, name)
		}
		require.Equal(t, map[string]core.Status{"s": core.StatusFailed}, statuses(e, exec), name)
		require.Empty(t, w.names())
	}
}

func TestExitCodesOfPartitionsAreCombinedAndUnknownWins(t *testing.T) {
	t.Parallel()
	e := testengine.New(t, testdb.SQLite(t))
	for name, c := range map[string]struct {
		ends map[string]string // exit code, or ERROR, UNKNOWN
		want core.Status
		exit string
	}{
		"plain":   {map[string]string{"p0": "", "p1": ""}, core.StatusCompleted, core.ExitCompleted},
		"custom":  {map[string]string{"p0": "", "p1": "COMPLETED WITH SKIPS"}, core.StatusCompleted, "COMPLETED WITH SKIPS"},
		"noop":    {map[string]string{"p0": core.ExitNoop, "p1": ""}, core.StatusCompleted, core.ExitNoop},
		"failed":  {map[string]string{"p0": "DONE", "p1": "ERROR"}, core.StatusFailed, core.ExitFailed},
		"unknown": {map[string]string{"p0": "ERROR", "p1": "UNKNOWN"}, core.StatusUnknown, core.ExitUnknown},
	} {
		ends := c.ends
		w := &work{do: func(_ context.Context, part core.Partition, c *core.StepContribution) error {
			switch end := ends[part.Name]; end {
			case "ERROR":
				return errors.New("no good")
			case "UNKNOWN":
				return ports.ErrUnknownOutcome
			default:
				c.ExitCode = end
			}
			return nil
		}}
		exec := e.Run(testengine.Job(name, partitioned(t, w.step(t, e, "s"), numbered(2))))
		manager := e.Step(exec, "s")
		require.Equal(t, c.want, manager.Status, "%s: %s", name, manager.Error)
		require.Equal(t, c.exit, manager.ExitCode, name)
	}
}

func TestManyFailuresAreNamedAFewAndCounted(t *testing.T) {
	t.Parallel()
	e := testengine.New(t, testdb.SQLite(t))
	w := &work{do: func(_ context.Context, part core.Partition, _ *core.StepContribution) error {
		return errors.New("no " + part.Name)
	}}
	exec := e.Run(testengine.Job("job", partitioned(t, w.step(t, e, "s"), numbered(7))))
	require.Equal(t, "step s: 7 of 7 partitions failed: p0: no p0; p1: no p1; p2: no p2; p3: no p3; p4: no p4; and 2 more", exec.Error)
}

func TestTheExitCodeOfAPartitionThatIsPassedStillCounts(t *testing.T) {
	t.Parallel()
	e := testengine.New(t, testdb.SQLite(t))
	fail := true
	w := &work{do: func(_ context.Context, part core.Partition, c *core.StepContribution) error {
		if part.Name == "p0" {
			c.ExitCode = "COMPLETED WITH SKIPS"
		} else if fail {
			return errors.New("no good")
		}
		return nil
	}}
	j := testengine.Job("job", partitioned(t, w.step(t, e, "s"), numbered(2)))
	require.Equal(t, core.StatusFailed, e.Run(j).Status)
	fail = false
	w.reset()
	exec := e.Run(j)
	require.Equal(t, []string{"p1"}, w.names())
	require.Equal(t, "COMPLETED WITH SKIPS", e.Step(exec, "s").ExitCode)
}

func TestACompletedStepThatMayStartAgainRunsAllItsPartitions(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		fails := map[string]bool{"p1": true}
		w := &work{do: func(_ context.Context, part core.Partition, c *core.StepContribution) error {
			self, _ := c.Context.Get("self")
			if self != part.Name {
				return fmt.Errorf("part %s has the context of %v", part.Name, self)
			}
			if fails[part.Name] {
				return errors.New("no good")
			}
			return nil
		}}
		g := numbered(3)
		first := partitioned(t, w.step(t, e, "s"), g)
		first.AllowStartIfComplete = true
		second := e.Tasklet("after", tx.Attr{}, func(context.Context, *core.StepContribution) error {
			if fails["after"] {
				return errors.New("no good")
			}
			return nil
		})
		j := testengine.Job("job", first, second)
		for _, run := range []struct {
			fails []string
			want  []string
			end   core.Status
		}{
			{[]string{"p1"}, []string{"p0", "p1", "p2"}, core.StatusFailed},
			{[]string{"after"}, []string{"p1"}, core.StatusFailed},
			{nil, []string{"p0", "p1", "p2"}, core.StatusCompleted},
		} {
			clear(fails)
			for _, name := range run.fails {
				fails[name] = true
			}
			w.reset()
			exec := e.Run(j)
			require.Equal(t, run.end, exec.Status, exec.Error)
			require.Equal(t, run.want, w.names())
			g.names = append(g.names, "late") // the plan is still kept
		}
		require.Equal(t, 1, g.asked)
	})
}

func TestAllowStartIfCompleteOfThePartitionsRunsThemAllOnARestart(t *testing.T) {
	t.Parallel()
	e := testengine.New(t, testdb.SQLite(t))
	fail := true
	w := &work{do: func(_ context.Context, part core.Partition, _ *core.StepContribution) error {
		if fail && part.Name == "p1" {
			return errors.New("no good")
		}
		return nil
	}}
	j := testengine.Job("job", partitioned(t, w.step(t, e, "s"), numbered(2), func(c *step.PartitionConfig) { c.AllowStartIfComplete = true }))
	require.Equal(t, core.StatusFailed, e.Run(j).Status)
	fail = false
	w.reset()
	require.Equal(t, core.StatusCompleted, e.Run(j).Status)
	require.Equal(t, []string{"p0", "p1"}, w.names())
}

func TestAPartitionedStepInAnAtomicGroupIsRefused(t *testing.T) {
	t.Parallel()
	e := testengine.New(t, testdb.SQLite(t))
	w := &work{}
	s := partitioned(t, w.step(t, e, "s"), numbered(2)).Step
	err := s.Execute(context.Background(), &model.StepRun{Data: model.StepContext{Job: &core.JobExecution{}, Group: &model.Group{Name: "books"}}, Step: &core.StepExecution{}})
	require.ErrorIs(t, err, step.ErrInGroup)
	require.ErrorContains(t, err, "atomic group books")
}

func TestAPoolThatIsTooSmallForTheWorkersIsRefused(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url) // PostgreSQL: 10 connections
		w := &work{}
		make := func(workers int) (*step.PartitionStep, error) {
			return step.NewPartitioned(step.PartitionConfig{
				Step: w.step(t, e, "s"), Workers: workers, Database: e.Database,
				Partitioner: func(context.Context, *model.StepRun) (core.Partitioner, error) { return numbered(1), nil },
			})
		}
		_, err := make(5)
		if e.Database.SingleWriter() {
			require.NoError(t, err)
			return
		}
		require.ErrorContains(t, err, "may open 10 connections, but 5 workers need 11 (two each, plus one): raise max_open to 11 (and the size of the application's pool), or lower workers to 4")
		_, err = make(4)
		require.NoError(t, err)
		s, err := make(0)
		require.NoError(t, err)
		require.LessOrEqual(t, s.Workers(), 4)
		require.Positive(t, s.Workers())
		_, err = make(-1)
		require.ErrorContains(t, err, "workers is -1")
	})
}

func TestTheGateAndListenersOfAPartitionedStepSeeTheWhole(t *testing.T) {
	t.Parallel()
	e := testengine.New(t, testdb.SQLite(t))
	w := &work{do: func(_ context.Context, _ core.Partition, c *core.StepContribution) error {
		c.Counters.Write = 2
		return nil
	}}
	var seen []string
	watch := watcher(func(s *core.StepExecution) {
		seen = append(seen, fmt.Sprintf("%s %d", s.Name, s.Counters.Write))
		panics.Guard(func() error { return s.Context.Put("total", s.Counters.Write) }) //nolint:errcheck // a test
	})
	gate := &model.Condition{Text: "written == 7", Holds: func(_ context.Context, v *core.View) (bool, error) { return v.Step.Total().Write == 7, nil }}
	j := testengine.Job("job", partitioned(t, w.step(t, e, "s"), numbered(3), func(c *step.PartitionConfig) {
		c.Expect = gate
		c.Promote = &model.Promotion{Keys: map[string]string{"total": "loaded"}, Statuses: []string{"*"}}
		c.Listeners = func(context.Context, *model.StepRun) ([]any, error) { return []any{watch}, nil }
	}))
	exec := e.Run(j)
	require.Equal(t, core.StatusFailed, exec.Status)
	require.Equal(t, core.ExitExpectFailed, e.Step(exec, "s").ExitCode)
	require.Equal(t, core.StatusCompleted, e.Step(exec, "s:p0").Status)
	require.Equal(t, []string{"s 6"}, seen)
	loaded, _ := exec.Context.Get("loaded")
	require.Equal(t, int64(6), loaded)
}

type watcher func(*core.StepExecution)

func (w watcher) AfterStep(_ context.Context, s *core.StepExecution) error {
	w(s)
	return nil
}
