package jobfile

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// A file that a writer writes belongs to that writer alone (rule C15b). The part of this rule that is visible
// in the file is checked at load, the rest when a step starts and when partitions are planned.

// fileUse is a key of a component that names a file.
type fileUse struct {
	use   *componentUse
	field yamlfile.Field
	node  *yamlfile.Node
}

// files are the keys of the component that name files to read, or, for a writer, to write: those with the tag
// `output`.
func (u *componentUse) files() []fileUse {
	if u == nil || u.component.Config == nil {
		return nil
	}
	var list []fileUse
	for _, f := range yamlfile.FieldsOf(u.component.Config).Fields {
		if f.Type.Kind() != reflect.String || !f.Path || f.Key == u.given || u.kind == registry.KindWriter && !f.Output {
			continue
		}
		at := u.node.Get(f.Key)
		if f.Main && u.node.Kind == yamlfile.Scalar {
			at = u.node
		}
		if at != nil && at.Kind == yamlfile.Scalar {
			list = append(list, fileUse{u, f, at})
		}
	}
	return list
}

// fileKey returns equal texts for two keys that certainly name one file: the same path, or the same text with
// ${...}.
func (l *loader) fileKey(f fileUse) string {
	if late := f.use.late[f.node]; late != nil && len(late.holes) > 0 {
		return "${}" + f.node.Text
	}
	if f.isStd(f.node.Text) {
		return f.std()
	}
	return filepath.Clean(l.file.resolve(f.node.Text))
}

func (f fileUse) isStd(text string) bool { return f.field.Std && text == core.StdPath }

// std describes the standard input or output in messages.
func (f fileUse) std() string {
	if f.use.kind == registry.KindReader {
		return "the standard input"
	}
	return "the standard output"
}

func (f fileUse) variesByPart() bool {
	return f.depends(true, func(name string) bool { return name == "part" || strings.HasPrefix(name, "part.") })
}

func (f fileUse) variesByAttempt() bool {
	return f.depends(false, func(name string) bool { return name == "job.execution" })
}

// depends reports whether the name uses a variable; reported is the result if the name has a mistake.
func (f fileUse) depends(reported bool, on func(name string) bool) bool {
	late := f.use.late[f.node]
	if late == nil {
		return false
	}
	for _, h := range late.holes {
		if h.prog == nil {
			return reported
		}
		if slices.ContainsFunc(h.prog.Vars(), on) {
			return true
		}
	}
	return false
}

// checkFiles reports files that two writers would write, or that one step both reads and writes.
func (l *loader) checkFiles() {
	for _, s := range l.file.steps {
		l.checkStepFiles(s)
	}
	l.checkStdin()
	for _, list := range []*listDef{l.file.flow, l.file.finally} {
		if list == nil {
			continue
		}
		list.walk(func(e *elementDef) {
			if e.kind == splitKind {
				l.checkBranchFiles(e)
			}
		})
	}
}

// checkStdin reports a second reader of the standard input, which would find it at its end.
func (l *loader) checkStdin() {
	var first *fileUse
	for _, s := range l.file.steps {
		for _, u := range withNested(s.components()...) {
			for _, f := range u.files() {
				switch {
				case u.kind != registry.KindReader || !f.isStd(f.node.Text):
				case s.partitioner != nil:
					l.problems.Add(f.node, "the standard input has no parts, and each partition would read it", "leave partition out, or write the input to files")
				case first != nil:
					l.problems.Add(f.node, fmt.Sprintf("the standard input is also read by %s %s: it can be read once", first.use.what, first.node.In(f.node)), "write it to a file, or load it into a table first")
				default:
					first = &f
				}
			}
		}
	}
}

func (l *loader) checkStepFiles(s *stepDef) {
	known := map[string]fileUse{}
	for _, u := range withNested(append(slices.Clone(s.processors), s.reader)...) {
		for _, f := range u.files() {
			known[l.fileKey(f)] = f
		}
	}
	for _, w := range withNested(s.writers...) {
		for _, f := range w.files() {
			if first, twice := known[l.fileKey(f)]; twice {
				l.problems.Add(f.node, fmt.Sprintf("%s is also the file of %s %s", f.node.Text, first.use.what, first.node.In(f.node)), "a file belongs to one writer, and is not read by its own step")
				continue
			}
			known[l.fileKey(f)] = f
			if f.variesByAttempt() {
				l.problems.Add(f.node, "a restart would write another file than "+f.node.Text, "job.instance is the same in all attempts")
			}
			if s.partitioner != nil && !f.variesByPart() {
				l.problems.Add(f.node, "all partitions would write "+f.node.Text, "name the partition in it, as in out-${part.index}.csv")
			}
		}
	}
}

// checkBranchFiles compares the files that the branches of a split write, since they run at once.
func (l *loader) checkBranchFiles(e *elementDef) {
	known := map[string]fileUse{}
	for _, branch := range e.lists {
		own := map[string]fileUse{}
		branch.walk(func(inner *elementDef) {
			if inner.step == nil {
				return
			}
			for _, w := range withNested(inner.step.writers...) {
				for _, f := range w.files() {
					own[l.fileKey(f)] = f
				}
			}
		})
		for key, f := range own {
			if first, twice := known[key]; twice {
				l.problems.Add(f.node, fmt.Sprintf("%s is also written in another branch of split %s, %s", f.node.Text, e.name, first.node.In(f.node)), "branches run at once, and a file belongs to one writer")
				continue
			}
			known[key] = f
		}
	}
}

// path is the path in the key of a bound config. Links in the folder are resolved, so that one file has one
// path.
func (f fileUse) path(cfg any) string {
	text := reflect.ValueOf(cfg).Elem().FieldByIndex(f.field.Index).String()
	if f.isStd(text) {
		return f.std()
	}
	abs, err := filepath.Abs(text)
	if err != nil {
		return text
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
		abs = filepath.Join(dir, filepath.Base(abs))
	}
	if f.use.kind == registry.KindReader {
		if target, err := filepath.EvalSymlinks(abs); err == nil {
			return target
		}
	}
	return abs
}

// checkBound refuses a step in which two components have one file. config returns the bound config of a
// component.
func (s *stepDef) checkBound(uses []*componentUse, config func(u *componentUse) any) error {
	known := map[string]*componentUse{}
	for _, u := range withNested(uses...) {
		if u.kind != registry.KindReader && u.kind != registry.KindWriter {
			continue
		}
		for _, f := range u.files() {
			path := f.path(config(u))
			if first, twice := known[path]; twice && u.kind == registry.KindWriter {
				return fmt.Errorf("step %s: %s and %s have one file, %s: a file belongs to one writer, and is not read by its own step", s.name, first.what, u.what, path)
			}
			known[path] = u
		}
	}
	return nil
}

// targets are the output files of the step's writers, in the order of the writers.
func (a builder) targets(ctx context.Context, run *model.StepRun) ([]string, error) {
	problems := a.file.doc.NewCollector()
	var list []string
	for _, w := range withNested(a.step.writers...) {
		files := w.files()
		if len(files) == 0 {
			continue
		}
		cfg := a.file.config(w, a.file.viewValues(run.View()).with(ctx, a.deps.Secrets).confined(ctx, run.Data.Job.Confinement, a.step), problems)
		if err := problems.Err(); err != nil {
			return nil, err
		}
		for _, f := range files {
			if path := f.path(cfg); path != f.std() { // each process has its own
				list = append(list, path)
			}
		}
	}
	return list, nil
}

func (s *stepDef) createsTargets() bool {
	for _, w := range s.writers {
		if c, ok := w.cfg.(registry.Creator); ok && c.Creates() {
			return true
		}
	}
	return false
}

func (s *stepDef) hasTargets() bool {
	for _, w := range withNested(s.writers...) {
		if len(w.files()) > 0 {
			return true
		}
	}
	return false
}
