package check

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/internal/trait"
	"github.com/surfin-batch/surfin/internal/urlpath"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

type outputs struct{ *checker }

func (l *outputs) fileKey(f tree.FileUse) string {
	if late := f.Use.Late[f.Node]; late != nil && len(late.Holes) > 0 {
		return "${}" + f.Node.Text
	}
	if f.IsStd(f.Node.Text) {
		return f.Std()
	}
	path := l.file.Resolve(f.Node.Text)
	if urlpath.Is(path) {
		return path
	}
	return filepath.Clean(path)
}

func variesByPart(f tree.FileUse) bool {
	return depends(f, true, func(name string) bool { return name == "part" || strings.HasPrefix(name, "part.") })
}

func variesByAttempt(f tree.FileUse) bool {
	return depends(f, false, func(name string) bool { return name == "job.execution" })
}

func depends(f tree.FileUse, reported bool, on func(name string) bool) bool {
	late := f.Use.Late[f.Node]
	if late == nil {
		return false
	}
	for _, h := range late.Holes {
		if h.Prog == nil {
			return reported
		}
		if slices.ContainsFunc(h.Prog.Vars(), on) {
			return true
		}
	}
	return false
}

func (l *outputs) checkFiles() {
	for _, s := range l.file.Steps {
		l.checkStepFiles(s)
	}
	l.checkStdin()
	l.file.Flow.Walk(func(e *tree.Element) {
		if e.Kind == language.SplitKind {
			l.checkBranchFiles(e)
			l.checkBranchRefills(e)
		}
	})
}

// checkStdin reports a second reader of the standard input, which would find it at its end.
func (l *outputs) checkStdin() {
	var first *tree.FileUse
	for _, s := range l.file.Steps {
		for _, u := range tree.WithNested(s.Components()...) {
			for _, f := range u.Files() {
				switch {
				case u.Kind != registry.KindReader || !f.IsStd(f.Node.Text):
				case s.Partitioner != nil:
					l.problems.Add(f.Node, "the standard input has no parts, and each partition would read it", "leave partition out, or write the input to files")
				case first != nil:
					l.problems.Add(f.Node, fmt.Sprintf("the standard input is also read by %s %s: it can be read once", first.Use.What, first.Node.In(f.Node)), "write it to a file, or load it into a table first")
				default:
					first = &f
				}
			}
		}
	}
}

func (l *outputs) checkStepFiles(s *tree.Step) {
	known := map[string]tree.FileUse{}
	for _, u := range tree.WithNested(append(slices.Clone(s.Processors), s.Reader)...) {
		for _, f := range u.Files() {
			known[l.fileKey(f)] = f
		}
	}
	for _, w := range tree.WithNested(s.Writers...) {
		for _, f := range w.Files() {
			if first, twice := known[l.fileKey(f)]; twice {
				l.problems.Add(f.Node, fmt.Sprintf("%s is also the file of %s %s", f.Node.Text, first.Use.What, first.Node.In(f.Node)), "a file belongs to one writer, and is not read by its own step")
				continue
			}
			known[l.fileKey(f)] = f
			if variesByAttempt(f) {
				l.problems.Add(f.Node, "a restart would write another file than "+f.Node.Text, "job.instance is the same in all attempts")
			}
			if late := w.Late[w.Node.Get("together")]; late != nil && len(late.Holes) > 0 {
				l.problems.Add(w.KeyNode("together"), "together cannot depend on values: the partitions are checked by it when the file is loaded", "write true or false")
			} else if w.Together() {
				l.checkTogether(s, w, f)
			} else if s.Partitioner != nil && !variesByPart(f) {
				l.problems.Add(f.Node, "all partitions would write "+f.Node.Text, "name the partition in it, as in out-${part.index}.csv"+orTogether(w))
			}
		}
	}
}

func orTogether(w *tree.ComponentUse) string {
	if _, has := yamlfile.FieldsOf(w.Component.Config).Find("together"); has {
		return ", or write one file from all of them with together: true"
	}
	return ""
}

func (l *outputs) checkTogether(s *tree.Step, w *tree.ComponentUse, f tree.FileUse) {
	key := w.KeyNode("together")
	switch {
	case s.Partitioner == nil:
		l.problems.Add(key, "together joins the parts of a partitioned step, but step "+s.Name+" has no partition", "leave together out, or add partition")
	case w.Appends():
		l.problems.Add(key, "together and append cannot be combined: the file is joined from parts that do not know it", "leave one of them out")
	case f.IsStd(f.Node.Text):
		l.problems.Add(f.Node, "together is for files, but - is the standard output", "name a file")
	case variesByPart(f):
		l.problems.Add(f.Node, "the partitions write one file together, so its path cannot depend on the partition", "leave part out of "+f.Node.Text+", or leave out together")
	}
}

func (l *outputs) checkBranchFiles(e *tree.Element) {
	known := map[string]tree.FileUse{}
	for _, branch := range e.Lists {
		own := map[string]tree.FileUse{}
		branch.Walk(func(inner *tree.Element) {
			if inner.Step == nil {
				return
			}
			for _, w := range tree.WithNested(inner.Step.Writers...) {
				for _, f := range w.Files() {
					own[l.fileKey(f)] = f
				}
			}
		})
		for key, f := range own {
			if first, twice := known[key]; twice {
				l.problems.Add(f.Node, fmt.Sprintf("%s is also written in another branch of split %s, %s", f.Node.Text, e.Name, first.Node.In(f.Node)), "branches run at once, and a file belongs to one writer")
				continue
			}
			known[key] = f
		}
	}
}

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

type targetUse struct {
	use      *tree.ComponentUse
	node     *yamlfile.Node
	database string
}

func target(s *tree.Step, of *tree.File, u *tree.ComponentUse) (t targetUse, ok bool) {
	if u == nil { // reported
		return t, false
	}
	if _, ok := u.Cfg.(trait.Refiller); !ok || u.Component.Config == nil {
		return t, false
	}
	for _, f := range yamlfile.FieldsOf(u.Component.Config).Fields {
		if !f.Main || f.Type.Kind() != reflect.String {
			continue
		}
		at := tree.ValueOf(u.Node, f)
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
		namer, ok := u.Cfg.(trait.StepNamer)
		if !ok {
			continue
		}
		key, name := namer.NamesStep()
		_, files := u.Cfg.(trait.FilesNamer)
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
			if r, is := u.Cfg.(trait.NotResumable); is && r.CannotResume() != "" {
				u.ReportConfig(l.problems, &registry.ConfigError{Key: r.CannotResume(), Err: fmt.Errorf("a partition that fails could not be restarted: read along a key, or without partitions")})
			}
		}
	}
}

func (l *checker) checkDivided() {
	for _, s := range l.file.Steps {
		if s.Partitioner == nil {
			continue
		}
		if _, is := s.Partitioner.Cfg.(trait.LineDivider); !is {
			continue
		}
		var reader trait.Divisible
		if s.Reader != nil {
			reader, _ = s.Reader.Cfg.(trait.Divisible)
		}
		if reader == nil {
			s.Partitioner.ReportConfig(l.problems, errors.New("it divides the file of the step's reader, which must be csv, jsonl, fixed or lines"))
		} else if err := reader.CannotDivide(); err != nil {
			s.Reader.ReportConfig(l.problems, err)
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
			_, lists := u.Cfg.(trait.FileLister)
			return lists
		})
	})
}
