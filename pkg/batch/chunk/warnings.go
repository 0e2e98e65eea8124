package chunk

import (
	"context"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// takeWarnings puts what the components warn of into the step's context, which the commit stores.
// What an earlier attempt has warned of is not said again.
func (p *pipeline) takeWarnings(ctx context.Context) {
	for _, c := range p.components {
		if c.warner == nil {
			continue
		}
		for _, text := range c.warner.Warnings() {
			p.warn(ctx, strings.Join(strings.Fields(text), " "))
		}
	}
}

func (p *pipeline) warn(ctx context.Context, text string) {
	step := p.exec.Step
	if step.Context == nil {
		step.Context = core.NewExecutionContext()
	}
	said := len(step.Warnings())
	if err := core.Warn(step.Context, text); err != nil || len(step.Warnings()) == said {
		return // it is there already, or has no room
	}
	p.exec.Services.Observer.Observe(ctx, core.StepWarned{
		Execution: p.exec.Data.Job.ID, JobName: p.exec.Data.Job.JobName, Step: step.Name, StepID: step.ID, Warning: text,
	})
}
