package jobfile

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// condition is a checked bare expression of type bool.
type condition struct {
	text       string
	node       *yamlfile.Node
	prog       *expression.Program
	ownNumbers bool
}

// condition checks a condition; nil if there is none, or if it is wrong.
func (l *loader) condition(m *conditionText, key string, p location) *condition {
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
	return &condition{text: m.text, node: m.node, prog: prog, ownNumbers: p.ownNumbers}
}

// compiled is the condition of a running job; nil for nil.
func (c *condition) compiled(f *File) *model.Condition {
	if c == nil {
		return nil
	}
	return &model.Condition{
		Text: c.text,
		Holds: func(_ context.Context, view *core.View) (bool, error) {
			holds, err := c.values(f, view).compute(c.prog)
			if err != nil {
				return false, fmt.Errorf("%s: %w", f.location(c.node), err)
			}
			return holds == any(true), nil
		},
		Try: func(_ context.Context, view *core.View, unknown model.Unknown) (bool, bool, error) {
			return c.try(f, view, unknown)
		},
		Values: func(view *core.View) string { return c.explain(f, view) },
	}
}

// isNever reports a condition that is false whatever the values are. One with parameters is answered when the
// element is reached.
func (c *condition) isNever() bool {
	if len(c.prog.Vars()) > 0 || c.prog.UsesClock() {
		return false
	}
	holds, known, err := c.prog.Try(nil, func(string) bool { return true })
	return err == nil && known && holds == any(false)
}

// try answers the condition as far as that does not depend on what is unknown. An
// execution that is only planned has no number.
func (c *condition) try(f *File, view *core.View, unknown model.Unknown) (holds, known bool, err error) {
	v := c.values(f, view)
	if err := v.environment(c.prog); err != nil {
		return false, false, fmt.Errorf("%s: %w", f.location(c.node), err)
	}
	x, known, err := c.prog.Try(v.vars, func(path string) bool {
		switch parts := strings.Split(path, "."); parts[0] {
		case "steps":
			return unknown.Step(parts[1])
		case "context":
			return unknown.Context
		}
		return path == "job.execution" || path == "job.instance" || path == "job.time" && view.Job.Time.IsZero()
	})
	if err != nil {
		return false, false, fmt.Errorf("%s: %w", f.location(c.node), err)
	}
	return x == any(true), known, nil
}

func (c *condition) values(f *File, view *core.View) *values {
	v := f.viewValues(view)
	if c.ownNumbers {
		v.addOwnNumbers(f, view)
	}
	return v
}

// explain lists the values that the condition uses: "read = 100, skipped = 3".
func (c *condition) explain(f *File, view *core.View) string {
	v := c.values(f, view)
	var parts []string
	for _, path := range c.looksAt() {
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

// looksAt returns the names that the condition uses; for balanced, the counts that it compares.
func (c *condition) looksAt() []string {
	var names []string
	for _, path := range c.prog.Vars() {
		names = append(names, path)
		prefix, is := strings.CutSuffix(path, balancedName)
		if !is || prefix != "" && !(strings.HasPrefix(prefix, "steps.") && strings.Count(prefix, ".") == 2) {
			continue
		}
		for _, count := range []string{"read", "read_skipped", "written", "filtered", "skipped"} {
			if !slices.Contains(names, prefix+count) {
				names = append(names, prefix+count)
			}
		}
	}
	return names
}

// stepRef is an expression in the file that names a step.
type stepRef struct {
	node     *yamlfile.Node
	offset   int
	step     string
	location location
}

// checkStepRefs refuses `steps.NAME` if that step cannot have run on any path of the flow.
func (l *loader) checkStepRefs() {
	for _, m := range l.stepRefs {
		of := l.elements[m.step]
		if of == nil {
			continue
		}
		why := ""
		switch e := m.location.element; {
		case m.location.beforeFlow:
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

func (e *elementDef) root() *listDef {
	for e.list.parent != nil {
		e = e.list.parent
	}
	return e.list
}

// mayPrecede reports whether a may have run when b is reached. A branch of a split does not wait for the
// others and does not know their results.
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
	for e := b; e != nil; e = e.list.parent {
		if from := a.ancestorIn(e.list); from != nil && hasPath(e.list, from, e) {
			return true
		}
	}
	return false
}

// ancestorIn returns the element of the list that is e or contains it, or nil.
func (e *elementDef) ancestorIn(list *listDef) *elementDef {
	for ; e != nil; e = e.list.parent {
		if e.list == list {
			return e
		}
	}
	return nil
}

// hasPath reports whether a path of at least one transition leads from one element of a list to another. A
// path in the order of the file needs no search, so the time for a long file is linear.
func hasPath(list *listDef, from, to *elementDef) bool {
	first, _ := list.rank(from.name)
	last, _ := list.rank(to.name)
	if first < last && last <= list.lastInOrder(first) {
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

// lastInOrder returns the last element of a path that begins at one and follows only edges to the next
// element of the file.
func (d *listDef) lastInOrder(from int) int {
	if d.ahead == nil {
		d.ahead = make([]int, len(d.elements))
		for i, e := range slices.Backward(d.elements) {
			d.ahead[i] = i
			if i+1 < len(d.elements) && slices.ContainsFunc(e.edges, func(t model.Transition) bool { return t.Target.Name == d.elements[i+1].name }) {
				d.ahead[i] = d.ahead[i+1]
			}
		}
	}
	return d.ahead[from]
}
