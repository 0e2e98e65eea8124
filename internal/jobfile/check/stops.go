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

// checkStops refuses a stop that each restart would reach again: no earlier element runs again once it is
// complete (rule F3), so the answer stays the same. A decision may use everything before it, also in the
// outer flows: changes means that something there may run.
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

// stops are the targets that stop the job if everything in the element has completed: a step that stops runs
// again itself.
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

// mayChange reports whether a completed element may have another outcome in a restart: it, or a step in it,
// runs again, or failed and led on, or code of the application decides.
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

// mayChoose reports whether the condition uses values that do not come from a step: a parameter that does not
// identify, the environment, the job.
func mayChoose(c tree.Choice) bool {
	return c.When != nil && slices.ContainsFunc([]string{"params.", "env.", "job."}, func(root string) bool { return strings.Contains(c.When.Text, root) })
}
