package compile

import (
	"fmt"

	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/template"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// onOfPart makes the placement of a part.
func onOfPart(p *core.Placement) func(part core.Partition) (*core.Placement, error) {
	if p == nil {
		return nil
	}
	return func(part core.Partition) (*core.Placement, error) {
		var missing error
		fill := func(text string) string {
			return language.PartHole.ReplaceAllStringFunc(text, func(hole string) string {
				name := language.PartHole.FindStringSubmatch(hole)[1]
				switch name {
				case "name":
					return part.Name
				case "index":
					return fmt.Sprint(part.Index)
				}
				if part.Context != nil {
					if x, has := part.Context.Get(name); has && x != nil {
						return template.Text(x)
					}
				}
				missing = fmt.Errorf("on: part %s has no value %s", part.Name, name)
				return ""
			})
		}
		filled := &core.Placement{Worker: fill(p.Worker)}
		for key, value := range p.Labels {
			if filled.Labels == nil {
				filled.Labels = map[string]string{}
			}
			filled.Labels[key] = fill(value)
		}
		if missing != nil {
			return nil, missing
		}
		if err := filled.Check(); err != nil {
			return nil, fmt.Errorf("on: part %s: %w", part.Name, err)
		}
		return filled, nil
	}
}
