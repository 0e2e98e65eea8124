package step_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

var errDead = errors.New("the process is dead")

// mortal is a repository that a process can reach a limited number of times.
type mortal struct {
	testengine.Around
	mu   sync.Mutex
	left int // changing calls left; -1 means no limit
	dead bool
}

func (m *mortal) alive() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left == 0 {
		m.dead = true
		return errDead
	}
	if m.left > 0 {
		m.left--
	}
	return nil
}

func (m *mortal) died() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

func newMortal(r ports.Repository, left int) *mortal {
	m := &mortal{left: left}
	m.Around = testengine.Around{Repository: r, Do: func(write string, do func() error) error {
		if write == "Launch" { // it dies in the execution that it launched
			return do()
		}
		if err := m.alive(); err != nil {
			return err
		}
		return do()
	}}
	return m
}

type attempt struct {
	Fails   map[string]bool // partitions that fail, after their row is written
	Stop    string          // the partition that requests a stop; empty means none
	Left    int             // calls that the process lives for; -1 means that it is not killed
	Workers int
}

func drawAttempt(t *rapid.T, names []string) attempt {
	a := attempt{Fails: map[string]bool{}, Left: -1, Workers: rapid.IntRange(1, 3).Draw(t, "workers")}
	for _, name := range names {
		if rapid.IntRange(0, 4).Draw(t, "fails") == 0 {
			a.Fails[name] = true
		}
	}
	switch rapid.IntRange(0, 4).Draw(t, "end") {
	case 0:
		a.Stop = rapid.SampledFrom(append(names, "")).Draw(t, "stop")
	case 1, 2:
		a.Left = rapid.IntRange(1, 4+3*len(names)).Draw(t, "left")
	}
	return a
}

// modelBench is an engine that runs many cases, each as a job of its own.
type modelBench struct {
	e    *testengine.Engine
	runs int
}

// PostgreSQL, which differs in statements, not in steps, has a third of the
// cases.
func TestOverAnyKillsFailuresAndRestartsEveryPartitionIsDoneOnce(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		b := &modelBench{e: testengine.New(t, url)}
		b.e.Exec("create table done (run int, name text)")
		n, each := 0, 1
		if b.e.Database.Dialect() == tx.Postgres {
			each = 3
		}
		rapid.Check(t, func(t *rapid.T) {
			if n++; n%each == 0 && (n <= 10 || !testengine.Few()) {
				b.check(t)
			}
		})
	})
}

func (b *modelBench) check(t *rapid.T) {
	b.runs++
	names := numbered(rapid.IntRange(1, 5).Draw(t, "n")).names
	g, name := &grid{names: names}, fmt.Sprintf("job%d", b.runs)
	var before map[string]core.StepExecution // the newest of each partition
	for n := 1; ; n++ {
		a := attempt{Left: -1, Workers: 2}
		if n <= 5 {
			a = drawAttempt(t, names)
		}
		asked := g.asked
		g.names = append(slices.Clone(names), fmt.Sprintf("late%d", n)) // its later answer
		if len(before) == 0 {
			g.names = names
		}
		exec, ran, killed, stopped := b.launch(t, name, n, g, a)
		after, manager := b.history(t, exec)
		var due []string
		for _, p := range names {
			if before[p].Status != core.StatusCompleted {
				due = append(due, p)
			}
		}
		if len(before) > 0 {
			require.Equal(t, asked, g.asked, "attempt %d: the plan is stored", n)
		}
		require.Subset(t, due, ran, "attempt %d ran what was complete", n)
		if !killed && !stopped {
			require.Equal(t, due, ran, "attempt %d: %v", n, a)
		}
		if len(after) > 0 {
			require.Len(t, after, len(names), "attempt %d: all of the plan or nothing", n)
		}
		b.consistent(t, names, after, manager, killed)
		if exec.Status == core.StatusCompleted && !killed {
			require.EqualValues(t, len(names), manager.Total().Write)
			return
		}
		require.LessOrEqual(t, n, 6, "an attempt in which nothing goes wrong completes")
		before = after
	}
}

func (b *modelBench) consistent(t *rapid.T, names []string, parts map[string]core.StepExecution, manager *core.StepExecution, killed bool) {
	var sum core.Counters
	for i, name := range names {
		record, planned := parts[name]
		rows := b.e.Ints(fmt.Sprintf("select count(*) from done where run = %d and name = '%s'", b.runs, name))[0]
		require.Equal(t, planned && record.Status == core.StatusCompleted, rows == 1, "%s: %d rows, %s", name, rows, record.Status)
		require.LessOrEqual(t, rows, int64(1), name)
		if !planned {
			continue
		}
		self, _ := record.Context.Get("self")
		require.Equal(t, name, self)
		index, _ := record.Context.Get("surfin.index")
		require.Equal(t, int64(i), index)
		if !killed {
			require.True(t, record.Status.IsOver(), "%s is %s", name, record.Status)
		}
		sum = sum.Add(record.Total())
	}
	if manager != nil && !killed {
		require.Equal(t, sum, manager.Total())
	}
}

func (b *modelBench) launch(t *rapid.T, name string, n int, g *grid, a attempt) (exec *core.JobExecution, ran []string, killed, stopped bool) {
	m := newMortal(b.e.Repository.Ports(), a.Left)
	launcher, err := job.NewLauncher(job.Config{
		Repository: m.Ports(), Executor: step.NewSimpleStepExecutor(m, b.e.Database.Name(), nil), Lease: time.Hour, Heartbeat: 10 * time.Minute,
		Owner: core.Owner{Host: "h", PID: n, Nonce: fmt.Sprint(b.runs)}, Dead: func(core.Owner) bool { return true },
	})
	require.NoError(t, err)
	stop := make(chan struct{})
	var once sync.Once
	d := b.e.Database.Dialect()
	insert := fmt.Sprintf("insert into done (run, name) values (%s, %s)", d.Placeholder(1), d.Placeholder(2))
	w := &work{do: func(ctx context.Context, part core.Partition, c *core.StepContribution) error {
		if _, err := tx.ConnOf(ctx, b.e.Database).ExecContext(ctx, insert, b.runs, part.Name); err != nil {
			return err
		}
		if part.Name == a.Stop {
			once.Do(func() { close(stop) })
		}
		if a.Fails[part.Name] {
			return errors.New("no good")
		}
		c.Counters.Write = 1
		return nil
	}}
	j := testengine.Job(name, partitioned(t, w.step(t, b.e, "s"), g, func(c *step.PartitionConfig) {
		c.Workers, c.Database = a.Workers, b.e.Database
	}))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	exec, err = launcher.Run(ctx, j, core.Parameters{}, stop)
	require.NotNil(t, exec, "%v", err)
	killed = m.died() || errors.Is(err, errDead)
	if !killed {
		require.NoError(t, err)
	}
	return exec, w.names(), killed, slices.Contains(w.names(), a.Stop)
}

func (b *modelBench) history(t *rapid.T, exec *core.JobExecution) (map[string]core.StepExecution, *core.StepExecution) {
	last, err := b.e.Repository.LastSteps(t.Context(), exec.InstanceID, 0)
	require.NoError(t, err)
	parts := map[string]core.StepExecution{}
	var manager *core.StepExecution
	for name, h := range maps.All(last) {
		if part, is := strings.CutPrefix(name, "s:"); is {
			parts[part] = h.Last
		} else {
			manager = &h.Last
		}
	}
	return parts, manager
}
