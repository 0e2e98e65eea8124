package jobfile

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// elementKind is the key that determines the kind of an element.
type elementKind string

const (
	stepKind   elementKind = "step"
	decideKind elementKind = "decide"
	splitKind  elementKind = "split"
	flowKind   elementKind = "flow"
	atomicKind elementKind = "atomic"
	jobKind    elementKind = "job"
)

func elementKinds() []elementKind {
	return []elementKind{stepKind, decideKind, splitKind, flowKind, atomicKind, jobKind}
}

func kindNames() []string {
	var names []string
	for _, kind := range elementKinds() {
		names = append(names, string(kind))
	}
	return names
}

// kindList lists the names of the kinds and the use of a template, for messages.
func kindList() string { return strings.Join(append(kindNames(), "use"), ", ") }

// article is the name of an element of the kind in messages.
func (k elementKind) article() string {
	switch k {
	case decideKind:
		return "a decision"
	case atomicKind:
		return "an atomic group"
	case jobKind:
		return "a child job"
	case stepKind, splitKind, flowKind:
	}
	return "a " + string(k)
}

func (k elementKind) word() string {
	_, word, _ := strings.Cut(k.article(), " ")
	return word
}

// model makes the model of the element's kind, to be decoded into.
func (m *elementModel) model() reflect.Value {
	switch m.kind {
	case decideKind:
		m.decide = &decideModel{}
		return reflect.ValueOf(m.decide).Elem()
	case splitKind:
		m.split = &splitModel{}
		return reflect.ValueOf(m.split).Elem()
	case flowKind:
		m.flow = &flowModel{}
		return reflect.ValueOf(m.flow).Elem()
	case atomicKind:
		m.atomic = &atomicModel{}
		return reflect.ValueOf(m.atomic).Elem()
	case jobKind:
		m.job = &childModel{}
		return reflect.ValueOf(m.job).Elem()
	case stepKind:
	}
	m.step = &stepModel{}
	return reflect.ValueOf(m.step).Elem()
}

// common returns the decoded name and the keys that all elements have.
func (m *elementModel) common() (name string, keys *elementKeys) {
	switch m.kind {
	case decideKind:
		return m.decide.Decide, &m.decide.elementKeys
	case splitKind:
		return m.split.Split, &m.split.elementKeys
	case flowKind:
		return m.flow.Flow, &m.flow.elementKeys
	case atomicKind:
		return m.atomic.Atomic, &m.atomic.elementKeys
	case jobKind:
		return m.job.Job, &m.job.elementKeys
	case stepKind:
	}
	return m.step.Step, &m.step.elementKeys
}

// elementDef is a checked element.
type elementDef struct {
	kind  elementKind
	name  string
	at    *yamlfile.Node // the name
	model *elementModel
	keys  *elementKeys
	list  *listDef
	when  *condition
	edges []model.Transition
	// step is set for a step and a child job.
	step *stepDef
	// A decision has choices or a decider.
	choices []choiceDef
	decider *componentUse
	// lists are the flows of a split, a flow and a group.
	lists []*listDef
	// on are the placements of the branches of a split.
	on []*core.Placement
}

// choiceDef is one path of a decision; the last one has no condition.
type choiceDef struct {
	when    *condition
	verdict string
}

// listDef is one flow: elements that may lead to each other.
type listDef struct {
	elements []*elementDef
	// parent is the element that contains the list; nil means the job.
	parent *elementDef
	// log is the longest possible name of the list's log; empty means that it is the job's.
	log string
	// finally marks the job's `finally`.
	finally bool
	// ranks are the elements' numbers by name; ahead is how far each element leads by edges to the next
	// element alone. Both are computed on first use, once all elements, or all edges, are known.
	ranks map[string]int
	ahead []int
}

func (d *listDef) rank(name string) (n int, ok bool) {
	if len(d.ranks) == 0 && len(d.elements) > 0 {
		d.ranks = make(map[string]int, len(d.elements))
		for i, e := range slices.Backward(d.elements) {
			d.ranks[e.name] = i
		}
	}
	n, ok = d.ranks[name]
	return n, ok
}

func (d *listDef) find(name string) *elementDef {
	if n, ok := d.rank(name); ok {
		return d.elements[n]
	}
	return nil
}

func (d *listDef) names() []string {
	names := make([]string, len(d.elements))
	for i, e := range d.elements {
		names[i] = e.name
	}
	return names
}

func (d *listDef) walk(visit func(e *elementDef)) {
	for _, e := range d.elements {
		visit(e)
		for _, inner := range e.lists {
			inner.walk(visit)
		}
	}
}

// declareElements collects the elements of the file and their names.
func (l *loader) declareElements() {
	f := l.file
	l.elements = map[string]*elementDef{}
	l.refused = map[string]bool{}
	f.flow = l.declareList(f.model.Flow, f.doc.Root.Get("flow"), "the flow", nil)
	f.finally = l.declareList(f.model.Finally, f.doc.Root.Get("finally"), "finally", nil)
	f.finally.finally = true
	for _, e := range f.finally.elements {
		if e.kind != stepKind {
			l.problems.Add(e.model.node.KeyOf(string(e.kind)), "finally takes steps only, and this is "+e.kind.article(), "")
		}
		if e.keys.Next.node != nil {
			l.problems.Add(e.model.node.KeyOf("next"), "there is no next in finally", "its steps run one after the other, each whatever became of the one before")
		}
	}
}

func (l *loader) declareList(models []elementModel, at *yamlfile.Node, what string, of *elementDef) *listDef {
	list := &listDef{parent: of}
	l.nameLog(list)
	if at != nil && at.Kind == yamlfile.List && len(at.Items) == 0 && !l.brokenUses {
		l.problems.Add(at, what+" is empty", "it needs at least one element")
	}
	for i := range models {
		m := &models[i]
		if m.kind == "" {
			l.refuse(m.node)
			continue
		}
		if e := l.declare(m, list); e != nil {
			list.elements = append(list.elements, e)
		}
	}
	return list
}

// nameLog refuses a list if its log could have a name that is too long for the journal.
func (l *loader) nameLog(list *listDef) {
	of := list.parent
	if of == nil || len(of.list.log) > core.MaxFlowName { // reported
		return
	}
	list.log = core.LongestInner(of.list.log, of.name, len(of.lists))
	if size := len(list.log); size > core.MaxFlowName {
		l.problems.Add(of.at, fmt.Sprintf("%s is too deep: the names of the elements around it have %d bytes", of.name, size),
			fmt.Sprintf("at most %d are allowed, with what the history adds to each: use shorter names, or fewer flows in flows", core.MaxFlowName))
	}
}

// refuse keeps the name of an element that could not be read, so that targets that lead to it are not
// reported as well.
func (l *loader) refuse(n *yamlfile.Node) {
	if n == nil {
		return
	}
	for _, key := range kindNames() {
		if name := n.Get(key); name != nil {
			l.refused[name.Text] = true
		}
	}
}

// declare makes the definition of an element and of its nested ones.
func (l *loader) declare(m *elementModel, in *listDef) *elementDef {
	name, keys := m.common()
	at := m.node.Get(string(m.kind))
	if !l.declareName(m, name, at) {
		return nil
	}
	e := &elementDef{kind: m.kind, name: name, at: at, model: m, keys: keys, list: in}
	l.elements[name] = e
	switch m.kind {
	case stepKind:
		e.step = &stepDef{name: name, model: m.step, element: e}
	case jobKind:
		e.step = &stepDef{name: name, element: e, child: &childDef{model: m.job}}
	case splitKind:
		l.declareBranches(e)
	case flowKind:
		e.lists = []*listDef{l.declareList(m.flow.Steps, m.node.Get("steps"), "flow "+name, e)}
	case atomicKind:
		e.lists = []*listDef{l.declareList(m.atomic.Steps, m.node.Get("steps"), "group "+name, e)}
	case decideKind:
	}
	if e.step != nil {
		l.file.steps = append(l.file.steps, e.step)
		l.stepNames = append(l.stepNames, name)
		l.isStep[name] = true
	}
	return e
}

func (l *loader) declareBranches(e *elementDef) {
	at := e.model.node.Get("branches")
	if at == nil || at.Kind != yamlfile.List {
		return // reported by the decoder
	}
	if len(at.Items) == 0 {
		l.problems.Add(at, "split "+e.name+" has no branches", "branches are lists of elements, which run side by side")
	}
	l.checkAtLeastOne(e.model.node, "parallel", e.model.split.Parallel)
	for i, branch := range e.model.split.Branches {
		e.lists = append(e.lists, l.declareList(branch, at.Items[i], fmt.Sprintf("branch %d of split %s", i+1, e.name), e))
	}
}

// declareName checks the name of an element; false means that it has no usable name.
func (l *loader) declareName(m *elementModel, name string, at *yamlfile.Node) bool {
	if at == nil || at.Kind != yamlfile.Scalar || at.Empty || at.Bad {
		return false // reported by the decoder
	}
	good := false
	switch other := l.elements[name]; {
	case name == "" && at.Text != "": // reported: it has ${...}
		return false
	case !identifier.MatchString(name):
		l.problems.Add(at, fmt.Sprintf("the name %q of a %s is no identifier", name, m.kind.word()), identifierHint)
	case len(name) > core.MaxElementName:
		l.problems.Add(at, fmt.Sprintf("the name of a %s has %d bytes", m.kind.word(), len(name)), fmt.Sprintf("at most %d are allowed", core.MaxElementName))
	case slices.Contains(reserved(), name):
		l.problems.Add(at, fmt.Sprintf("%s cannot be named %s", m.kind.article(), name), "end, fail and stop are where a flow ends")
	case other != nil:
		hint := "the other one is " + other.at.In(at)
		if use := other.at.Use(); use != nil && at.Use() != nil {
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

// checkElements checks the elements, but not their targets.
func (l *loader) checkElements(list *listDef) {
	list.walk(func(e *elementDef) {
		e.when = l.condition(e.keys.When, "when", location{element: e, step: e.stepName()})
		switch e.kind {
		case stepKind:
			l.checkStep(e.step)
		case jobKind:
			l.checkChild(e)
		case decideKind:
			l.checkDecision(e)
		case atomicKind:
			l.checkGroup(e)
		case splitKind, flowKind:
		}
	})
}

func (e *elementDef) stepName() string {
	if e.step == nil {
		return ""
	}
	return e.name
}

// checkGroup checks an atomic group: tasklet steps in one transaction (rule T6).
func (l *loader) checkGroup(e *elementDef) {
	if t := e.model.atomic.Transaction; t != nil {
		l.checkPositive(t.Node, "timeout", t.Timeout)
		if t.Node.Get("propagation") != nil {
			l.problems.Add(t.Node.KeyOf("propagation"), "transaction.propagation is not for an atomic group: it begins its transaction", "its steps have a propagation")
		}
	}
	for _, inner := range e.lists[0].elements {
		if inner.kind != stepKind {
			l.problems.Add(inner.model.node.KeyOf(string(inner.kind)), "an atomic group takes tasklet steps only, and this is "+inner.kind.article(), "")
			continue
		}
		m := inner.step.model
		for key, why := range map[string]string{
			"chunk":     "a chunk step has a transaction of its own per chunk",
			"tasks":     "tasks have transactions of their own",
			"partition": "parts work side by side, and a transaction has one connection",
		} {
			if m.Node.Get(key) != nil {
				l.problems.Add(m.Node.KeyOf(key), fmt.Sprintf("step %s is in an atomic group, which takes tasklet steps only", inner.name), why)
			}
		}
		for _, c := range inner.keys.Next.cases {
			if c.target.name == "stop" {
				l.problems.Add(c.target.at, "nothing in an atomic group can stop the job", "the group commits or rolls back as a whole: use fail, or stop behind the group")
			}
		}
	}
}

// checkDecision checks choices or decider.
func (l *loader) checkDecision(e *elementDef) {
	m := e.model.decide
	at := m.Node.KeyOf("decide")
	switch {
	case m.Choose != nil && m.Decider != nil:
		l.problems.Add(m.Node.KeyOf("decider"), fmt.Sprintf("decision %s has choices and a decider", e.name), "it takes `choose`, or `decider` with `next`")
	case m.Node.Get("choose") == nil && m.Node.Get("decider") == nil && hasOtherName(m.Node, "choose", reflect.TypeFor[decideModel]()):
	case m.Node.Get("choose") == nil && m.Node.Get("decider") == nil:
		l.problems.Add(at, fmt.Sprintf("decision %s decides nothing", e.name), "it takes `choose`, or `decider` with `next`")
	case m.Node.Get("choose") != nil && e.keys.Next.node != nil:
		l.problems.Add(m.Node.KeyOf("next"), "a decision with choices has no next", "each choice has its own")
	case m.Decider != nil && e.keys.Next.node == nil:
		l.problems.Add(m.Node.KeyOf("decider"), "a decision with a decider needs next", "such as next: {APPROVED: publish, \"*\": {stop: {message: TEXT}}}")
	}
	if m.Decider != nil {
		e.decider = l.resolve(registry.KindDecider, m.Decider, location{element: e})
	}
	if list := m.Node.Get("choose"); list != nil && list.Kind == yamlfile.List && len(list.Items) == 0 {
		l.problems.Add(list, "choose is an empty list", "the last choice has no when")
	}
	for i := range m.Choose {
		l.checkChoice(e, i)
	}
}

func (l *loader) checkChoice(e *elementDef, i int) {
	m := &e.model.decide.Choose[i]
	if m.Node == nil {
		e.choices = append(e.choices, choiceDef{})
		return // reported by the decoder
	}
	last := i == len(e.model.decide.Choose)-1
	switch written := m.Node.Get("when"); {
	case last && written != nil:
		l.problems.Add(m.Node.KeyOf("when"), "the last choice has no when", "add one for what no other choice takes: - next: ELEMENT")
	case !last && written == nil:
		l.problems.Add(m.Node, "only the last choice has no when", "those behind it would never be taken")
	}
	e.choices = append(e.choices, choiceDef{when: l.condition(m.When, "when", location{element: e})})
	if m.Next != nil && m.Next.target.name == "stop" && m.Next.target.restart == "" {
		l.problems.Add(m.Next.target.at, "a stop in a choice needs restart", "what it looked at does not change, so a restart would stop here again: {stop: {restart: ELEMENT}}")
	}
}
