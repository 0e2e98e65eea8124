package compile

import (
	"errors"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/yamlfile"
)

// CheckHandlers looks for handlers of tasks that this process does not have, in the file and in its child
// jobs. The error, of Problems, lists those that no program can have; elsewhere lists those that a worker of
// another program may have.
func CheckHandlers(f *tree.File, types HandlerTypes) (elsewhere yamlfile.Problems, err error) {
	known, closed := types.Handlers()
	problems := f.Doc.NewCollector()
	var wrong yamlfile.Problems
	for _, s := range f.Steps {
		switch {
		case s.Tasks != nil:
			checkHandler(problems, s, types, known)
		case s.Child != nil && s.Child.File != nil:
			others, err := CheckHandlers(s.Child.File, types)
			elsewhere = append(elsewhere, others...)
			if more, is := errors.AsType[yamlfile.Problems](err); is {
				wrong = append(wrong, more...)
			}
		}
	}
	own, _ := errors.AsType[yamlfile.Problems](problems.Err())
	if !closed {
		return append(own, elsewhere...), nil
	}
	if wrong = append(own, wrong...); len(wrong) > 0 {
		return nil, wrong
	}
	return nil, nil
}

func checkHandler(problems *yamlfile.Collector, s *tree.Step, types HandlerTypes, known []string) {
	handler, at := s.Tasks.Model.Handler, s.Tasks.Model.Node.Find("handler")
	if slices.Contains(known, handler) {
		return
	}
	if how := types.HandlerOff(handler); how != "" {
		problems.Add(at, fmt.Sprintf("the handler %s of tasks is switched off", handler), how)
		return
	}
	problems.Add(at, fmt.Sprintf("there is no handler %s of tasks in this application", handler), yamlfile.Suggest(handler, known))
}

// HasTasks reports whether the file, or a child job's file at any depth, has a step of tasks.
func HasTasks(f *tree.File) bool {
	return slices.ContainsFunc(f.Steps, func(s *tree.Step) bool {
		return s.Tasks != nil || s.Child != nil && s.Child.File != nil && HasTasks(s.Child.File)
	})
}
