package jobfile

import (
	"fmt"

	"github.com/surfin-batch/surfin/internal/yamlfile"
)

// The texts of the key remote of a child job and of a split.
const (
	remoteAuto = "auto"
	remoteTrue = "true"
)

// checkRemote refuses `remote: true` for a child job with a component that works only in its own process.
func (l *checker) checkRemote(e *elementDef) {
	m, child := e.model.job, e.step.child.file
	e.step.child.on = l.on(m.On, m.Remote == remoteTrue, nil)
	if m.Remote != remoteTrue || child == nil {
		return
	}
	if u := child.localComponent(); u != nil {
		l.problems.Add(m.Node.Get("remote"), fmt.Sprintf("remote: job %s has the %s, which works only in the process that runs the job", child.name, u.what),
			"with auto, or without remote, the job runs in the process of this one")
	}
}

func (c *compiler) onWorkers(child *childDef) bool {
	switch child.model.Remote {
	case remoteTrue:
		return true
	case remoteAuto:
		return c.deps.Distributed && child.file.localComponent() == nil
	}
	return false
}

// localComponent returns a component of the file or of its child jobs that works only in the process that
// runs the job, or nil.
func (f *fileDef) localComponent() *componentUse {
	return firstLocal(f.components(), f.steps)
}

// firstLocal returns the first local component among the uses and the child jobs of the steps, or nil.
func firstLocal(uses []*componentUse, steps []*stepDef) *componentUse {
	for _, u := range withNested(uses...) {
		if u.component.Local {
			return u
		}
	}
	for _, s := range steps {
		if s.child == nil || s.child.file == nil {
			continue
		}
		if u := s.child.file.localComponent(); u != nil {
			return u
		}
	}
	return nil
}

// checkRemoteSplits refuses `remote: true` for a split with a branch that cannot run on workers.
func (l *checker) checkRemoteSplits() {
	if l.file.flow == nil {
		return
	}
	l.file.flow.walk(func(e *elementDef) {
		if e.kind != splitKind {
			return
		}
		l.checkSplitPlacement(e)
		if e.model.split.Remote != remoteTrue {
			return
		}
		at := e.model.node.Get("remote")
		if n := e.model.node.Get("parallel"); n != nil {
			l.problems.Add(n, fmt.Sprintf("parallel: the branches of split %s run on workers, whose slots say how many run at once", e.name),
				"parallel is for branches in the process of the job: remote: false, or auto where that is so")
		}
		if u := e.localComponent(); u != nil {
			l.problems.Add(at, fmt.Sprintf("remote: split %s has the %s, which works only in the process that runs the job", e.name, u.what),
				"with auto, or without remote, the branches run in the process of the job")
		}
		for _, branch := range e.lists {
			if inner, why := branch.waitsForWorkers(); inner != nil {
				l.problems.Add(at, fmt.Sprintf("remote: split %s has %s in line %d, %s: a branch on workers cannot wait for workers", e.name, inner.Text, inner.Line, why),
					"let one of them run in its own process: take remote away from the split or from what is in it")
				return
			}
		}
	})
}

// localComponent is firstLocal for the content of an element.
func (e *elementDef) localComponent() *componentUse {
	var uses []*componentUse
	var steps []*stepDef
	for _, list := range e.lists {
		list.walk(func(inner *elementDef) {
			uses = append(uses, inner.decider)
			if inner.step != nil {
				uses, steps = append(uses, inner.step.components()...), append(steps, inner.step)
			}
		})
	}
	return firstLocal(uses, steps)
}

// waitsForWorkers returns the name of the first element of the list, or of a child job in it, with work done
// by others, and the reason; nil if there is none.
func (d *listDef) waitsForWorkers() (found *yamlfile.Node, why string) {
	d.walk(func(e *elementDef) {
		if found != nil {
			return
		}
		switch {
		case e.kind == splitKind && e.model.split.Remote == remoteTrue:
			found, why = e.at, "whose branches run on workers"
		case e.step == nil:
		case e.step.tasks != nil:
			found, why = e.at, "whose work are tasks"
		case e.step.child == nil && e.step.model.Partition != nil && e.step.model.Partition.Remote:
			found, why = e.at, "whose parts run on workers"
		case e.step.child != nil && e.model.job.Remote == remoteTrue:
			found, why = e.at, "which runs on workers"
		case e.step.child != nil && e.step.child.file != nil && e.step.child.file.flow != nil:
			if inner, _ := e.step.child.file.flow.waitsForWorkers(); inner != nil {
				found, why = e.at, fmt.Sprintf("whose element %s waits for workers", inner.Text)
			}
		}
	})
	return found, why
}

// splitOnWorkers reports whether workers run the branches of an element.
func (c *compiler) splitOnWorkers(e *elementDef) bool {
	if e.kind != splitKind {
		return false
	}
	switch e.model.split.Remote {
	case remoteTrue:
		return true
	case remoteAuto:
		if !c.deps.Distributed || e.localComponent() != nil {
			return false
		}
		for _, branch := range e.lists {
			if inner, _ := branch.waitsForWorkers(); inner != nil {
				return false
			}
		}
		return true
	}
	return false
}
