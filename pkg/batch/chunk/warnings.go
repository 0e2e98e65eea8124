package chunk

import "github.com/surfin-batch/surfin/pkg/batch/core"

// The context belongs to the committing goroutine, so readers ahead cannot do it.
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
