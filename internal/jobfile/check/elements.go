package check

import (
	"fmt"
	"reflect"

	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

type elementChecks struct {
	*scopes
	steps    *steps
	children *children
}

func (l *elementChecks) checkElements(list *tree.List) {
	list.Walk(func(e *tree.Element) {
		e.When = l.condition(e.Keys.When, "when", location{element: e, step: e.StepName()})
		switch e.Kind {
		case language.StepKind:
			l.steps.checkStep(e.Step)
		case language.JobKind:
			l.children.checkChild(e)
		case language.DecideKind:
			l.checkDecision(e)
		case language.AtomicKind:
			l.checkGroup(e)
		case language.SplitKind, language.FlowKind:
		}
	})
}

// checkGroup checks an atomic group: tasklet steps in one transaction (rule T6).
func (l *elementChecks) checkGroup(e *tree.Element) {
	if t := e.Model.Atomic.Transaction; t != nil {
		l.checkPositive(t.Node, "timeout", t.Timeout)
		if t.Node.Get("propagation") != nil {
			l.problems.Add(t.Node.KeyOf("propagation"), "transaction.propagation is not for an atomic group: it begins its transaction", "its steps have a propagation")
		}
	}
	for _, inner := range e.Lists[0].Elements {
		if inner.Kind != language.StepKind {
			l.problems.Add(inner.Model.Node.KeyOf(string(inner.Kind)), "an atomic group takes tasklet steps only, and this is "+inner.Kind.Article(), "")
			continue
		}
		m := inner.Step.Model
		for key, why := range map[string]string{
			"chunk":     "a chunk step has a transaction of its own per chunk",
			"tasks":     "tasks have transactions of their own",
			"partition": "parts work side by side, and a transaction has one connection",
		} {
			if m.Node.Get(key) != nil {
				l.problems.Add(m.Node.KeyOf(key), fmt.Sprintf("step %s is in an atomic group, which takes tasklet steps only", inner.Name), why)
			}
		}
		for _, c := range inner.Keys.Next.Cases {
			if c.Target.Name == "stop" {
				l.problems.Add(c.Target.At, "nothing in an atomic group can stop the job", "the group commits or rolls back as a whole: use fail, or stop after the group")
			}
		}
	}
}

func (l *elementChecks) checkDecision(e *tree.Element) {
	m := e.Model.Decide
	at := m.Node.KeyOf("decide")
	switch {
	case m.Choose != nil && m.Decider != nil:
		l.problems.Add(m.Node.KeyOf("decider"), fmt.Sprintf("decision %s has choices and a decider", e.Name), "it takes `choose`, or `decider` with `next`")
	case m.Node.Get("choose") == nil && m.Node.Get("decider") == nil && language.HasOtherName(m.Node, "choose", reflect.TypeFor[language.Decide]()):
	case m.Node.Get("choose") == nil && m.Node.Get("decider") == nil:
		l.problems.Add(at, fmt.Sprintf("decision %s has no choices and no decider", e.Name), "it takes `choose`, or `decider` with `next`")
	case m.Node.Get("choose") != nil && e.Keys.Next.Node != nil:
		l.problems.Add(m.Node.KeyOf("next"), "a decision with choices has no next", "each choice has its own")
	case m.Decider != nil && e.Keys.Next.Node == nil:
		l.problems.Add(m.Node.KeyOf("decider"), "a decision with a decider needs next", "such as next: {APPROVED: publish, \"*\": {stop: {message: TEXT}}}")
	}
	if m.Decider != nil {
		e.Decider = l.resolve(registry.KindDecider, m.Decider, location{element: e})
	}
	if list := m.Node.Get("choose"); list != nil && list.Kind == yamlfile.List && len(list.Items) == 0 {
		l.problems.Add(list, "choose is an empty list", "the last choice has no when")
	}
	for i := range m.Choose {
		l.checkChoice(e, i)
	}
}

func (l *elementChecks) checkChoice(e *tree.Element, i int) {
	m := &e.Model.Decide.Choose[i]
	if m.Node == nil {
		e.Choices = append(e.Choices, tree.Choice{})
		return // reported by the decoder
	}
	last := i == len(e.Model.Decide.Choose)-1
	switch written := m.Node.Get("when"); {
	case last && written != nil:
		l.problems.Add(m.Node.KeyOf("when"), "the last choice has no when", "add a last choice without a condition: - next: ELEMENT")
	case !last && written == nil:
		l.problems.Add(m.Node, "only the last choice may lack a when", "the choices after it would never be taken")
	}
	e.Choices = append(e.Choices, tree.Choice{When: l.condition(m.When, "when", location{element: e})})
	if m.Next != nil && m.Next.Target.Name == "stop" && m.Next.Target.Restart == "" {
		l.problems.Add(m.Next.Target.At, "a stop in a choice needs restart", "its conditions have the same result in a restart, which would stop here again: {stop: {restart: ELEMENT}}")
	}
}
