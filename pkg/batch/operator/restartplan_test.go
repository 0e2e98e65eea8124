package operator

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// world makes random jobs whose steps, decisions and conditions behave at random in
// every execution but the last one, in which each step completes.
type world struct {
	*rand.Rand
	e    *testengine.Engine
	made int
	last bool
	text strings.Builder // the job, for a failure
}

func (w *world) name(kind string) string {
	w.made++
	return fmt.Sprintf("%s%d", kind, w.made)
}

func (w *world) chance(percent int) bool { return w.IntN(100) < percent }

// flow makes elements that lead forward.
func (w *world) flow(depth int) core.Flow {
	n := 1 + w.IntN(4)
	var f core.Flow
	for range n {
		f.Elements = append(f.Elements, w.element(depth))
	}
	for i, at := range f.Elements {
		next := w.edges(f, i)
		switch e := at.(type) {
		case *core.StepElement:
			e.Next = next
		case *core.DecisionElement:
			e.Next = next
		case *core.SplitElement:
			e.Next = next
		case *core.FlowElement:
			e.Next = next
		case *core.AtomicElement:
		}
		fmt.Fprintf(&w.text, "%*s%s %v\n", 2*depth, "", at.ElementName(), next)
	}
	return f
}

func (w *world) element(depth int) core.Element {
	kind := w.IntN(10)
	switch {
	case kind == 0:
		return &core.DecisionElement{Name: w.name("decision"), When: w.when(), Decide: func(context.Context, *core.View) (string, error) {
			return []string{"A", "B"}[w.IntN(2)], nil
		}}
	case kind == 1 && depth < 2:
		return &core.SplitElement{Name: w.name("split"), When: w.when(), Branches: []core.Flow{w.flow(depth + 1), w.flow(depth + 1)}, Workers: 1}
	case kind == 2 && depth < 2:
		return &core.FlowElement{Name: w.name("flow"), When: w.when(), Flow: w.flow(depth + 1), AsStep: w.chance(30)}
	}
	s := w.e.Tasklet(w.name("step"), tx.Attr{}, func(_ context.Context, c *core.StepContribution) error {
		switch {
		case w.last:
		case w.chance(25):
			return errors.New("out of luck")
		case w.chance(15):
			c.ExitCode = "ODD"
		}
		return nil
	})
	s.When, s.AllowStartIfComplete = w.when(), w.chance(15)
	return s
}

func (w *world) when() *core.Condition {
	if !w.chance(15) {
		return nil
	}
	return &core.Condition{Text: "luck", Holds: func(context.Context, *core.View) (bool, error) { return w.chance(60), nil }}
}

// edges lead to the element behind, and for some exit codes elsewhere.
func (w *world) edges(f core.Flow, i int) []core.Transition {
	target := func(at int) core.Target {
		if at >= len(f.Elements) {
			return core.Target{Kind: core.TargetEnd}
		}
		return core.Target{Kind: core.TargetElement, Name: f.Elements[at].ElementName()}
	}
	list := []core.Transition{{Pattern: "*", Success: true, Target: target(i + 1)}}
	for _, code := range []string{core.ExitFailed, "ODD", "A"} {
		switch w.IntN(8) {
		case 0:
			list = append(list, core.Transition{Pattern: code, Target: target(i + 1 + w.IntN(2))})
		case 1:
			stop := core.Target{Kind: core.TargetStop}
			if w.chance(70) {
				stop.Restart = f.Elements[w.IntN(len(f.Elements))].ElementName()
			}
			list = append(list, core.Transition{Pattern: code, Target: stop})
		case 2:
			list = append(list, core.Transition{Pattern: code, Target: core.Target{Kind: core.TargetFail}})
		}
	}
	return list
}

// events of one execution.
func (w *world) events(id core.JobExecutionID) (passed, resumed, started []string) {
	for _, event := range w.e.Events() {
		switch e := event.(type) {
		case core.StepPassed:
			passed = append(passed, e.Step.Name)
		case core.StepStarted:
			switch {
			case strings.HasPrefix(e.Step.Name, "flow"): // its steps are named
			case e.Step.JobExecutionID != id:
			case e.Restarted:
				resumed = append(resumed, e.Step.Name)
			default:
				started = append(started, e.Step.Name)
			}
		}
	}
	return passed, resumed, started
}

func TestWhatAPlanSaysOfARestartComesTrue(t *testing.T) {
	t.Parallel()
	url := testdb.SQLite(t)
	restarts, exact := 0, 0
	for seed := range uint64(120) {
		w := &world{Rand: rand.New(rand.NewPCG(seed, 7)), e: testengine.New(t, url)}
		j := &core.Job{Name: fmt.Sprintf("job%d", seed), Restartable: true, Flow: w.flow(0), Definition: core.Definition{Hash: "h", Text: "t"}}
		if j.Flow.Validate() != nil {
			continue
		}
		exec := w.e.Run(j)
		if w.chance(40) && mayRestart(exec.Status) {
			exec = w.e.Run(j)
		}
		if !mayRestart(exec.Status) {
			continue
		}
		stored, err := w.e.Repository.Execution(t.Context(), exec.ID)
		require.NoError(t, err)
		history, err := w.e.Repository.LastSteps(t.Context(), exec.InstanceID, 0)
		require.NoError(t, err)
		plan, err := restartPlan(t.Context(), stored, j, history)
		require.NoError(t, err)

		before := len(w.passedSoFar())
		w.last = true
		exec = w.e.Run(j)
		passed, resumed, started := w.events(exec.ID)
		passed = passed[before:]
		restarts++
		detail := fmt.Sprintf("seed %d, %s\nplan %+v\npassed %v\nresumed %v\nstarted %v\n%s", seed, exec.Status, plan, passed, resumed, started, w.text.String())
		asks := len(stepsOf(plan, PlanAsk)) > 0
		if asks && exec.Status == core.StatusStopped {
			continue // what an answer stopped did not begin elsewhere
		}
		requireSubset(t, stepsOf(plan, PlanPass), passed, detail)
		requireSubset(t, stepsOf(plan, PlanResume), resumed, detail)
		var unconditional []string
		for _, e := range plan.Entries {
			if (e.Action == PlanRun || e.Action == PlanRepeat) && e.Certainty != CertainIf {
				unconditional = append(unconditional, e.Step)
			}
		}
		requireSubset(t, unconditional, started, detail)
		if asks {
			continue
		}
		exact++
		requireSubset(t, passed, stepsOf(plan, PlanPass), detail)
		requireSubset(t, resumed, stepsOf(plan, PlanResume), detail)
		requireSubset(t, started, slices.Concat(stepsOf(plan, PlanRun), stepsOf(plan, PlanRepeat)), detail)
	}
	t.Logf("%d restarts, %d of them known whole", restarts, exact)
	require.Greater(t, exact, 20)
}

func (w *world) passedSoFar() []string {
	passed, _, _ := w.events(0)
	return passed
}

func mayRestart(s core.Status) bool { return s == core.StatusFailed || s == core.StatusStopped }

// stepsOf are the steps, or other elements, of the entries with this act.
func stepsOf(p RestartPlan, act PlanAct) []string {
	var names []string
	for _, e := range p.Entries {
		if e.Action != act {
			continue
		}
		if e.Step == "" {
			e.Step = e.Element
		}
		names = append(names, e.Step)
	}
	return names
}

func requireSubset(t *testing.T, part, whole []string, detail string) {
	t.Helper()
	for _, name := range part {
		require.Contains(t, whole, name, detail)
	}
}
