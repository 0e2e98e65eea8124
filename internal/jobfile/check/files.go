package check

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// outputs checks that a target has one writer.
type outputs struct{ *checker }

// fileKey returns equal texts for two keys that certainly name one file: the same path, or the same text with
// ${...}.
func (l *outputs) fileKey(f tree.FileUse) string {
	if late := f.Use.Late[f.Node]; late != nil && len(late.Holes) > 0 {
		return "${}" + f.Node.Text
	}
	if f.IsStd(f.Node.Text) {
		return f.Std()
	}
	return filepath.Clean(l.file.Resolve(f.Node.Text))
}

func variesByPart(f tree.FileUse) bool {
	return depends(f, true, func(name string) bool { return name == "part" || strings.HasPrefix(name, "part.") })
}

func variesByAttempt(f tree.FileUse) bool {
	return depends(f, false, func(name string) bool { return name == "job.execution" })
}

// depends reports whether the name uses a variable; reported is the result if the name has a mistake.
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
			if s.Partitioner != nil && !variesByPart(f) {
				l.problems.Add(f.Node, "all partitions would write "+f.Node.Text, "name the partition in it, as in out-${part.index}.csv")
			}
		}
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
