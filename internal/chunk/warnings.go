package chunk

import "github.com/surfin-batch/surfin/pkg/batch/core"

// takeWarnings adds the components' warnings to the step's context, which the commit stores. Readers
// that read ahead cannot do it themselves: the context belongs to the goroutine that commits.
func (p *pipeline) takeWarnings() error {
	for _, c := range p.components {
		if c.warner == nil {
			continue
		}
		for _, text := range c.warner.Warnings() {
			step := p.exec.Step
			if step.Context == nil {
				step.Context = core.NewExecutionContext()
			}
			if err := core.Warn(step.Context, text); err != nil {
				return err
			}
		}
	}
	return nil
}
