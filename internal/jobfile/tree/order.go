package tree

import (
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/yamlfile"
)

// Root is the outermost list around the element.
func (e *Element) Root() *List {
	for e.List.Parent != nil {
		e = e.List.Parent
	}
	return e.List
}

// MayPrecede reports whether a may have run when b is reached. A branch of a split does not know
// the others' results.
func MayPrecede(a, b *Element) bool {
	first, second := a.Root(), b.Root()
	if first != second {
		return second.Finally
	}
	if first.Finally {
		before, _ := first.rank(a.Name)
		after, ok := first.rank(b.Name)
		return ok && before < after
	}
	for e := b; e != nil; e = e.List.Parent {
		if from := a.ancestorIn(e.List); from != nil && HasPath(e.List, from, e) {
			return true
		}
	}
	return false
}

func (e *Element) ancestorIn(list *List) *Element {
	for ; e != nil; e = e.List.Parent {
		if e.List == list {
			return e
		}
	}
	return nil
}

// HasPath reports a path of at least one transition; in the file's order it needs no search.
func HasPath(list *List, from, to *Element) bool {
	first, _ := list.rank(from.Name)
	last, _ := list.rank(to.Name)
	if first < last && last <= list.lastInOrder(first) {
		return true
	}
	seen := make([]bool, len(list.Elements))
	next := []int{first}
	for len(next) > 0 {
		e := list.Elements[next[0]]
		next = next[1:]
		for _, t := range e.Edges {
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

func (d *List) lastInOrder(from int) int {
	if d.ahead == nil {
		d.ahead = make([]int, len(d.Elements))
		for i, e := range slices.Backward(d.Elements) {
			d.ahead[i] = i
			if i+1 < len(d.Elements) && slices.ContainsFunc(e.Edges, func(t model.Transition) bool { return t.Target.Name == d.Elements[i+1].Name }) {
				d.ahead[i] = d.ahead[i+1]
			}
		}
	}
	return d.ahead[from]
}

// LocalComponent returns a component, also of child jobs, that works only in the job's process, or
// nil.
func (f *File) LocalComponent() *ComponentUse {
	return firstLocal(f.Components(), f.Steps)
}

func firstLocal(uses []*ComponentUse, steps []*Step) *ComponentUse {
	for _, u := range WithNested(uses...) {
		if u.Component.Local {
			return u
		}
	}
	for _, s := range steps {
		if s.Child == nil || s.Child.File == nil {
			continue
		}
		if u := s.Child.File.LocalComponent(); u != nil {
			return u
		}
	}
	return nil
}

// LocalComponent is firstLocal for the content of an element.
func (e *Element) LocalComponent() *ComponentUse {
	var uses []*ComponentUse
	var steps []*Step
	for _, list := range e.Lists {
		list.Walk(func(inner *Element) {
			uses = append(uses, inner.Decider)
			if inner.Step != nil {
				uses, steps = append(uses, inner.Step.Components()...), append(steps, inner.Step)
			}
		})
	}
	return firstLocal(uses, steps)
}

// WaitsForWorkers returns the first element with work done by others, and the reason, or nil.
func (d *List) WaitsForWorkers() (found *yamlfile.Node, why string) {
	d.Walk(func(e *Element) {
		if found != nil {
			return
		}
		switch {
		case e.Kind == language.SplitKind && e.Model.Split.Remote == language.RemoteTrue:
			found, why = e.At, "whose branches run on workers"
		case e.Step == nil:
		case e.Step.Tasks != nil:
			found, why = e.At, "whose work is tasks"
		case e.Step.Child == nil && e.Step.Model.Partition != nil && e.Step.Model.Partition.Remote:
			found, why = e.At, "whose parts run on workers"
		case e.Step.Child != nil && e.Model.Job.Remote == language.RemoteTrue:
			found, why = e.At, "which runs on workers"
		case e.Step.Child != nil && e.Step.Child.File != nil && e.Step.Child.File.Flow != nil:
			if inner, _ := e.Step.Child.File.Flow.WaitsForWorkers(); inner != nil {
				found, why = e.At, fmt.Sprintf("whose element %s waits for workers", inner.Text)
			}
		}
	})
	return found, why
}
