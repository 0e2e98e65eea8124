package tree

import (
	"slices"

	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Element is a checked element.
type Element struct {
	Kind    language.Kind
	Name    string
	At      *yamlfile.Node // the name
	Model   *language.Element
	Keys    *language.ElementKeys
	List    *List
	When    *Condition
	Edges   []model.Transition
	Step    *Step
	Choices []Choice
	Decider *ComponentUse
	Lists   []*List
	On      []*core.Placement
}

// Choice is one path of a decision; the last one has no condition.
type Choice struct {
	When    *Condition
	Verdict string
}

// List is one flow: elements that may lead to each other.
type List struct {
	Elements []*Element
	Parent   *Element
	// Log is the longest possible name of the list's log; empty means the job's.
	Log     string
	Finally bool
	// ranks are the elements' numbers; ahead is how far each leads by edges to the next element
	// alone. Both are computed on first use.
	ranks map[string]int
	ahead []int
}

func (d *List) rank(name string) (n int, ok bool) {
	if len(d.ranks) == 0 && len(d.Elements) > 0 {
		d.ranks = make(map[string]int, len(d.Elements))
		for i, e := range slices.Backward(d.Elements) {
			d.ranks[e.Name] = i
		}
	}
	n, ok = d.ranks[name]
	return n, ok
}

// Find returns the element of that name, or nil.
func (d *List) Find(name string) *Element {
	if n, ok := d.rank(name); ok {
		return d.Elements[n]
	}
	return nil
}

// Names are the names of the elements, in order.
func (d *List) Names() []string {
	return language.NamesOf(d.Elements, func(e *Element) string { return e.Name })
}

// Walk visits all elements, each before its inner ones.
func (d *List) Walk(visit func(e *Element)) {
	for _, e := range d.Elements {
		visit(e)
		for _, inner := range e.Lists {
			inner.Walk(visit)
		}
	}
}

// StepName is the name of a step or child job, else "".
func (e *Element) StepName() string {
	if e.Step == nil {
		return ""
	}
	return e.Name
}
