package chunk

import (
	"context"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// maxWarnings bounds the text of the warnings of a step, which is a part of its context.
const maxWarnings = 2 << 10

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
	value, _ := step.Context.Get(core.WarningsKey)
	said, _ := value.(string) //nolint:errcheck // absent is empty
	lines := strings.Split(said, "\n")
	if said == "" {
		lines = nil
	}
	if slices.Contains(lines, text) {
		return
	}
	if more := strings.Join(append(lines, text), "\n"); len(more) <= maxWarnings {
		if err := step.Context.Put(core.WarningsKey, more); err != nil { // a text fits
			return
		}
	}
	p.exec.Services.Observer.Observe(ctx, core.StepWarned{
		Execution: p.exec.Data.Job.ID, JobName: p.exec.Data.Job.JobName, Step: step.Name, StepID: step.ID, Warning: text,
	})
}
