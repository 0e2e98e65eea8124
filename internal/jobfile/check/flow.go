package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type graph struct {
	*elements
	broken bool
}

func (l *graph) checkFlow() {
	before := l.problems.Reports()
	l.connectEdges(l.file.Flow)
	l.checkPatterns(l.file.Flow)
	if l.problems.Reports() == before {
		l.checkStops(l.file.Flow, false)
	}
	l.broken = l.broken || l.brokenUses || l.problems.Reports() > before || len(l.refused) > 0
	if l.broken {
		return
	}
	for _, p := range skeleton(l.file.Flow).Suspicious() {
		e := l.byName[p.Element]
		switch p.Kind {
		case model.Unreachable:
			l.problems.Add(e.At, fmt.Sprintf("%s cannot be reached", e.Name), "no element leads to it")
		case model.EndlessLoop:
			if !tree.HasPath(e.List, e, e) {
				continue // it leads into the loop
			}
			l.problems.Add(e.At, fmt.Sprintf("%s is in a loop without an exit", e.Name), "as long as nothing fails, no end of the flow can be reached from it")
		case model.EmptyFlow, model.DuplicateElement, model.UnknownTarget, model.TargetOutOfScope, model.DuplicatePattern, model.BadExitCode: // reported already
		}
	}
}

func (l *graph) connectEdges(list *tree.List) {
	for i, e := range list.Elements {
		following := model.Target{Kind: model.TargetEnd}
		if i+1 < len(list.Elements) {
			following = model.Target{Kind: model.TargetElement, Name: list.Elements[i+1].Name}
		}
		if len(e.Choices) > 0 {
			l.choiceEdges(e, following)
		} else {
			e.Edges = l.edges(e, following)
		}
		for _, inner := range e.Lists {
			l.connectEdges(inner)
		}
	}
}

// edges turns `next` into transitions (rule F1): by default a completed element leads to the
// following one, any other outcome ends the flow.
func (l *graph) edges(e *tree.Element, following model.Target) []model.Transition {
	var edges []model.Transition
	if next := &e.Keys.Next; next.Node != nil {
		for _, c := range next.Cases {
			target, ok := l.target(e, c.Target)
			if ok && c.Target.Name == e.Name && (c.Pattern == "" || c.Pattern == "*") {
				l.problems.Add(c.Target.At, fmt.Sprintf("next: %s leads to itself", e.Name), "")
				ok = false
			}
			switch {
			case !ok:
			case c.Pattern == "":
				following = target
			default:
				edges = append(edges, model.Transition{Pattern: c.Pattern, Target: target})
			}
		}
		l.checkEnds(next)
		if len(next.Cases) < max(1, len(next.Node.Entries)) && !language.IsTargetNode(next.Node) {
			l.broken = true // reported by the decoder
		}
	} else if e.Model.Node.Get("next") != nil {
		l.broken = true
	}
	if !slices.ContainsFunc(edges, func(t model.Transition) bool { return t.Pattern == "*" }) {
		edges = append(edges, model.Transition{Pattern: "*", Success: true, Target: following})
	}
	return edges
}

// Verdicts are stored and shown, so they name their target.
func (l *graph) choiceEdges(e *tree.Element, following model.Target) {
	verdicts := map[string]model.Target{}
	if e.When != nil { // a decision may be skipped
		verdicts[core.ExitNoop] = following
		e.Edges = append(e.Edges, model.Transition{Pattern: core.ExitNoop, Target: following})
	}
	for i := range e.Choices {
		m := &e.Model.Decide.Choose[i]
		if m.Next == nil {
			l.broken = true // reported by the decoder
			continue
		}
		target, ok := l.target(e, m.Next.Target)
		if !ok {
			continue
		}
		if target.Kind == model.TargetElement && target.Name == e.Name {
			l.problems.Add(m.Next.Target.At, fmt.Sprintf("next: %s leads to itself", e.Name), "")
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
				e.Edges = append(e.Edges, model.Transition{Pattern: name, Target: target})
				break
			}
			name = fmt.Sprintf("%s-%d", verdictOf(target), n)
		}
		e.Choices[i].Verdict = name
	}
}

func verdictOf(t model.Target) string {
	switch {
	case t.Kind == model.TargetElement:
		return t.Name
	case t.Exit != "" && !strings.ContainsAny(t.Exit, "*?"):
		return t.Exit
	}
	return string(t.Kind)
}

func (l *graph) target(e *tree.Element, t language.Target) (model.Target, bool) {
	switch t.Name {
	case "end":
		return model.Target{Kind: model.TargetEnd, Exit: t.Exit}, true
	case "fail":
		return model.Target{Kind: model.TargetFail, Exit: t.Exit}, true
	case "stop":
		if t.Restart != "" && !l.checkTargetHere(e, t.Restart, t.RestartAt, "restart", nil) {
			return model.Target{}, false
		}
		return model.Target{Kind: model.TargetStop, Restart: t.Restart, Message: t.Message}, true
	}
	if !l.checkTargetHere(e, t.Name, t.At, "next", language.Reserved()) {
		return model.Target{}, false
	}
	return model.Target{Kind: model.TargetElement, Name: t.Name}, true
}

func (l *graph) checkTargetHere(e *tree.Element, name string, at *yamlfile.Node, key string, also []string) bool {
	if e.List.Find(name) != nil {
		return true
	}
	allowed := append(e.List.Names(), also...)
	switch {
	case l.refused[name], l.brokenUses && l.byName[name] == nil: // it was wrong itself
	case l.byName[name] != nil:
		l.problems.Add(at, fmt.Sprintf("%s: %s is in another flow", key, name), "one flow cannot lead into another; "+yamlfile.Suggest("", allowed))
	default:
		l.problems.Add(at, fmt.Sprintf("%s: there is no element %s", key, name), yamlfile.Suggest(name, allowed))
	}
	return false
}

func skeleton(list *tree.List) model.Flow {
	var flow model.Flow
	for _, e := range list.Elements {
		var inner []model.Flow
		for _, below := range e.Lists {
			inner = append(inner, skeleton(below))
		}
		flow.Elements = append(flow.Elements, &model.SplitElement{Name: e.Name, Branches: inner, Next: e.Edges})
	}
	return flow
}

// checkEnds refuses an `end` that a failure reaches through a pattern that does not name it: the
// job would be COMPLETED.
func (l *graph) checkEnds(next *language.Next) {
	var all []model.Transition
	for _, c := range next.Cases {
		if c.Pattern != "" {
			all = append(all, model.Transition{Pattern: c.Pattern, Target: model.Target{Name: c.Pattern}})
		}
	}
	chosen, ok := model.Next(all, core.StatusFailed, core.ExitFailed)
	if !ok || chosen.Name == core.ExitFailed {
		return
	}
	for _, c := range next.Cases {
		if c.Pattern == chosen.Name && c.Target.Name == "end" {
			l.problems.Add(c.At, fmt.Sprintf("the pattern %q takes a failed step to end, and the job would be COMPLETED", c.Pattern),
				"name it if that is meant: {FAILED: end}; or say where a failure goes: {FAILED: fail}")
		}
	}
}

func (l *graph) checkStepRefs() {
	for _, m := range l.stepRefs {
		of := l.byName[m.step]
		if of == nil {
			continue
		}
		why := ""
		switch e := m.location.element; {
		case m.location.beforeFlow:
			why = "no step has run yet when an execution begins"
		case e == nil && of.Root().Finally:
			why = m.step + " runs in finally, which is later"
		case e != nil && !tree.MayPrecede(of, e) && (!l.broken || of.Root() != e.Root() || e.Root().Finally):
			why = fmt.Sprintf("%s never runs before %s", m.step, e.Name)
		}
		if why != "" {
			l.problems.AddAt(m.node, m.offset, fmt.Sprintf("steps.%s: %s", m.step, why), "")
		}
	}
}

func (l *graph) checkPatterns(list *tree.List) {
	list.Walk(func(e *tree.Element) {
		codes, known := exitCodes(e)
		if !known {
			return
		}
		for _, c := range e.Keys.Next.Cases {
			matches := func(code string) bool { return model.MatchPattern(c.Pattern, code) }
			if c.Pattern != "" && !slices.ContainsFunc(codes, matches) {
				l.problems.Add(c.At, fmt.Sprintf("%s %s never has the exit code %s", e.Kind.Word(), e.Name, c.Pattern), yamlfile.Suggest(c.Pattern, codes))
			}
		}
	})
}

func standardExits() []string {
	return []string{core.ExitCompleted, core.ExitFailed, core.ExitStopped, core.ExitNoop, core.ExitExpectFailed, core.ExitUnknown}
}

func exitCodes(e *tree.Element) (codes []string, known bool) {
	switch e.Kind {
	case language.StepKind:
		uses := e.Step.Components()
		for _, u := range append(uses, e.Step.Listeners...) {
			if u == nil || !u.Component.StandardExits {
				return nil, false
			}
		}
		return standardExits(), len(uses) > 0
	case language.SplitKind, language.FlowKind, language.AtomicKind:
		codes = standardExits()
		for _, list := range e.Lists {
			for _, inner := range list.Elements {
				below, known := exitCodes(inner)
				if !known && (inner.Kind != language.DecideKind || inner.Decider != nil) {
					return nil, false
				}
				codes = append(codes, below...)
				for _, t := range inner.Edges {
					if t.Target.Exit != "" {
						codes = append(codes, t.Target.Exit)
					}
				}
			}
		}
		slices.Sort(codes)
		return slices.Compact(codes), true
	case language.DecideKind, language.JobKind:
	}
	return nil, false
}

// checkStops refuses a stop that each restart would reach again: no earlier element runs again once
// it is complete (rule F3). changes means that something before, also in the outer flows, may run.
func (l *graph) checkStops(list *tree.List, changes bool) {
	for i, e := range list.Elements {
		changes = changes || mayChange(e)
		for _, inner := range e.Lists {
			l.checkStops(inner, changes)
		}
		for _, t := range stops(e) {
			from := i
			if t.Restart != "" {
				from = slices.IndexFunc(list.Elements, func(other *tree.Element) bool { return other.Name == t.Restart })
			}
			if from < 0 || from > i || e.Kind == language.DecideKind && changes || slices.ContainsFunc(list.Elements[from:i+1], mayChange) {
				continue
			}
			at := t.At
			if t.RestartAt != nil {
				at = t.RestartAt
			}
			l.stopsAgain(at, e, list.Elements[from])
		}
	}
}

func (l *graph) stopsAgain(at *yamlfile.Node, e, from *tree.Element) {
	what := fmt.Sprintf("a restart would stop at %s again", e.Name)
	cure := "let it continue after " + e.Name + ": {stop: {restart: ELEMENT}}"
	if from != e {
		what = fmt.Sprintf("a restart from %s would stop at %s again", from.Name, e.Name)
		cure = "give the step that is to run again allow_start_if_complete: true, or " + cure
	}
	l.problems.Add(at, what, "completed elements are passed over, so nothing changes for it; "+cure)
}

func stops(e *tree.Element) []language.Target {
	var found []language.Target
	switch e.Kind {
	case language.DecideKind:
		for _, m := range e.Model.Decide.Choose {
			if m.Next != nil && m.Next.Target.Name == "stop" && m.Next.Target.Restart != "" {
				found = append(found, m.Next.Target)
			}
		}
	case language.SplitKind, language.FlowKind, language.AtomicKind:
		next, ok := model.Next(e.Edges, core.StatusCompleted, core.ExitCompleted)
		if !ok || next.Kind != model.TargetStop {
			return nil
		}
		for _, c := range e.Keys.Next.Cases {
			if c.Target.Name == "stop" && c.Target.Restart == next.Restart && c.Target.Message == next.Message {
				return []language.Target{c.Target}
			}
		}
	case language.StepKind, language.JobKind:
	}
	return found
}

func mayChange(e *tree.Element) bool {
	if e.Decider != nil || e.Step != nil && e.Step.AllowsStart() || slices.ContainsFunc(e.Choices, mayChoose) {
		return true
	}
	if e.Kind != language.DecideKind && slices.ContainsFunc(e.Edges, func(t model.Transition) bool {
		return !t.Success && t.Pattern != core.ExitCompleted && t.Target.Kind == model.TargetElement
	}) {
		return true
	}
	return slices.ContainsFunc(e.Lists, func(list *tree.List) bool { return slices.ContainsFunc(list.Elements, mayChange) })
}

func mayChoose(c tree.Choice) bool {
	return c.When != nil && slices.ContainsFunc([]string{"params.", "env.", "job."}, func(root string) bool { return strings.Contains(c.When.Text, root) })
}
