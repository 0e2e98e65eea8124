package tree

import (
	"slices"

	"github.com/surfin-batch/surfin/internal/model"
)

// Root is the outermost list around the element.
func (e *Element) Root() *List {
	for e.List.Parent != nil {
		e = e.List.Parent
	}
	return e.List
}

// MayPrecede reports whether a may have run when b is reached. A branch of a split does not wait for the
// others and does not know their results.
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

// HasPath reports whether a path of at least one transition leads from one element of a list to another. A
// path in the order of the file needs no search, so the time for a long file is linear.
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

// lastInOrder returns the last element of a path that begins at one and follows only edges to the next
// element of the file.
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
