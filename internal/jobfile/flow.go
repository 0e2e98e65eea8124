package jobfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// graph connects the elements by edges and checks the paths.
type graph struct {
	*elements
	// broken means that elements or targets are wrong, so that the graph cannot be checked.
	broken bool
}

// checkFlow checks the targets of the elements, makes their edges explicit, and checks the graph.
func (l *graph) checkFlow() {
	before := l.problems.Reports()
	l.connectEdges(l.file.flow)
	l.checkPatterns(l.file.flow)
	if l.problems.Reports() == before {
		l.checkStops(l.file.flow, false)
	}
	l.broken = l.broken || l.brokenUses || l.problems.Reports() > before || len(l.refused) > 0
	if l.broken {
		return
	}
	for _, p := range skeleton(l.file.flow).Suspicious() {
		e := l.byName[p.Element]
		switch p.Kind {
		case core.Unreachable:
			l.problems.Add(e.at, fmt.Sprintf("%s cannot be reached", e.name), "no element leads to it")
		case core.EndlessLoop:
			if !hasPath(e.list, e, e) {
				continue // it leads into the loop
			}
			l.problems.Add(e.at, fmt.Sprintf("%s is in a loop without an exit", e.name), "as long as nothing fails, no end of the flow can be reached from it")
		case core.EmptyFlow, core.DuplicateElement, core.UnknownTarget, core.TargetOutOfScope, core.DuplicatePattern, core.BadExitCode: // reported already
		}
	}
}

// connectEdges makes the edges of a list's elements, and of the lists in them.
func (l *graph) connectEdges(list *listDef) {
	for i, e := range list.elements {
		following := core.Target{Kind: core.TargetEnd}
		if i+1 < len(list.elements) {
			following = core.Target{Kind: core.TargetElement, Name: list.elements[i+1].name}
		}
		if len(e.choices) > 0 {
			l.choiceEdges(e, following)
		} else {
			e.edges = l.edges(e, following)
		}
		for _, inner := range e.lists {
			l.connectEdges(inner)
		}
	}
}

// edges turns `next` into transitions (rule F1), and adds those that the file leaves out: a completed element
// leads to the following one, whatever its exit code; any other outcome ends the flow.
func (l *graph) edges(e *elementDef, following core.Target) []core.Transition {
	var edges []core.Transition
	if next := &e.keys.Next; next.node != nil {
		for _, c := range next.cases {
			target, ok := l.target(e, c.target)
			if ok && c.target.name == e.name && (c.pattern == "" || c.pattern == "*") {
				l.problems.Add(c.target.at, fmt.Sprintf("next: %s leads to itself", e.name), "")
				ok = false
			}
			switch {
			case !ok:
			case c.pattern == "":
				following = target
			default:
				edges = append(edges, core.Transition{Pattern: c.pattern, Target: target})
			}
		}
		l.checkEnds(next)
		if len(next.cases) < max(1, len(next.node.Entries)) && !isTargetNode(next.node) {
			l.broken = true // reported by the decoder
		}
	} else if e.model.node.Get("next") != nil {
		l.broken = true
	}
	if !slices.ContainsFunc(edges, func(t core.Transition) bool { return t.Pattern == "*" }) {
		edges = append(edges, core.Transition{Pattern: "*", Success: true, Target: following})
	}
	return edges
}

// choiceEdges gives every choice a verdict and an edge. Verdicts are stored and shown, so they name their
// target.
func (l *graph) choiceEdges(e *elementDef, following core.Target) {
	verdicts := map[string]core.Target{}
	if e.when != nil { // a decision may be skipped
		verdicts[core.ExitNoop] = following
		e.edges = append(e.edges, core.Transition{Pattern: core.ExitNoop, Target: following})
	}
	for i := range e.choices {
		m := &e.model.decide.Choose[i]
		if m.Next == nil {
			l.broken = true // reported by the decoder
			continue
		}
		target, ok := l.target(e, m.Next.target)
		if !ok {
			continue
		}
		if target.Kind == core.TargetElement && target.Name == e.name {
			l.problems.Add(m.Next.target.at, fmt.Sprintf("next: %s leads to itself", e.name), "")
			continue
		}
		name := verdictOf(target)
		for n := 2; ; n++ {
			other, taken := verdicts[name]
			if taken && other == target {
				break
			}
			if !taken {
				verdicts[name] = target
				e.edges = append(e.edges, core.Transition{Pattern: name, Target: target})
				break
			}
			name = fmt.Sprintf("%s-%d", verdictOf(target), n)
		}
		e.choices[i].verdict = name
	}
}

// verdictOf is the name of a choice in the history.
func verdictOf(t core.Target) string {
	switch {
	case t.Kind == core.TargetElement:
		return t.Name
	case t.Exit != "" && !strings.ContainsAny(t.Exit, "*?"):
		return t.Exit
	}
	return string(t.Kind)
}

// target resolves a target: an element of the same list, or an end.
func (l *graph) target(e *elementDef, t target) (core.Target, bool) {
	switch t.name {
	case "end":
		return core.Target{Kind: core.TargetEnd, Exit: t.exit}, true
	case "fail":
		return core.Target{Kind: core.TargetFail, Exit: t.exit}, true
	case "stop":
		if t.restart != "" && !l.checkTargetHere(e, t.restart, t.restartAt, "restart", nil) {
			return core.Target{}, false
		}
		return core.Target{Kind: core.TargetStop, Restart: t.restart, Message: t.message}, true
	}
	if !l.checkTargetHere(e, t.name, t.at, "next", reserved()) {
		return core.Target{}, false
	}
	return core.Target{Kind: core.TargetElement, Name: t.name}, true
}

// checkTargetHere reports whether e can lead to the element of that name, and reports a problem if not.
func (l *graph) checkTargetHere(e *elementDef, name string, at *yamlfile.Node, key string, also []string) bool {
	if e.list.find(name) != nil {
		return true
	}
	allowed := append(e.list.names(), also...)
	switch {
	case l.refused[name], l.brokenUses && l.byName[name] == nil: // it was wrong itself
	case l.byName[name] != nil:
		l.problems.Add(at, fmt.Sprintf("%s: %s is in another flow", key, name), "one flow cannot lead into another; "+yamlfile.Suggest("", allowed))
	default:
		l.problems.Add(at, fmt.Sprintf("%s: there is no element %s", key, name), yamlfile.Suggest(name, allowed))
	}
	return false
}

// skeleton is the graph of a list, without the work.
func skeleton(list *listDef) core.Flow {
	var flow core.Flow
	for _, e := range list.elements {
		var inner []core.Flow
		for _, below := range e.lists {
			inner = append(inner, skeleton(below))
		}
		flow.Elements = append(flow.Elements, &core.SplitElement{Name: e.name, Branches: inner, Next: e.edges})
	}
	return flow
}

// checkEnds refuses an `end` that a failure reaches through a pattern that does not name it: the job would be
// COMPLETED.
func (l *graph) checkEnds(next *nextModel) {
	var all []core.Transition
	for _, c := range next.cases {
		if c.pattern != "" {
			all = append(all, core.Transition{Pattern: c.pattern, Target: core.Target{Name: c.pattern}})
		}
	}
	chosen, ok := core.Next(all, core.StatusFailed, core.ExitFailed)
	if !ok || chosen.Name == core.ExitFailed {
		return
	}
	for _, c := range next.cases {
		if c.pattern == chosen.Name && c.target.name == "end" {
			l.problems.Add(c.at, fmt.Sprintf("the pattern %q takes a failed step to end, and the job would be COMPLETED", c.pattern),
				"name it if that is meant: {FAILED: end}; or say where a failure goes: {FAILED: fail}")
		}
	}
}
