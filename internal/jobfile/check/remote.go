package check

import (
	"fmt"

	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/model"
)

// checkRemote refuses `remote: true` for a child job with a component that works only in its own process.
func (l *checker) checkRemote(e *model.Element) {
	m, child := e.Model.Job, e.Step.Child.File
	e.Step.Child.On = l.on(m.On, m.Remote == language.RemoteTrue, nil)
	if m.Remote != language.RemoteTrue || child == nil {
		return
	}
	if u := child.LocalComponent(); u != nil {
		l.problems.Add(m.Node.Get("remote"), fmt.Sprintf("remote: job %s has the %s, which works only in the process that runs the job", child.Name, u.What),
			"with auto, or without remote, the job runs in the process of this one")
	}
}

// checkRemoteSplits refuses `remote: true` for a split with a branch that cannot run on workers.
func (l *checker) checkRemoteSplits() {
	if l.file.Flow == nil {
		return
	}
	l.file.Flow.Walk(func(e *model.Element) {
		if e.Kind != language.SplitKind {
			return
		}
		l.checkSplitPlacement(e)
		if e.Model.Split.Remote != language.RemoteTrue {
			return
		}
		at := e.Model.Node.Get("remote")
		if n := e.Model.Node.Get("parallel"); n != nil {
			l.problems.Add(n, fmt.Sprintf("parallel: the branches of split %s run on workers, whose slots say how many run at once", e.Name),
				"parallel is for branches in the process of the job: remote: false, or auto where that is so")
		}
		if u := e.LocalComponent(); u != nil {
			l.problems.Add(at, fmt.Sprintf("remote: split %s has the %s, which works only in the process that runs the job", e.Name, u.What),
				"with auto, or without remote, the branches run in the process of the job")
		}
		for _, branch := range e.Lists {
			if inner, why := branch.WaitsForWorkers(); inner != nil {
				l.problems.Add(at, fmt.Sprintf("remote: split %s has %s in line %d, %s: a branch on workers cannot wait for workers", e.Name, inner.Text, inner.Line, why),
					"let one of them run in its own process: take remote away from the split or from what is in it")
				return
			}
		}
	})
}
