package core_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func decision(name string, edges ...core.Transition) *core.DecisionElement {
	return &core.DecisionElement{Name: name, Next: edges}
}

func next(name string) core.Transition {
	return core.Transition{Pattern: "*", Success: true, Target: core.Target{Kind: core.TargetElement, Name: name}}
}

func ended() core.Transition { return core.Transition{Target: core.Target{Kind: core.TargetEnd}} }

func TestAFlowIsCheckedAsAGraphWithAllThatIsInIt(t *testing.T) {
	t.Parallel()
	inner := core.Flow{Elements: []core.Element{decision("x", next("b")), decision("a", ended())}}
	err := core.Flow{Elements: []core.Element{
		decision("a", next("b")), &core.FlowElement{Name: "b", Flow: inner, Next: []core.Transition{next("nowhere")}},
		&core.SplitElement{Name: "c", Branches: []core.Flow{{}}},
	}}.Validate()
	var kinds []core.FlowProblemKind
	var joined interface{ Unwrap() []error }
	require.ErrorAs(t, err, &joined)
	for _, e := range joined.Unwrap() {
		var p *core.FlowProblem
		require.True(t, errors.As(e, &p))
		kinds = append(kinds, p.Kind)
	}
	require.Equal(t, []core.FlowProblemKind{core.DuplicateElement, core.UnknownTarget, core.TargetOutOfScope, core.EmptyFlow}, kinds)
}

func TestAPatternHasOneTransitionAndItsExitCodeCanBeStored(t *testing.T) {
	t.Parallel()
	on := func(pattern string, success bool, exit string) core.Transition {
		return core.Transition{Pattern: pattern, Success: success, Target: core.Target{Kind: core.TargetEnd, Exit: exit}}
	}
	f := core.Flow{Elements: []core.Element{decision("a", on("GO*", false, "A"), on("*", true, ""), on("", false, "B"))}}
	require.NoError(t, f.Validate(), "the same pattern, once for successes and once for all")
	f = core.Flow{Elements: []core.Element{decision("a", on("GO*", false, "A"), on("*", false, ""), on("", false, "B"), on("X", false, "A\x00"))}}
	require.EqualError(t, f.Validate(), "element a: exit code * has two transitions\n"+`element a: exit code "A\x00": it contains a NUL`)
}

func TestElementsThatCannotBeReachedAndLoopsWithoutAnExitAreSuspicious(t *testing.T) {
	t.Parallel()
	f := core.Flow{Elements: []core.Element{
		decision("a", next("b")), decision("b", next("a")), decision("lost", ended()),
	}}
	require.NoError(t, f.Validate())
	var found []core.FlowProblem
	for _, p := range f.Suspicious() {
		found = append(found, *p)
	}
	require.Equal(t, []core.FlowProblem{
		{Kind: core.EndlessLoop, Element: "a"}, {Kind: core.EndlessLoop, Element: "b"}, {Kind: core.Unreachable, Element: "lost"},
	}, found)

	left := core.Transition{Pattern: "DONE", Target: core.Target{Kind: core.TargetStop, Restart: "c"}}
	f = core.Flow{Elements: []core.Element{decision("a", next("b")), decision("b", next("a"), left), decision("c")}}
	require.Empty(t, f.Suspicious(), "a restart point is a way, and a stop an exit")
}

func TestAnElementLeadsToItselfInALoopOnly(t *testing.T) {
	t.Parallel()
	f := core.Flow{Elements: []core.Element{decision("a", next("b")), decision("b", next("c"), core.Transition{
		Pattern: "AGAIN", Target: core.Target{Kind: core.TargetElement, Name: "a"},
	}), decision("c")}}
	require.True(t, f.Leads("a", "a"))
	require.True(t, f.Leads("b", "c"))
	require.False(t, f.Leads("c", "c"))
	require.False(t, f.Leads("c", "a"))
}
