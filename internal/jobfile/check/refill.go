package check

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

func (l *outputs) checkRefills() {
	for _, s := range l.file.Steps {
		var own []targetUse
		for _, u := range s.Writers {
			t, ok := target(s, l.file, u)
			if !ok {
				continue
			}
			if mode := u.Refills(); mode != "" && s.Partitioner != nil {
				l.problems.Add(t.modeNode(), fmt.Sprintf("mode %s in a partitioned step: each partition would remove the rows of the others", mode), "write it in a step without partitions, or empty the table in a step before, and insert")
			}
			for _, first := range own {
				if clash(first, t) {
					l.problems.Add(t.node, fmt.Sprintf("%s is also written by %s %s, and one of them refills it", t.node.Text, first.use.What, first.node.In(t.node)), "give it one writer")
				}
			}
			own = append(own, t)
		}
	}
}

func (l *outputs) checkBranchRefills(e *tree.Element) {
	var known []targetUse
	for _, branch := range e.Lists {
		var own []targetUse
		branch.Walk(func(inner *tree.Element) {
			if inner.Step == nil {
				return
			}
			for _, u := range inner.Step.Writers {
				if t, ok := target(inner.Step, l.file, u); ok {
					own = append(own, t)
				}
			}
		})
		for _, t := range own {
			for _, first := range known {
				if clash(first, t) {
					l.problems.Add(t.node, fmt.Sprintf("%s is also written in another branch of split %s, %s, and one of them refills it", t.node.Text, e.Name, first.node.In(t.node)), "branches run at once: run one after the other")
					break
				}
			}
		}
		known = append(known, own...)
	}
}

// targetUse is the target of a writer with a config that may refill it: the key tagged `main`, and the
// database.
type targetUse struct {
	use      *tree.ComponentUse
	node     *yamlfile.Node
	database string
}

func target(s *tree.Step, of *tree.File, u *tree.ComponentUse) (t targetUse, ok bool) {
	if u == nil { // reported
		return t, false
	}
	if _, ok := u.Cfg.(registry.Refiller); !ok || u.Component.Config == nil {
		return t, false
	}
	for _, f := range yamlfile.FieldsOf(u.Component.Config).Fields {
		if !f.Main || f.Type.Kind() != reflect.String {
			continue
		}
		at := u.Node.Get(f.Key)
		if u.Node.Kind == yamlfile.Scalar {
			at = u.Node
		}
		if at != nil && at.Kind == yamlfile.Scalar {
			return targetUse{u, at, of.DatabaseOf(s)}, true
		}
	}
	return t, false
}

func (t targetUse) modeNode() *yamlfile.Node {
	if at := t.use.Node.Get("mode"); at != nil {
		return at
	}
	return t.node
}

func clash(a, b targetUse) bool {
	return a.node.Text == b.node.Text && a.database == b.database && (a.use.Refills() != "" || b.use.Refills() != "")
}

func (l *scopes) checkNamedSteps() {
	for _, u := range tree.WithNested(l.file.Components()...) {
		namer, ok := u.Cfg.(registry.StepNamer)
		if !ok {
			continue
		}
		key, name := namer.NamesStep()
		_, files := u.Cfg.(registry.FilesNamer)
		switch {
		case name == "":
		case !l.isStep[name]:
			u.ReportConfig(l.problems, &registry.ConfigError{Key: key, Err: fmt.Errorf("there is no step %s%s", name, nearest.Hint(name, l.stepNames))})
		case files && !listsFiles(l.file, name):
			u.ReportConfig(l.problems, &registry.ConfigError{Key: key, Err: fmt.Errorf("step %s keeps no list of files: only the reader `files`, or partitions by `files`, do", name)})
		}
	}
}

func (l *checker) checkResumable() {
	for _, s := range l.file.Steps {
		if s.Partitioner == nil {
			continue
		}
		for _, u := range tree.WithNested(s.Reader) {
			if r, is := u.Cfg.(registry.NotResumable); is && r.CannotResume() != "" {
				u.ReportConfig(l.problems, &registry.ConfigError{Key: r.CannotResume(), Err: fmt.Errorf("a partition that fails could not be restarted: read along a key, or without partitions")})
			}
		}
	}
}

func listsFiles(f *tree.File, step string) bool {
	return slices.ContainsFunc(f.Steps, func(s *tree.Step) bool {
		if s.Name != step {
			return false
		}
		if _, has := s.Part["path"]; has {
			return true
		}
		return slices.ContainsFunc(tree.WithNested(s.Reader), func(u *tree.ComponentUse) bool {
			_, lists := u.Cfg.(registry.FileLister)
			return lists
		})
	})
}
