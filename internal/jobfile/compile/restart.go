package compile

import (
	"context"

	"github.com/surfin-batch/surfin/internal/jobfile/diff"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// checkRestart refuses changes that committed work depends on, and returns the steps that take the new
// definition.
func (c *compiler) checkRestart(ctx context.Context, last *core.JobExecution, history core.History, params core.Parameters) (taken []string, err error) {
	changes, err := diff.Of(ctx, c.file, diff.Restart{Last: last, Params: params, History: history, Registry: c.deps.Registry})
	for _, change := range changes {
		if change.NewDefinition {
			taken = append(taken, change.Step)
		}
	}
	return taken, err
}
