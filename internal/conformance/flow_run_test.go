package conformance_test

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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type place struct {
	engine *testengine.Engine
	url    string
}

func onDatabases(t *testing.T) func(t *testing.T, f func(t *testing.T, p place)) {
	urls := []struct{ name, url string }{{"sqlite", testdb.SQLite(t)}, {"postgres", testdb.Postgres(t)}, {"mysql", testdb.MySQL(t)}}
	places := make([]place, len(urls))
	for i, u := range urls {
		places[i] = place{testengine.New(t, u.url), u.url}
	}
	return func(t *testing.T, f func(t *testing.T, p place)) {
		for i, u := range urls {
			t.Run(u.name, func(t *testing.T) { f(t, places[i]) })
		}
	}
}

// flowTime bounds a launch: a flow that never ends is a failure with a name.
const flowTime = 40 * time.Second

func flowFamily(t *testing.T) func(t *testing.T, d document) {
	each := onDatabases(t)
	runs := 0
	return func(t *testing.T, d document) {
		s, err := decodeFlow(d)
		require.NoError(t, err, "%s: scenario %s", d.path, d.id)
		compareTables(t, s.differing, &s.tables)
		if s.Elements == nil {
			return
		}
		each(t, func(t *testing.T, p place) {
			runs++
			r := &flowRun{t: t, engine: p.engine, scenario: s, name: fmt.Sprintf("flow_%d", runs)}
			if p.engine.Database.Dialect() == tx.SQLite {
				r.check = noticed(t)
			}
			r.run()
		})
	}
}

type flowRun struct {
	t        *testing.T
	engine   *testengine.Engine
	scenario *flowScenario
	name     string // of the job

	mu      sync.Mutex
	scripts map[string]*script // by place in the definition
	seen    map[string]core.Status
	asks    map[string]int // of decisions and conditions
	table   bool           // there are rows

	check checker // may be nil
}

type checker func(expectation any, failure error, problems func() []string)

func (r *flowRun) script(path string, outcomes []string) (*script, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s, ok := r.scripts[path]; ok {
		return s, nil
	}
	s, err := newScript(outcomes)
	if err == nil {
		r.keep(path, s)
	}
	return s, err
}

func (r *flowRun) verdicts(path string, returns []string) *script {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s, ok := r.scripts[path]; ok {
		return s
	}
	s := &script{}
	for _, text := range returns {
		s.acts = append(s.acts, parseVerdict(text))
	}
	if len(s.acts) == 0 {
		s.acts = []act{{actCompleted, core.ExitCompleted}}
	}
	r.keep(path, s)
	return s
}

func (r *flowRun) keep(path string, s *script) {
	if r.scripts == nil {
		r.scripts = map[string]*script{}
	}
	r.scripts[path] = s
}

func (r *flowRun) look(ctx context.Context, c *core.StepContribution) error {
	job, err := r.engine.Repository.Execution(ctx, c.Step.JobExecutionID)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[c.Step.Name] = job.Status
	return nil
}

func (r *flowRun) asked(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asks[name]++
}

func (r *flowRun) write(ctx context.Context, step string) error {
	if !r.table {
		return nil
	}
	_, err := tx.ConnOf(ctx, r.engine.Database).ExecContext(ctx, insertInto(r.engine.Database, r.name), 0, step)
	return err
}

func (r *flowRun) run() {
	r.table = slices.ContainsFunc(r.scenario.Runs, func(l flowLaunch) bool { return l.Expect.Rows != nil })
	if r.table {
		require.NoError(r.t, makeItemTable(r.t.Context(), r.engine.Database, r.name))
	}
	if symbol := r.scenario.ExpectConfigError; symbol != "" {
		_, err := r.job(nil)
		r.refused(symbol, err)
		return
	}
	for i := range r.scenario.Runs {
		launch := &r.scenario.Runs[i]
		o := r.launch(launch)
		problems := r.problems(&launch.Expect, o)
		if len(problems) == 0 && r.check != nil {
			r.check(&launch.Expect, o.failure, func() []string { return r.problems(&launch.Expect, o) })
		}
		for _, p := range problems {
			assert.Fail(r.t, fmt.Sprintf("run %d: %s", i+1, p))
		}
		if len(problems) > 0 {
			r.t.Logf("run %d: %s", i+1, o)
		}
	}
}

func (r *flowRun) job(launch *flowLaunch) (*model.Job, error) {
	b := &flowBuilder{run: r, taken: map[string]int{}}
	if launch != nil {
		on, err := launch.On.of(*r.scenario.Elements)
		if err != nil {
			return nil, err
		}
		b.on = on
	}
	flow, err := b.flow(*r.scenario.Elements, "")
	if err != nil {
		return nil, err
	}
	j := testengine.Job(r.name)
	j.Flow, j.Expect = flow, b.condition("gate", "", r.scenario.Gate)
	if len(r.scenario.Finally) > 0 {
		if j.Finally, err = b.flow(r.scenario.Finally, "finally"); err != nil {
			return nil, err
		}
	}
	return j, flow.Validate()
}

func (o overrides) of(elements []flowElement) (map[string][]flowTransition, error) {
	if o.only == nil {
		return o.byName, o.validate(elements)
	}
	var names []string
	for _, e := range elements {
		if len(e.On) > 0 {
			names = append(names, e.name())
		}
	}
	if len(names) != 1 {
		return nil, fmt.Errorf("on: of which of the elements %v is it?", names)
	}
	named := overrides{byName: map[string][]flowTransition{names[0]: o.only}}
	maps.Copy(named.byName, o.byName)
	return named.of(elements)
}

func (o overrides) validate(elements []flowElement) error {
	known := map[string]bool{}
	namesOf(elements, known)
	for _, name := range sortedKeys(o.byName) {
		if !known[name] {
			return fmt.Errorf("on: there is no element %s", name)
		}
		for _, t := range o.byName[name] {
			if err := t.validate(); err != nil {
				return fmt.Errorf("on: element %s: %w", name, err)
			}
		}
	}
	return nil
}

func namesOf(elements []flowElement, known map[string]bool) {
	for _, e := range elements {
		known[e.name()] = true
		namesOf(e.Elements, known)
		for _, branch := range e.Flows {
			namesOf(branch, known)
		}
	}
}

func (r *flowRun) launch(launch *flowLaunch) *launched {
	r.t.Helper()
	j, err := r.job(launch)
	require.NoError(r.t, err, "the definition")
	r.seen, r.asks = map[string]core.Status{}, map[string]int{}
	ctx, cancel := context.WithTimeout(r.t.Context(), flowTime)
	defer cancel()
	o := &launched{waited: true}
	o.exec, o.refusal = r.engine.Launcher.With(job.Options{FromStart: launch.FromStart}).Run(ctx, j, core.Parameters{}, nil)
	o.read(r.t, r.engine.Repository.Ports(), r.engine.Events())
	return o
}

type launched struct {
	exec    *core.JobExecution // nil where it was refused
	refusal error
	failure error // of the job and its steps, with their chains
	steps   []core.StepExecution
	waited  bool // for its end
}

func (o *launched) read(t *testing.T, repository ports.Repository, events []core.Event) {
	t.Helper()
	if o.refusal != nil || o.exec == nil {
		o.exec, o.failure = nil, o.refusal
		return
	}
	ctx := context.WithoutCancel(t.Context())
	var err error
	o.exec, err = repository.Execution(ctx, o.exec.ID)
	require.NoError(t, err)
	o.steps, err = repository.Steps(ctx, o.exec.ID)
	require.NoError(t, err)
	slices.SortFunc(o.steps, func(a, b core.StepExecution) int { return int(a.ID - b.ID) })
	o.failure = failureOf(events, o.exec.ID)
}

func failureOf(events []core.Event, id core.JobExecutionID) error {
	var errs []error
	for _, event := range events {
		switch event := event.(type) {
		case core.StepEnded:
			if event.Step.JobExecutionID == id {
				errs = append(errs, event.Err)
			}
		case core.JobEnded:
			if event.Execution.ID == id {
				errs = append(errs, event.Err)
			}
		}
	}
	return errors.Join(errs...)
}

func (o *launched) names() []string {
	names := []string{}
	for _, s := range o.steps {
		if !strings.Contains(s.Name, ":") {
			names = append(names, s.Name)
		}
	}
	return names
}

func (o *launched) String() string {
	if o.refusal != nil {
		return "refused: " + o.refusal.Error()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "execution %d: %s %s %s\n", o.exec.ID, o.exec.Status, o.exec.ExitCode, o.exec.Error)
	for _, s := range o.steps {
		fmt.Fprintf(&b, "  %d %s: %s %s %s %+v\n", s.ID, s.Name, s.Status, s.ExitCode, s.Error, s.Counters)
	}
	fmt.Fprintf(&b, "failure: %v", o.failure)
	return b.String()
}
