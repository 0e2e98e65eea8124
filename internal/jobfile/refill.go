package jobfile

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// A writer that refills its target removes the existing rows, once in its step (rule TW4): nothing else of
// the job may write there at the same time.

// refills describes how the writer refills its target, or is empty if it does not.
func (u *componentUse) refills() string {
	if u == nil || u.kind != registry.KindWriter || u.cfg == nil {
		return ""
	}
	if r, ok := u.cfg.(registry.Refiller); ok {
		return r.Refills()
	}
	return ""
}

// targetUse is the target of a writer with a config that may refill it: the key tagged `main`, and the
// database.
type targetUse struct {
	use      *componentUse
	node     *yamlfile.Node
	database string
}

// target returns the target of such a writer.
func (s *stepDef) target(of *fileDef, u *componentUse) (t targetUse, ok bool) {
	if u == nil { // reported
		return t, false
	}
	if _, ok := u.cfg.(registry.Refiller); !ok || u.component.Config == nil {
		return t, false
	}
	for _, f := range yamlfile.FieldsOf(u.component.Config).Fields {
		if !f.Main || f.Type.Kind() != reflect.String {
			continue
		}
		at := u.node.Get(f.Key)
		if u.node.Kind == yamlfile.Scalar {
			at = u.node
		}
		if at != nil && at.Kind == yamlfile.Scalar {
			return targetUse{u, at, of.databaseOf(s)}, true
		}
	}
	return t, false
}

// clash reports whether two writers have one target and one of them refills it.
func clash(a, b targetUse) bool {
	return a.node.Text == b.node.Text && a.database == b.database && (a.use.refills() != "" || b.use.refills() != "")
}

// modeNode is the node of the config that refills the target.
func (t targetUse) modeNode() *yamlfile.Node {
	if at := t.use.node.Get("mode"); at != nil {
		return at
	}
	return t.node
}

// checkRefills reports targets that are refilled while something else writes there.
func (l *outputs) checkRefills() {
	for _, s := range l.file.steps {
		var own []targetUse
		for _, u := range s.writers {
			t, ok := s.target(l.file, u)
			if !ok {
				continue
			}
			if mode := u.refills(); mode != "" && s.partitioner != nil {
				l.problems.Add(t.modeNode(), fmt.Sprintf("mode %s in a partitioned step: each partition would remove the rows of the others", mode), "write it in a step without partitions, or empty the table in a step before, and insert")
			}
			for _, first := range own {
				if clash(first, t) {
					l.problems.Add(t.node, fmt.Sprintf("%s is also written by %s %s, and one of them fills it anew", t.node.Text, first.use.what, first.node.In(t.node)), "give it one writer")
				}
			}
			own = append(own, t)
		}
	}
	for _, list := range []*listDef{l.file.flow, l.file.finally} {
		if list == nil {
			continue
		}
		list.walk(func(e *elementDef) {
			if e.kind == splitKind {
				l.checkBranchRefills(e)
			}
		})
	}
}

// checkBranchRefills compares the targets of the branches of a split, since they run at once.
func (l *outputs) checkBranchRefills(e *elementDef) {
	var known []targetUse
	for _, branch := range e.lists {
		var own []targetUse
		branch.walk(func(inner *elementDef) {
			if inner.step == nil {
				return
			}
			for _, u := range inner.step.writers {
				if t, ok := inner.step.target(l.file, u); ok {
					own = append(own, t)
				}
			}
		})
		for _, t := range own {
			for _, first := range known {
				if clash(first, t) {
					l.problems.Add(t.node, fmt.Sprintf("%s is also written in another branch of split %s, %s, and one of them fills it anew", t.node.Text, e.name, first.node.In(t.node)), "branches run at once: put one behind the other")
					break
				}
			}
		}
		known = append(known, own...)
	}
}

// checkNamedSteps reports steps that a component's config names and the job does not have.
func (l *scopes) checkNamedSteps() {
	for _, u := range withNested(l.file.components()...) {
		namer, ok := u.cfg.(registry.StepNamer)
		if !ok {
			continue
		}
		key, name := namer.NamesStep()
		_, files := u.cfg.(registry.FilesNamer)
		switch {
		case name == "":
		case !l.isStep[name]:
			u.reportConfig(l.problems, &registry.ConfigError{Key: key, Err: fmt.Errorf("there is no step %s%s", name, nearest.Hint(name, l.stepNames))})
		case files && !l.file.listsFiles(name):
			u.reportConfig(l.problems, &registry.ConfigError{Key: key, Err: fmt.Errorf("step %s keeps no list of files: only the reader `files`, or partitions by `files`, do", name)})
		}
	}
}

// checkResumable reports readers that cannot resume in a partitioned step.
func (l *checker) checkResumable() {
	for _, s := range l.file.steps {
		if s.partitioner == nil {
			continue
		}
		for _, u := range withNested(s.reader) {
			if r, is := u.cfg.(registry.NotResumable); is && r.CannotResume() != "" {
				u.reportConfig(l.problems, &registry.ConfigError{Key: r.CannotResume(), Err: fmt.Errorf("a partition that fails could not be restarted: read along a key, or without partitions")})
			}
		}
	}
}

// listsFiles reports whether the step records the list of the files that it reads.
func (f *fileDef) listsFiles(step string) bool {
	return slices.ContainsFunc(f.steps, func(s *stepDef) bool {
		if s.name != step {
			return false
		}
		if _, has := s.part["path"]; has {
			return true
		}
		return slices.ContainsFunc(withNested(s.reader), func(u *componentUse) bool {
			_, lists := u.cfg.(registry.FileLister)
			return lists
		})
	})
}
