package model_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/model"
)

func decision(name string, edges ...model.Transition) *model.DecisionElement {
	return &model.DecisionElement{Name: name, Next: edges}
}

func next(name string) model.Transition {
	return model.Transition{Pattern: "*", Success: true, Target: model.Target{Kind: model.TargetElement, Name: name}}
}

func ended() model.Transition { return model.Transition{Target: model.Target{Kind: model.TargetEnd}} }

func TestAFlowIsCheckedAsAGraphWithAllThatIsInIt(t *testing.T) {
	t.Parallel()
	inner := model.Flow{Elements: []model.Element{decision("x", next("b")), decision("a", ended())}}
	err := model.Flow{Elements: []model.Element{
		decision("a", next("b")), &model.FlowElement{Name: "b", Flow: inner, Next: []model.Transition{next("nowhere")}},
		&model.SplitElement{Name: "c", Branches: []model.Flow{{}}},
	}}.Validate()
	var kinds []model.FlowProblemKind
	var joined interface{ Unwrap() []error }
	require.ErrorAs(t, err, &joined)
	for _, e := range joined.Unwrap() {
		var p *model.FlowProblem
		require.True(t, errors.As(e, &p))
		kinds = append(kinds, p.Kind)
	}
	require.Equal(t, []model.FlowProblemKind{model.DuplicateElement, model.UnknownTarget, model.TargetOutOfScope, model.EmptyFlow}, kinds)
}

func TestAPatternHasOneTransitionAndItsExitCodeCanBeStored(t *testing.T) {
	t.Parallel()
	on := func(pattern string, success bool, exit string) model.Transition {
		return model.Transition{Pattern: pattern, Success: success, Target: model.Target{Kind: model.TargetEnd, Exit: exit}}
	}
	f := model.Flow{Elements: []model.Element{decision("a", on("GO*", false, "A"), on("*", true, ""), on("", false, "B"))}}
	require.NoError(t, f.Validate(), "the same pattern, once for successes and once for all")
	f = model.Flow{Elements: []model.Element{decision("a", on("GO*", false, "A"), on("*", false, ""), on("", false, "B"), on("X", false, "A\x00"))}}
	require.EqualError(t, f.Validate(), "element a: exit code * has two transitions\n"+`element a: exit code "A\x00": it contains a NUL`)
}

func TestElementsThatCannotBeReachedAndLoopsWithoutAnExitAreSuspicious(t *testing.T) {
	t.Parallel()
	f := model.Flow{Elements: []model.Element{
		decision("a", next("b")), decision("b", next("a")), decision("lost", ended()),
	}}
	require.NoError(t, f.Validate())
	var found []model.FlowProblem
	for _, p := range f.Suspicious() {
		found = append(found, *p)
	}
	require.Equal(t, []model.FlowProblem{
		{Kind: model.EndlessLoop, Element: "a"}, {Kind: model.EndlessLoop, Element: "b"}, {Kind: model.Unreachable, Element: "lost"},
	}, found)

	left := model.Transition{Pattern: "DONE", Target: model.Target{Kind: model.TargetStop, Restart: "c"}}
	f = model.Flow{Elements: []model.Element{decision("a", next("b")), decision("b", next("a"), left), decision("c")}}
	require.Empty(t, f.Suspicious(), "a restart point is a way, and a stop an exit")
}

func TestAnElementLeadsToItselfInALoopOnly(t *testing.T) {
	t.Parallel()
	f := model.Flow{Elements: []model.Element{decision("a", next("b")), decision("b", next("c"), model.Transition{
		Pattern: "AGAIN", Target: model.Target{Kind: model.TargetElement, Name: "a"},
	}), decision("c")}}
	require.True(t, f.Leads("a", "a"))
	require.True(t, f.Leads("b", "c"))
	require.False(t, f.Leads("c", "c"))
	require.False(t, f.Leads("c", "a"))
}
