package job_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job/journal"
	"github.com/surfin-batch/surfin/internal/job/planner"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Certain entries of the plan happen, an entry covers every act, and with the
// launch's outcomes as oracle the plan is the walk.
func TestAPlanOfARandomFlowIsWhatTheRestartDoes(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		e.Exec("CREATE TABLE done (job text NOT NULL, step text NOT NULL)")
		for seed := range flowsOn(url, 4, 1, 10) {
			for _, wild := range []bool{false, true} {
				require.NoError(t, plannedCase(t.Context(), e, uint64(seed), wild, nil), "seed %d, wild: %v", seed, wild)
			}
		}
	})
}

func plannedCase(ctx context.Context, e *testengine.Engine, seed uint64, wild bool, f *froms) error {
	w := &weather{Engine: e, name: fmt.Sprintf("planned%d-%v", seed, wild), random: rand.New(rand.NewPCG(seed, 2)), retries: seed%2 == 0, tries: true, wild: wild}
	j := w.job()
	w.storm = rand.New(rand.NewPCG(seed, 3))
	for range 200 {
		reads := &remembering{Repository: e.Repository.Ports()}
		last, err := newestOf(ctx, e, w.name)
		if err != nil {
			return err
		}
		var from *journal.From
		if from, w.from, err = f.next(ctx, reads, j, last); err != nil {
			return err
		}
		plan, err := planner.NewFrom(ctx, reads, j, last, from, nil)
		if err != nil {
			return err
		}
		seen := &witness{job: w.name, steps: map[core.Visit]core.Outcome{}, decided: map[core.Visit]string{}, skipped: map[core.Visit]bool{}, undecided: map[string]string{}}
		w.observer = seen
		exec, err := w.launch(j)
		w.trail()
		told, oerr := planner.NewFrom(ctx, reads, j, last, from, seen)
		if oerr != nil {
			return oerr
		}
		if err := seen.compare(plan, told, w.natural && err == nil && len(seen.undecided) == 0 && !strings.Contains(exec.Error, "undecided")); err != nil {
			return fmt.Errorf("flow %s\nlaunch %d from %q: %w\nplan %v\nwith the outcomes %v\ndid %v", describe(j.Flow), w.launches, w.from, err, texts(plan.Entries), texts(told.Entries), seen.acts)
		}
		if err == nil && exec.Status == core.StatusCompleted {
			return nil
		}
	}
	return nil
}

// answerable is a condition that asks nothing, whether an earlier step completed, or a value that it
// promoted.
func (w *weather) answerable(holds bool, before []string) *model.Condition {
	c := &model.Condition{Text: "constant", Holds: func(context.Context, *core.View) (bool, error) { return holds, nil }}
	isUnknown := func(model.Unknown) bool { return false }
	if len(before) > 0 {
		name := before[w.random.IntN(len(before))]
		switch w.random.IntN(4) {
		case 0:
			c.Text, isUnknown = "completed "+name, func(u model.Unknown) bool { return u.Step(name) }
			c.Holds = func(_ context.Context, v *core.View) (bool, error) {
				return (v.Steps[name].Status == core.StatusCompleted) == holds, nil
			}
		case 1:
			c.Text, isUnknown = "promoted "+name, func(u model.Unknown) bool { return u.Context }
			c.Holds = func(_ context.Context, v *core.View) (bool, error) {
				_, there := v.Job.Context.Get(name)
				return there == holds, nil
			}
		case 2:
			return c // of Go code: a plan does not know its answer
		}
	}
	c.Try = func(ctx context.Context, v *core.View, unknown model.Unknown) (held, known bool, err error) {
		if isUnknown(unknown) {
			return false, false, nil
		}
		held, err = c.Holds(ctx, v)
		return held, true, err
	}
	return c
}

func newestOf(ctx context.Context, e *testengine.Engine, name string) (*core.JobExecution, error) {
	page, err := e.Repository.Executions(ctx, ports.ExecutionFilter{JobName: name, Limit: 1})
	if err != nil || len(page) == 0 {
		return nil, err
	}
	return &page[0], nil
}

type remembering struct {
	ports.Repository
	steps  map[string]ports.StepHistory
	visits []ports.JournalRow
	asked  bool
}

func (r *remembering) LastSteps(ctx context.Context, id core.JobInstanceID, since core.JobExecutionID) (map[string]ports.StepHistory, error) {
	if r.steps != nil {
		return clone(r.steps), nil
	}
	steps, err := r.Repository.LastSteps(ctx, id, since)
	r.steps = clone(steps)
	return steps, err
}

func clone(steps map[string]ports.StepHistory) map[string]ports.StepHistory {
	own := map[string]ports.StepHistory{}
	for name, h := range steps {
		own[name] = h
	}
	return own
}

func (r *remembering) Visits(ctx context.Context, id core.JobInstanceID, since core.JobExecutionID) ([]ports.JournalRow, error) {
	if r.asked {
		return slices.Clone(r.visits), nil
	}
	r.asked = true
	visits, err := r.Repository.Visits(ctx, id, since)
	r.visits = slices.Clone(visits)
	return visits, err
}

type did struct {
	visit core.Visit
	act   planner.Act
}

func (d did) String() string {
	return fmt.Sprintf("%s:%d:%s %s", d.visit.Flow, d.visit.Ordinal, d.visit.Element, d.act)
}

type witness struct {
	job     string
	mu      sync.Mutex
	acts    []did
	steps   map[core.Visit]core.Outcome
	decided map[core.Visit]string
	skipped map[core.Visit]bool
	// undecided are the errors of flows with a record in which a decision failed, by the
	// prefix of the flows inside.
	undecided map[string]string
}

func (s *witness) Observe(_ context.Context, e core.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e := e.(type) {
	case core.StepPassed:
		if e.Step.JobName == s.job {
			s.acts = append(s.acts, did{e.Visit, planner.ActPass})
		}
	case core.StepStarted:
		if e.Step.JobName != s.job || e.Step.Visit.Ordinal == 0 || e.Step.Visit.Flow == ports.FlowFinally {
			return
		}
		act := planner.ActRun
		if e.Restarted {
			act = planner.ActResume
		}
		s.acts = append(s.acts, did{e.Step.Visit, act})
	case core.StepEnded:
		if e.Step.JobName == s.job && e.Step.Visit.Ordinal > 0 {
			out := core.Outcome{Status: e.Step.Status, ExitCode: e.Step.ExitCode}
			if strings.HasPrefix(e.Step.Error, "rolled back with group") { // after it had completed
				out = core.Outcome{Status: core.StatusCompleted, ExitCode: core.ExitCompleted}
			}
			s.steps[e.Step.Visit] = out
			if strings.Contains(e.Step.Error, "undecided") {
				s.undecided[e.Step.Visit.Inner(0)] = e.Step.Error
			}
		}
	case core.Decided:
		if !e.Kept {
			s.acts = append(s.acts, did{e.Visit, planner.ActAsk})
			s.decided[e.Visit] = e.Verdict
		}
	case core.ElementSkipped:
		if e.JobName == s.job {
			s.skipped[e.Visit] = true
		}
	}
}

func (s *witness) Step(v core.Visit) (core.Outcome, bool) {
	out, ok := s.steps[v]
	if ok {
		return out, true
	}
	// The end of a step in a group is observed only with the end of the group.
	further := slices.ContainsFunc(s.acts, func(d did) bool { return d.visit.Flow == v.Flow && d.visit.Ordinal > v.Ordinal })
	return core.Outcome{Status: core.StatusCompleted, ExitCode: core.ExitCompleted}, further
}

func (s *witness) Decision(v core.Visit) (string, bool, error) {
	verdict, ok := s.decided[v]
	for flow, text := range s.undecided {
		if !ok && strings.HasPrefix(v.Flow, flow) && strings.Contains(text, "decision "+v.Element+": undecided") {
			return "", false, errors.New("undecided")
		}
	}
	return verdict, ok, nil
}

func (s *witness) Condition(v core.Visit) (holds, ok bool) { return !s.skipped[v], true }

func (s *witness) compare(plan, told *planner.Plan, natural bool) error {
	actual := byFlow(s.acts)
	for flow, entries := range byFlow(doneBy(plan.Entries, true)) {
		if err := alike(entries, actual[flow], natural); err != nil {
			return fmt.Errorf("the certain entries of flow %q: %w", flow, err)
		}
	}
	for _, act := range s.acts {
		if !slices.ContainsFunc(plan.Entries, func(e planner.Entry) bool { return covers(e, act) }) {
			return fmt.Errorf("no entry covers %v", act)
		}
	}
	complete := byFlow(doneBy(told.Entries, false))
	for flow, acts := range actual {
		if err := alike(acts, complete[flow], true); err != nil {
			return fmt.Errorf("with the outcomes, flow %q: %w", flow, err)
		}
	}
	if natural && told.Outcome != nil && told.Outcome.Status == core.StatusCompleted {
		for flow, entries := range complete {
			if !slices.Equal(entries, actual[flow]) {
				return fmt.Errorf("with the outcomes, flow %q: planned %v, done %v", flow, entries, actual[flow])
			}
		}
	}
	return nil
}

// alike fails unless one list is the beginning of the other; for a launch that was not cut off, the
// first must be.
func alike(first, second []did, whole bool) error {
	n := min(len(first), len(second))
	if !slices.Equal(first[:n], second[:n]) || whole && len(first) > len(second) {
		return fmt.Errorf("%v against %v", first, second)
	}
	return nil
}

func byFlow(acts []did) map[string][]did {
	flows := map[string][]did{}
	for _, d := range acts {
		flows[d.visit.Flow] = append(flows[d.visit.Flow], d)
	}
	return flows
}

// doneBy returns the entries that a witness sees. A repetition begins like a first run.
func doneBy(entries []planner.Entry, certain bool) []did {
	var acts []did
	for _, e := range entries {
		if certain && e.Certainty != planner.Certain || e.Act == planner.ActStop || e.Act == planner.ActFinally || e.Act == planner.ActSkip || e.Kind == "condition" {
			continue
		}
		act := e.Act
		if act == planner.ActRepeat {
			act = planner.ActRun
		}
		acts = append(acts, did{e.Visit, act})
	}
	return acts
}

func covers(e planner.Entry, act did) bool {
	if e.Element != act.visit.Element {
		return false
	}
	same := e.Act == act.act || e.Act == planner.ActRepeat && act.act == planner.ActRun
	return same || e.MayRepeat || e.Certainty != planner.Certain
}

func texts(entries []planner.Entry) []string {
	var list []string
	for _, e := range entries {
		list = append(list, fmt.Sprintf("%s:%d:%s %s %s %s", e.Flow, e.Ordinal, e.Element, e.Act, e.Certainty, e.Text))
	}
	return list
}
