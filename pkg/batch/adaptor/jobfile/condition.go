package jobfile

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/jobfile/internal/strict"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// condition is a checked bare expression of type bool.
type condition struct {
	text string
	node *strict.Node
	prog *expression.Program
	own  bool
}

// condition checks a condition; nil if there is none, or a wrong one.
func (l *loader) condition(m *conditionText, key string, p place) *condition {
	if m == nil {
		return nil
	}
	prog, err := l.scope(p).compile(l.problems, m.node, m.text, 0, key+": ")
	switch {
	case err != nil:
		return nil // reported
	case prog.Type() != reflect.TypeFor[bool]():
		l.problems.Add(m.node, fmt.Sprintf("%s takes a bool, and this is %s", key, typeName(prog.Type())), "a comparison such as steps.load.skipped > 10 is one")
		return nil
	case prog.Nullable():
		l.problems.Add(m.node, key+" may be null", "give it a value for that case: "+m.text+" ?? false")
		return nil
	}
	return &condition{text: m.text, node: m.node, prog: prog, own: p.own}
}

// compiled is the condition of a running job; nil for nil.
func (c *condition) compiled(f *File) *core.Condition {
	if c == nil {
		return nil
	}
	return &core.Condition{
		Pure: true,
		Text: c.text,
		Holds: func(_ context.Context, view *core.View) (bool, error) {
			holds, err := c.values(f, view).compute(c.prog)
			if err != nil {
				return false, fmt.Errorf("%s: %w", f.at(c.node), err)
			}
			return holds == any(true), nil
		},
		Values: func(view *core.View) string { return c.explain(f, view) },
	}
}

func (c *condition) values(f *File, view *core.View) *values {
	v := f.viewValues(view)
	if c.own {
		v.own(f, view)
	}
	return v
}

// explain lists what the condition looks at, with the values: "read = 100,
// skipped = 3".
func (c *condition) explain(f *File, view *core.View) string {
	v := c.values(f, view)
	var parts []string
	for _, path := range c.prog.Vars() {
		var x any = v.vars
		for _, name := range strings.Split(path, ".") {
			inner, _ := x.(map[string]any)
			x = inner[name]
		}
		text := "null"
		if s, is := x.(string); is {
			text = fmt.Sprintf("%q", s)
		} else if x != nil {
			text = textOf(x)
		}
		parts = append(parts, path+" = "+text)
	}
	return strings.Join(parts, ", ")
}

// mention is a place of the file that speaks of a step.
type mention struct {
	node   *strict.Node
	offset int
	step   string
	place  place
}

// checkMentions refuses `steps.NAME` where that step cannot have run, whatever
// way the flow takes.
func (l *loader) checkMentions() {
	for _, m := range l.mentions {
		of := l.elements[m.step]
		if of == nil {
			continue
		}
		why := ""
		switch e := m.place.element; {
		case m.place.begin:
			why = "no step has run yet when an execution begins"
		case e == nil && of.root().finally:
			why = m.step + " runs in finally, which is later"
		case e != nil && !mayPrecede(of, e) && (!l.brokenFlow || of.root() != e.root() || e.root().finally):
			why = fmt.Sprintf("%s never runs before %s", m.step, e.name)
		}
		if why != "" {
			l.problems.AddAt(m.node, m.offset, fmt.Sprintf("steps.%s: %s", m.step, why), "")
		}
	}
}

// root is the outermost list that the element is in.
func (e *elementDef) root() *listDef {
	for e.in.of != nil {
		e = e.in.of
	}
	return e.in
}

// mayPrecede reports whether a may have run when b is reached. A branch of a split
// does not wait for the others: what they did is not known to it.
func mayPrecede(a, b *elementDef) bool {
	first, second := a.root(), b.root()
	if first != second {
		return second.finally
	}
	if first.finally {
		before, _ := first.rank(a.name)
		after, ok := first.rank(b.name)
		return ok && before < after
	}
	for e := b; e != nil; e = e.in.of {
		if from := a.within(e.in); from != nil && reaches(e.in, from, e) {
			return true
		}
	}
	return false
}

// within is the element of the list that a is, or is in; nil: it is elsewhere.
func (e *elementDef) within(list *listDef) *elementDef {
	for ; e != nil; e = e.in.of {
		if e.in == list {
			return e
		}
	}
	return nil
}

// reaches reports whether a way of at least one transition leads from one element
// of a list to another. The way that is just the order of the file is seen at once,
// so that a long file takes no more than its length.
func reaches(list *listDef, from, to *elementDef) bool {
	first, _ := list.rank(from.name)
	last, _ := list.rank(to.name)
	if first < last && last <= list.leads(first) {
		return true
	}
	seen := make([]bool, len(list.elements))
	next := []int{first}
	for len(next) > 0 {
		e := list.elements[next[0]]
		next = next[1:]
		for _, t := range e.edges {
			for _, name := range []string{t.Target.Name, t.Target.Restart} {
				n, here := list.rank(name)
				if name == "" || !here || seen[n] {
					continue
				}
				if n == last {
					return true
				}
				seen[n] = true
				next = append(next, n)
			}
		}
	}
	return false
}

// leads is the last element to which edges lead from one, each to the element
// behind the one before.
func (d *listDef) leads(from int) int {
	if d.ahead == nil {
		d.ahead = make([]int, len(d.elements))
		for i, e := range slices.Backward(d.elements) {
			d.ahead[i] = i
			if i+1 < len(d.elements) && slices.ContainsFunc(e.edges, func(t core.Transition) bool { return t.Target.Name == d.elements[i+1].name }) {
				d.ahead[i] = d.ahead[i+1]
			}
		}
	}
	return d.ahead[from]
}
