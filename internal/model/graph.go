package model

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// FlowProblem is an error in a flow as a graph.
type FlowProblem struct {
	Kind FlowProblemKind
	// Element is the location; Target the wrong name or pattern there, or empty.
	Element, Target string
}

// FlowProblemKind is the kind of the error.
type FlowProblemKind string

// The problems of flows. The last two can still run, so Validate does not report them: a job file that
// has them is refused.
const (
	EmptyFlow        FlowProblemKind = "empty_flow"
	DuplicateElement FlowProblemKind = "duplicate_element"
	UnknownTarget    FlowProblemKind = "unknown_target"
	// TargetOutOfScope is an element of another flow: those inside a flow, a split or a group can be
	// left only by their end.
	TargetOutOfScope FlowProblemKind = "target_out_of_scope"
	Unreachable      FlowProblemKind = "unreachable"
	// EndlessLoop is an element from which, as long as nothing fails, no end of its flow can be
	// reached.
	EndlessLoop FlowProblemKind = "endless_loop"
	// DuplicatePattern is an exit code with two transitions of one element.
	DuplicatePattern FlowProblemKind = "duplicate_pattern"
	// BadExitCode is an exit code of a transition that could not be stored.
	BadExitCode FlowProblemKind = "bad_exit_code"
)

// Error returns the problem as a sentence.
func (p *FlowProblem) Error() string {
	switch p.Kind {
	case EmptyFlow:
		if p.Element == "" {
			return "the flow is empty: no steps configured"
		}
		return fmt.Sprintf("element %s: a flow in it is empty", p.Element)
	case DuplicateElement:
		return fmt.Sprintf("element %s appears twice", p.Element)
	case UnknownTarget:
		return fmt.Sprintf("element %s: its target %s does not exist", p.Element, p.Target)
	case TargetOutOfScope:
		return fmt.Sprintf("element %s: element %s is in another flow", p.Element, p.Target)
	case DuplicatePattern:
		return fmt.Sprintf("element %s: exit code %s has two transitions", p.Element, p.Target)
	case BadExitCode:
		return fmt.Sprintf("element %s: %v", p.Element, core.CheckExitCode(p.Target))
	case Unreachable:
		return fmt.Sprintf("element %s cannot be reached", p.Element)
	case EndlessLoop:
		return fmt.Sprintf("element %s is in a loop without an exit", p.Element)
	}
	return string(p.Kind)
}

// Validate reports everything that makes the flow impossible to run, joined; each is a *FlowProblem.
func (f Flow) Validate() error {
	names := map[string]int{}
	f.count(names)
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if names[name] > 1 {
			errs = append(errs, &FlowProblem{Kind: DuplicateElement, Element: name})
		}
	}
	return errors.Join(append(errs, f.targets("", names)...)...)
}

func (f Flow) count(names map[string]int) {
	for _, e := range f.Elements {
		names[e.ElementName()]++
		for _, inner := range Flows(e) {
			inner.count(names)
		}
	}
}

// targets checks that every edge leads to an element of the same flow.
func (f Flow) targets(in string, all map[string]int) []error {
	if len(f.Elements) == 0 {
		return []error{&FlowProblem{Kind: EmptyFlow, Element: in}}
	}
	var errs []error
	here := map[string]bool{"": true}
	for _, e := range f.Elements {
		here[e.ElementName()] = true
	}
	for _, e := range f.Elements {
		errs = append(errs, edgeProblems(e)...)
		for _, t := range e.Edges() {
			for _, name := range []string{t.Target.elementName(), t.Target.Restart} {
				if here[name] {
					continue
				}
				kind := UnknownTarget
				if all[name] > 0 {
					kind = TargetOutOfScope
				}
				errs = append(errs, &FlowProblem{Kind: kind, Element: e.ElementName(), Target: name})
			}
		}
		for _, inner := range Flows(e) {
			errs = append(errs, inner.targets(e.ElementName(), all)...)
		}
	}
	return errs
}

// edgeProblems checks the transitions of one element. A pattern for successes alone may coexist with
// the same pattern for all outcomes: Next prefers it.
func edgeProblems(e Element) (errs []error) {
	type key struct {
		pattern string
		success bool
	}
	seen := map[key]bool{}
	for _, t := range e.Edges() {
		k := key{t.pattern(), t.Success}
		if seen[k] {
			errs = append(errs, &FlowProblem{Kind: DuplicatePattern, Element: e.ElementName(), Target: k.pattern})
		}
		seen[k] = true
		if core.CheckExitCode(t.Target.Exit) != nil {
			errs = append(errs, &FlowProblem{Kind: BadExitCode, Element: e.ElementName(), Target: t.Target.Exit})
		}
	}
	return errs
}

func (t Target) elementName() string {
	if t.Kind == TargetElement {
		return t.Name
	}
	return ""
}

// Suspicious reports elements that run but make no sense: unreachable elements, and loops without an
// exit, in this flow and nested ones.
func (f Flow) Suspicious() []*FlowProblem {
	var problems []*FlowProblem
	if len(f.Elements) > 0 {
		g := f.graph()
		reached := closure([]int{0}, g.successors)
		leaving := closure(f.exits(), g.predecessors)
		for i, e := range f.Elements {
			switch {
			case !reached[i]:
				problems = append(problems, &FlowProblem{Kind: Unreachable, Element: e.ElementName()})
			case !leaving[i]:
				problems = append(problems, &FlowProblem{Kind: EndlessLoop, Element: e.ElementName()})
			}
		}
	}
	for _, e := range f.Elements {
		for _, inner := range Flows(e) {
			problems = append(problems, inner.Suspicious()...)
		}
	}
	return problems
}

// graph has the edges of a flow by the numbers of its elements, restart points included. It is made
// once for a question about the whole flow: looking up names one by one would take quadratic time.
type graph struct{ successors, predecessors [][]int }

func (f Flow) graph() graph {
	number := make(map[string]int, len(f.Elements))
	for i, e := range f.Elements {
		if _, twice := number[e.ElementName()]; !twice {
			number[e.ElementName()] = i
		}
	}
	g := graph{make([][]int, len(f.Elements)), make([][]int, len(f.Elements))}
	for i, e := range f.Elements {
		for _, t := range e.Edges() {
			for _, name := range []string{t.Target.elementName(), t.Target.Restart} {
				if to, here := number[name]; here && name != "" {
					g.successors[i] = append(g.successors[i], to)
					g.predecessors[to] = append(g.predecessors[to], i)
				}
			}
		}
	}
	return g
}

// closure reports for every element whether it can be reached from the given ones.
func closure(from []int, next [][]int) []bool {
	reached := make([]bool, len(next))
	for _, i := range from {
		reached[i] = true
	}
	for queue := from; len(queue) > 0; queue = queue[1:] {
		for _, to := range next[queue[0]] {
			if !reached[to] {
				reached[to] = true
				queue = append(queue, to)
			}
		}
	}
	return reached
}

// Leads reports whether transitions of the flow lead from one element to another, restart points not
// included; an element leads to itself in a loop only.
func (f Flow) Leads(from, to string) bool { return f.reached(from)[to] }

// LoopOf returns the elements that lead to the element and follow it; empty if it is in no loop of this
// flow.
func (f Flow) LoopOf(name string) map[string]bool {
	loop, reached := map[string]bool{}, f.reached(name)
	if !reached[name] {
		return loop
	}
	for other := range reached {
		if f.Leads(other, name) {
			loop[other] = true
		}
	}
	return loop
}

// reached returns the elements that transitions lead to from the element, restart points not included.
func (f Flow) reached(from string) map[string]bool {
	elements := make(map[string]Element, len(f.Elements))
	for _, e := range f.Elements {
		elements[e.ElementName()] = e
	}
	reached := map[string]bool{}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		e, ok := elements[queue[0]]
		if !ok {
			continue
		}
		for _, t := range e.Edges() {
			if name := t.Target.elementName(); name != "" && !reached[name] {
				reached[name] = true
				queue = append(queue, name)
			}
		}
	}
	return reached
}

// IsInLoop reports whether the element, or one around it, leads to itself.
func (f Flow) IsInLoop(name string) bool {
	for _, e := range f.Elements {
		isIn := e.ElementName() == name
		for _, inner := range Flows(e) {
			if inner.IsInLoop(name) {
				return true
			}
			isIn = isIn || inner.has(name)
		}
		if isIn {
			return f.Leads(e.ElementName(), e.ElementName())
		}
	}
	return false
}

func (f Flow) has(name string) bool {
	return slices.ContainsFunc(f.Elements, func(e Element) bool {
		return e.ElementName() == name || slices.ContainsFunc(Flows(e), func(inner Flow) bool { return inner.has(name) })
	})
}

// exits returns the elements at which the flow may end without a failure.
func (f Flow) exits() []int {
	var exits []int
	for i, e := range f.Elements {
		ends := !slices.ContainsFunc(e.Edges(), func(t Transition) bool { return t.pattern() == "*" })
		for _, t := range e.Edges() {
			ends = ends || t.Target.Kind != TargetElement
		}
		if ends {
			exits = append(exits, i)
		}
	}
	return exits
}
