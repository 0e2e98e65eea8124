package tree

import (
	"fmt"

	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/yamlfile"
)

// LocalComponent returns a component of the file or of its child jobs that works only in the process that
// runs the job, or nil.
func (f *File) LocalComponent() *ComponentUse {
	return firstLocal(f.Components(), f.Steps)
}

// firstLocal returns the first local component among the uses and the child jobs of the steps, or nil.
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

// WaitsForWorkers returns the name of the first element of the list, or of a child job in it, with work done
// by others, and the reason; nil if there is none.
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
