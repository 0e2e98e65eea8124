package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// lifeFamily runs scenarios of a job and of the actions on it: each has its own job.
func lifeFamily(t *testing.T) func(t *testing.T, d document) {
	each := onDatabases(t)
	runs := 0
	return func(t *testing.T, d document) {
		s, err := decodeLife(d)
		require.NoError(t, err, "%s: scenario %s", d.path, d.id)
		compareTables(t, s.differing, &s.tables)
		if len(s.Actions) == 0 {
			return
		}
		each(t, func(t *testing.T, p place) {
			runs++
			r := newLifeRun(t, p, s, fmt.Sprintf("life_%d", runs))
			if p.engine.Database.Dialect() == tx.SQLite {
				r.addStranger()
				r.check = noticed(t)
			}
			r.run()
		})
	}
}

type lifeRun struct {
	t        *testing.T
	engine   *testengine.Engine
	url      string
	scenario *lifeScenario
	name     string // of the job, and of the table of its items
	table    bool   // it is there
	file     string // the job file, for command lines

	aliases map[string]core.JobExecutionID
	running map[core.JobExecutionID]*operator.Running
	current core.JobExecutionID // the last one that was made
	jobs    map[string]func(ctx context.Context) (*model.Job, error)

	mu         sync.Mutex
	events     []core.Event
	scripts    map[string]*script
	records    map[string]*record // of the components of steps of items
	calls      map[string]int     // of listeners, in this action
	atLaunch   *core.ExecutionContext
	started    map[string]*core.ExecutionContext // contexts at the start of steps
	statusSeen map[string]core.Status
	stepIDs    map[string]core.StepExecutionID
	jobAtStart map[string]*core.ExecutionContext // the job's context as a step began
	asked      string                            // the job of the history that an inspection reads
	invoked    []string                          // steps and partitions that ran, in this action
	blocked    chan struct{}                     // one value for each step that begins to wait
	release    func()                            // opens the gate
	gate       chan struct{}                     // steps do not begin before it is closed; may be nil
	grid       *int                              // the current answer of a partitioner

	check checker // may be nil
}

func newLifeRun(t *testing.T, p place, s *lifeScenario, name string) *lifeRun {
	r := &lifeRun{
		t: t, engine: p.engine, url: p.url, scenario: s, name: name,
		aliases: map[string]core.JobExecutionID{}, running: map[core.JobExecutionID]*operator.Running{},
		stepIDs: map[string]core.StepExecutionID{}, scripts: map[string]*script{}, records: map[string]*record{}, blocked: make(chan struct{}, 1000),
		release: func() {},
	}
	r.jobs = map[string]func(context.Context) (*model.Job, error){
		name: func(context.Context) (*model.Job, error) { return r.job(r.spec(), name) },
	}
	t.Cleanup(r.stopAll)
	if slices.ContainsFunc(s.Actions, func(a action) bool { return strings.HasPrefix(a.Op, "cli_") }) {
		s.nameForFile()
		r.writeFile()
	}
	return r
}

func (r *lifeRun) stopAll() {
	r.release()
	for _, running := range r.running {
		running.Stop()
		<-running.Done()
	}
}

func (r *lifeRun) run() {
	for i := range r.scenario.Actions {
		a := &r.scenario.Actions[i]
		s := r.act(a)
		problems := r.problems(&a.Expect, s)
		if len(problems) == 0 && r.check != nil {
			r.check(&a.Expect, s.failure, func() []string { return r.problems(&a.Expect, s) })
		}
		for _, p := range problems {
			assert.Fail(r.t, fmt.Sprintf("action %d %s: %s", i+1, a.Op, p))
		}
		if len(problems) > 0 {
			r.t.Logf("action %d %s: %s\ninvoked %v, listeners %v, facts %v", i+1, a.Op, s, r.invoked, r.calls, s.facts)
		}
	}
}

func (r *lifeRun) act(a *action) *seen {
	r.t.Helper()
	r.mu.Lock()
	r.calls, r.started, r.invoked, r.atLaunch = map[string]int{}, map[string]*core.ExecutionContext{}, nil, nil
	r.grid, r.statusSeen = a.Grid, map[string]core.Status{}
	r.jobAtStart, r.asked = map[string]*core.ExecutionContext{}, r.name
	r.mu.Unlock()
	s := operations()[a.Op].do(r, a)
	if s.exec != nil && a.As != "" {
		r.aliases[a.As] = s.exec.ID
	}
	return s
}

func (r *lifeRun) target(a *action) core.JobExecutionID {
	r.t.Helper()
	if a.Target == "" {
		require.NotZero(r.t, r.current, "the action needs an execution")
		return r.current
	}
	id, known := r.aliases[a.Target]
	require.True(r.t, known, "target %s is not the name of an execution", a.Target)
	return id
}

func (r *lifeRun) record(alias string) *core.JobExecution {
	r.t.Helper()
	id, known := r.aliases[alias]
	require.True(r.t, known, "%s is not the name of an execution", alias)
	exec, err := r.engine.Repository.Execution(r.t.Context(), id)
	require.NoError(r.t, err)
	return exec
}

func (r *lifeRun) look(id core.JobExecutionID, failure error) *seen {
	r.t.Helper()
	s := &seen{facts: map[string]any{}}
	if id == 0 {
		s.refusal, s.failure = failure, failure
		return s
	}
	s.exec = &core.JobExecution{ID: id}
	s.read(r.t, r.engine.Repository.Ports(), r.snapshot())
	if failure != nil {
		s.refusal, s.failure = failure, failure
	}
	return s
}

func (r *lifeRun) observe(_ context.Context, event core.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, event)
}

func (r *lifeRun) snapshot() []core.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

func (r *lifeRun) launcher(change func(*job.Config)) *job.Launcher {
	r.t.Helper()
	observer := core.ObserverFunc(r.observe)
	config := job.Config{
		Repository: r.repository(), Observer: observer,
		Executor: step.NewSimpleStepExecutor(r.repository(), r.engine.Database.Name(), observer),
		Lease:    time.Minute, Heartbeat: 20 * time.Millisecond,
	}
	if change != nil {
		change(&config)
	}
	l, err := job.NewLauncher(config)
	require.NoError(r.t, err)
	return l
}

var errNoRoom = errors.New("the scenario says that the pool is full")

var errHook = errors.New("the scenario says that the stop hook fails")

func (r *lifeRun) operator(a *action) *operator.Service {
	r.t.Helper()
	config := operator.Config{
		Repository: r.engine.Repository.Ports(), Launcher: r.pool(a), Actor: "conformance",
		Jobs: func(ctx context.Context, name string) (*model.Job, error) {
			if job, known := r.jobs[name]; known {
				return job(ctx)
			}
			return nil, fmt.Errorf("job %s: %w", name, ports.ErrNoSuchJob)
		},
	}
	if a.StopHook != "" {
		config.Notify = func(context.Context, core.JobExecution) error { return errHook }
	}
	o, err := operator.New(config)
	require.NoError(r.t, err)
	return o
}

func (r *lifeRun) pool(a *action) *job.Launcher {
	return r.launcher(func(c *job.Config) {
		if a.Executor == "rejects" {
			c.Spawn = accepting(0)
		}
		if a.PoolAccepts != nil {
			c.Spawn = accepting(*a.PoolAccepts)
		}
	})
}

func accepting(n int) func(work func()) error {
	var mu sync.Mutex
	return func(work func()) error {
		mu.Lock()
		defer mu.Unlock()
		if n--; n < 0 {
			return errNoRoom
		}
		go work()
		return nil
	}
}
