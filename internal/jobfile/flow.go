package jobfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// checkFlow checks the targets of the elements, makes their edges explicit, and checks the graph.
func (l *loader) checkFlow() {
	before := l.problems.Reports()
	l.connectEdges(l.file.flow)
	l.checkPatterns(l.file.flow)
	if l.problems.Reports() == before {
		l.checkStops(l.file.flow, false)
	}
	l.brokenFlow = l.brokenFlow || l.brokenUses || l.problems.Reports() > before || len(l.refused) > 0
	if l.brokenFlow {
		return
	}
	for _, p := range skeleton(l.file.flow).Suspicious() {
		e := l.elements[p.Element]
		switch p.Kind {
		case model.Unreachable:
			l.problems.Add(e.at, fmt.Sprintf("%s cannot be reached", e.name), "no element leads to it")
		case model.EndlessLoop:
			if !hasPath(e.list, e, e) {
				continue // it leads into the loop
			}
			l.problems.Add(e.at, fmt.Sprintf("%s is in a loop without an exit", e.name), "as long as nothing fails, no end of the flow can be reached from it")
		case model.EmptyFlow, model.DuplicateElement, model.UnknownTarget, model.TargetOutOfScope, model.DuplicatePattern, model.BadExitCode: // reported already
		}
	}
}

// connectEdges makes the edges of a list's elements, and of the lists in them.
func (l *loader) connectEdges(list *listDef) {
	for i, e := range list.elements {
		following := model.Target{Kind: model.TargetEnd}
		if i+1 < len(list.elements) {
			following = model.Target{Kind: model.TargetElement, Name: list.elements[i+1].name}
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
func (l *loader) edges(e *elementDef, following model.Target) []model.Transition {
	var edges []model.Transition
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
				edges = append(edges, model.Transition{Pattern: c.pattern, Target: target})
			}
		}
		l.checkEnds(next)
		if len(next.cases) < max(1, len(next.node.Entries)) && !isTargetNode(next.node) {
			l.brokenFlow = true // reported by the decoder
		}
	} else if e.model.node.Get("next") != nil {
		l.brokenFlow = true
	}
	if !slices.ContainsFunc(edges, func(t model.Transition) bool { return t.Pattern == "*" }) {
		edges = append(edges, model.Transition{Pattern: "*", Success: true, Target: following})
	}
	return edges
}

// choiceEdges gives every choice a verdict and an edge. Verdicts are stored and shown, so they name their
// target.
func (l *loader) choiceEdges(e *elementDef, following model.Target) {
	verdicts := map[string]model.Target{}
	if e.when != nil { // a decision may be skipped
		verdicts[core.ExitNoop] = following
		e.edges = append(e.edges, model.Transition{Pattern: core.ExitNoop, Target: following})
	}
	for i := range e.choices {
		m := &e.model.decide.Choose[i]
		if m.Next == nil {
			l.brokenFlow = true // reported by the decoder
			continue
		}
		target, ok := l.target(e, m.Next.target)
		if !ok {
			continue
		}
		if target.Kind == model.TargetElement && target.Name == e.name {
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
				e.edges = append(e.edges, model.Transition{Pattern: name, Target: target})
				break
			}
			name = fmt.Sprintf("%s-%d", verdictOf(target), n)
		}
		e.choices[i].verdict = name
	}
}

// verdictOf is the name of a choice in the history.
func verdictOf(t model.Target) string {
	switch {
	case t.Kind == model.TargetElement:
		return t.Name
	case t.Exit != "" && !strings.ContainsAny(t.Exit, "*?"):
		return t.Exit
	}
	return string(t.Kind)
}

// target resolves a target: an element of the same list, or an end.
func (l *loader) target(e *elementDef, t target) (model.Target, bool) {
	switch t.name {
	case "end":
		return model.Target{Kind: model.TargetEnd, Exit: t.exit}, true
	case "fail":
		return model.Target{Kind: model.TargetFail, Exit: t.exit}, true
	case "stop":
		if t.restart != "" && !l.checkTargetHere(e, t.restart, t.restartAt, "restart", nil) {
			return model.Target{}, false
		}
		return model.Target{Kind: model.TargetStop, Restart: t.restart, Message: t.message}, true
	}
	if !l.checkTargetHere(e, t.name, t.at, "next", reserved()) {
		return model.Target{}, false
	}
	return model.Target{Kind: model.TargetElement, Name: t.name}, true
}

// checkTargetHere reports whether e can lead to the element of that name, and reports a problem if not.
func (l *loader) checkTargetHere(e *elementDef, name string, at *yamlfile.Node, key string, also []string) bool {
	if e.list.find(name) != nil {
		return true
	}
	allowed := append(e.list.names(), also...)
	switch {
	case l.refused[name], l.brokenUses && l.elements[name] == nil: // it was wrong itself
	case l.elements[name] != nil:
		l.problems.Add(at, fmt.Sprintf("%s: %s is in another flow", key, name), "one flow cannot lead into another; "+yamlfile.Suggest("", allowed))
	default:
		l.problems.Add(at, fmt.Sprintf("%s: there is no element %s", key, name), yamlfile.Suggest(name, allowed))
	}
	return false
}

// skeleton is the graph of a list, without the work.
func skeleton(list *listDef) model.Flow {
	var flow model.Flow
	for _, e := range list.elements {
		var inner []model.Flow
		for _, below := range e.lists {
			inner = append(inner, skeleton(below))
		}
		flow.Elements = append(flow.Elements, &model.SplitElement{Name: e.name, Branches: inner, Next: e.edges})
	}
	return flow
}

// checkEnds refuses an `end` that a failure reaches through a pattern that does not name it: the job would be
// COMPLETED.
func (l *loader) checkEnds(next *nextModel) {
	var all []model.Transition
	for _, c := range next.cases {
		if c.pattern != "" {
			all = append(all, model.Transition{Pattern: c.pattern, Target: model.Target{Name: c.pattern}})
		}
	}
	chosen, ok := model.Next(all, core.StatusFailed, core.ExitFailed)
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
