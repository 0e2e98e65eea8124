package jobfile

import (
	"fmt"
)

// The texts of the key remote of a child job.
const (
	remoteAuto = "auto"
	remoteTrue = "true"
)

// checkRemote refuses `remote: true` of a child job with a component that works only in the
// process that runs it.
func (l *loader) checkRemote(e *elementDef) {
	m, child := e.model.job, e.step.child.file
	if m.Remote != remoteTrue || child == nil {
		return
	}
	if u := child.localComponent(); u != nil {
		l.problems.Add(m.Node.Get("remote"), fmt.Sprintf("remote: job %s has the %s, which works only in the process that runs the job", child.name, u.what),
			"with auto, or without remote, the job runs in the process of this one")
	}
}

// onWorkers reports whether workers run a child job.
func (c *compiler) onWorkers(child *childDef) bool {
	switch child.model.Remote {
	case remoteTrue:
		return true
	case remoteAuto:
		return c.deps.Distributed && child.file.localComponent() == nil
	}
	return false
}

// localComponent returns a component of the file, or of a child job of it, that works only in
// the process that runs the job; nil: there is none.
func (f *File) localComponent() *componentUse {
	for _, u := range f.components() {
		if u != nil && u.component.Local {
			return u
		}
	}
	for _, s := range f.steps {
		if s.child == nil || s.child.file == nil {
			continue
		}
		if u := s.child.file.localComponent(); u != nil {
			return u
		}
	}
	return nil
}
