package compile

import (
	"fmt"

	"github.com/surfin-batch/surfin/internal/jobfile/model"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// checkBound refuses a step in which two components have one file. config returns the bound config of a
// component.
func checkBound(s *model.Step, uses []*model.ComponentUse, config func(u *model.ComponentUse) any) error {
	known := map[string]*model.ComponentUse{}
	for _, u := range model.WithNested(uses...) {
		if u.Kind != registry.KindReader && u.Kind != registry.KindWriter {
			continue
		}
		for _, f := range u.Files() {
			path := f.Path(config(u))
			if first, twice := known[path]; twice && u.Kind == registry.KindWriter {
				return fmt.Errorf("step %s: %s and %s have one file, %s: a file belongs to one writer, and is not read by its own step", s.Name, first.What, u.What, path)
			}
			known[path] = u
		}
	}
	return nil
}

func createsTargets(s *model.Step) bool {
	for _, w := range s.Writers {
		if c, ok := w.Cfg.(registry.Creator); ok && c.Creates() {
			return true
		}
	}
	return false
}

func hasTargets(s *model.Step) bool {
	for _, w := range model.WithNested(s.Writers...) {
		if len(w.Files()) > 0 {
			return true
		}
	}
	return false
}
