package check

import (
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/yamlfile"
)

type elements struct {
	*scopes
	byName  map[string]*tree.Element
	refused map[string]bool
}

func (l *elements) declareElements() {
	f := l.file
	f.Flow = l.declareList(f.Model.Flow, f.Doc.Root.Get("flow"), "the flow", nil)
	f.Finally = l.declareList(f.Model.Finally, f.Doc.Root.Get("finally"), "finally", nil)
	f.Finally.Finally = true
	for _, e := range f.Finally.Elements {
		if e.Kind != language.StepKind {
			l.problems.Add(e.Model.Node.KeyOf(string(e.Kind)), "finally takes steps only, and this is "+e.Kind.Article(), "")
		}
		if e.Keys.Next.Node != nil {
			l.problems.Add(e.Model.Node.KeyOf("next"), "finally takes no next", "its steps run one after the other, even if one fails")
		}
	}
}

func (l *elements) declareList(models []language.Element, at *yamlfile.Node, what string, of *tree.Element) *tree.List {
	list := &tree.List{Parent: of}
	l.nameLog(list)
	if at != nil && at.Kind == yamlfile.List && len(at.Items) == 0 && !l.brokenUses {
		l.problems.Add(at, what+" is empty", "it needs at least one element")
	}
	for i := range models {
		m := &models[i]
		if m.Kind == "" {
			l.refuse(m.Node)
			continue
		}
		if e := l.declare(m, list); e != nil {
			list.Elements = append(list.Elements, e)
		}
	}
	return list
}

func (l *elements) nameLog(list *tree.List) {
	of := list.Parent
	if of == nil || len(of.List.Log) > ports.MaxFlowName { // reported
		return
	}
	list.Log = ports.LongestInner(of.List.Log, of.Name, len(of.Lists))
	if size := len(list.Log); size > ports.MaxFlowName {
		l.problems.Add(of.At, fmt.Sprintf("%s is too deep: the names of the elements around it have %d bytes", of.Name, size),
			fmt.Sprintf("at most %d are allowed, including what the history adds to each: use shorter names, or nest fewer flows", ports.MaxFlowName))
	}
}

// refuse keeps the name of an unreadable element, so that targets that lead to it are not reported
// as well.
func (l *elements) refuse(n *yamlfile.Node) {
	if n == nil {
		return
	}
	for _, key := range language.KindNames() {
		if name := n.Get(key); name != nil {
			l.refused[name.Text] = true
		}
	}
}

func (l *elements) declare(m *language.Element, in *tree.List) *tree.Element {
	name, keys := m.Common()
	at := m.Node.Get(string(m.Kind))
	if !l.declareName(m, name, at) {
		return nil
	}
	e := &tree.Element{Kind: m.Kind, Name: name, At: at, Model: m, Keys: keys, List: in}
	l.byName[name] = e
	switch m.Kind {
	case language.StepKind:
		e.Step = &tree.Step{Name: name, Model: m.Step, Element: e}
	case language.JobKind:
		e.Step = &tree.Step{Name: name, Element: e, Child: &tree.Child{Model: m.Job}}
	case language.SplitKind:
		l.declareBranches(e)
	case language.FlowKind:
		e.Lists = []*tree.List{l.declareList(m.Flow.Steps, m.Node.Get("steps"), "flow "+name, e)}
	case language.AtomicKind:
		e.Lists = []*tree.List{l.declareList(m.Atomic.Steps, m.Node.Get("steps"), "group "+name, e)}
	case language.DecideKind:
	}
	if e.Step != nil {
		l.file.Steps = append(l.file.Steps, e.Step)
		l.stepNames = append(l.stepNames, name)
		l.isStep[name] = true
	}
	return e
}

func (l *elements) declareBranches(e *tree.Element) {
	at := e.Model.Node.Get("branches")
	if at == nil || at.Kind != yamlfile.List {
		return // reported by the decoder
	}
	if len(at.Items) == 0 {
		l.problems.Add(at, "split "+e.Name+" has no branches", "branches are lists of elements, which run side by side")
	}
	l.checkAtLeastOne(e.Model.Node, "parallel", e.Model.Split.Parallel)
	for i, branch := range e.Model.Split.Branches {
		e.Lists = append(e.Lists, l.declareList(branch, at.Items[i], fmt.Sprintf("branch %d of split %s", i+1, e.Name), e))
	}
}

func (l *elements) declareName(m *language.Element, name string, at *yamlfile.Node) bool {
	if at == nil || at.Kind != yamlfile.Scalar || at.Empty || at.Bad {
		return false // reported by the decoder
	}
	good := false
	switch other := l.byName[name]; {
	case name == "" && at.Text != "": // reported: it has ${...}
		return false
	case !language.Identifier.MatchString(name):
		l.problems.Add(at, fmt.Sprintf("the name %q of a %s is not an identifier", name, m.Kind.Word()), language.IdentifierHint)
	case len(name) > ports.MaxElementName:
		l.problems.Add(at, fmt.Sprintf("the name of a %s has %d bytes", m.Kind.Word(), len(name)), fmt.Sprintf("at most %d are allowed", ports.MaxElementName))
	case slices.Contains(language.Reserved(), name):
		l.problems.Add(at, fmt.Sprintf("%s cannot be named %s", m.Kind.Article(), name), "end, fail and stop are where a flow ends")
	case other != nil:
		hint := "the other one is " + other.At.In(at)
		if use := other.At.Use(); use != nil && at.Use() != nil {
			hint = "the other one came through " + use.What + " " + use.At.In(at) + ": a template that is used twice has an argument in its names, such as " + name + "_${with.NAME}"
		}
		l.problems.Add(at, fmt.Sprintf("there are two elements named %s", name), hint)
		l.refused[name] = true
		return false
	default:
		good = true
	}
	if !good {
		l.refused[name] = true
	}
	return true
}
