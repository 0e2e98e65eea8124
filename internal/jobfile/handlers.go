package jobfile

import (
	"errors"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/internal/yamlfile"
)

// HandlerTypes are the types of tasks that have a handler.
type HandlerTypes interface {
	// Handlers returns the types of tasks that have a handler in this process, and whether
	// others cannot be executed.
	Handlers() (known []string, closed bool)
	// HandlerOff returns how to switch on a handler that this process has and does not use; "" means that it
	// has none of the type, or uses it.
	HandlerOff(handler string) (how string)
}

// checkHandlers looks for handlers of tasks that this process does not have, in the file and in its child
// jobs. The error, of Problems, lists those that no program can have; elsewhere lists those that a worker of
// another program may have.
func checkHandlers(f *fileDef, types HandlerTypes) (elsewhere yamlfile.Problems, err error) {
	known, closed := types.Handlers()
	problems := f.doc.NewCollector()
	var wrong yamlfile.Problems
	for _, s := range f.steps {
		switch {
		case s.tasks != nil:
			checkHandler(problems, s, types, known)
		case s.child != nil && s.child.file != nil:
			others, err := checkHandlers(s.child.file, types)
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

// checkHandler reports a handler that is not among known.
func checkHandler(problems *yamlfile.Collector, s *stepDef, types HandlerTypes, known []string) {
	handler, at := s.tasks.model.Handler, s.tasks.model.Node.Find("handler")
	if slices.Contains(known, handler) {
		return
	}
	if how := types.HandlerOff(handler); how != "" {
		problems.Add(at, fmt.Sprintf("the handler %s of tasks is switched off", handler), how)
		return
	}
	problems.Add(at, fmt.Sprintf("there is no handler %s of tasks in this application", handler), yamlfile.Suggest(handler, known))
}

func (c *compiler) checkHandler(s *stepDef) {
	if s.tasks == nil || c.deps.Tasks == nil {
		return
	}
	if known, closed := c.deps.Tasks.Handlers(); closed {
		checkHandler(c.problems, s, c.deps.Tasks, known)
	}
}

// hasTasks reports whether the file, or a child job's file at any depth, has a step of tasks.
func (f *fileDef) hasTasks() bool {
	return slices.ContainsFunc(f.steps, func(s *stepDef) bool {
		return s.tasks != nil || s.child != nil && s.child.file != nil && s.child.file.hasTasks()
	})
}
