package jobfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// checkStops refuses a stop that each restart would reach again: no earlier element runs again once it is
// complete (rule F3), so the answer stays the same. A decision may use everything before it, also in the
// outer flows: changes means that something there may run.
func (l *loader) checkStops(list *listDef, changes bool) {
	for i, e := range list.elements {
		changes = changes || e.mayChange()
		for _, inner := range e.lists {
			l.checkStops(inner, changes)
		}
		for _, t := range e.stops() {
			from := i
			if t.restart != "" {
				from = slices.IndexFunc(list.elements, func(other *elementDef) bool { return other.name == t.restart })
			}
			if from < 0 || from > i || e.kind == decideKind && changes || slices.ContainsFunc(list.elements[from:i+1], (*elementDef).mayChange) {
				continue
			}
			at := t.at
			if t.restartAt != nil {
				at = t.restartAt
			}
			l.stopsAgain(at, e, list.elements[from])
		}
	}
}

func (l *loader) stopsAgain(at *yamlfile.Node, e, from *elementDef) {
	what := fmt.Sprintf("a restart would stop at %s again", e.name)
	cure := "let it continue behind " + e.name + ": {stop: {restart: ELEMENT}}"
	if from != e {
		what = fmt.Sprintf("a restart from %s would stop at %s again", from.name, e.name)
		cure = "give the step that is to run again allow_start_if_complete: true, or " + cure
	}
	l.problems.Add(at, what, "what is complete is passed, so nothing changes for it; "+cure)
}

// stops are the targets that stop the job if everything in the element has completed: a step that stops runs
// again itself.
func (e *elementDef) stops() []target {
	var found []target
	switch e.kind {
	case decideKind:
		for _, m := range e.model.decide.Choose {
			if m.Next != nil && m.Next.target.name == "stop" && m.Next.target.restart != "" {
				found = append(found, m.Next.target)
			}
		}
	case splitKind, flowKind, atomicKind:
		next, ok := model.Next(e.edges, core.StatusCompleted, core.ExitCompleted)
		if !ok || next.Kind != model.TargetStop {
			return nil
		}
		for _, c := range e.keys.Next.cases {
			if c.target.name == "stop" && c.target.restart == next.Restart && c.target.message == next.Message {
				return []target{c.target}
			}
		}
	case stepKind, jobKind:
	}
	return found
}

// mayChange reports whether a completed element may have another outcome in a restart: it, or a step in it,
// runs again, or failed and led on, or code of the application decides.
func (e *elementDef) mayChange() bool {
	if e.decider != nil || e.step != nil && e.step.allowsStart() || slices.ContainsFunc(e.choices, choiceDef.mayChange) {
		return true
	}
	if e.kind != decideKind && slices.ContainsFunc(e.edges, func(t model.Transition) bool {
		return !t.Success && t.Pattern != core.ExitCompleted && t.Target.Kind == model.TargetElement
	}) {
		return true
	}
	return slices.ContainsFunc(e.lists, func(list *listDef) bool { return slices.ContainsFunc(list.elements, (*elementDef).mayChange) })
}

// mayChange reports whether the condition uses values that do not come from a step: a parameter that does not
// identify, the environment, the job.
func (c choiceDef) mayChange() bool {
	return c.when != nil && slices.ContainsFunc([]string{"params.", "env.", "job."}, func(root string) bool { return strings.Contains(c.when.text, root) })
}
