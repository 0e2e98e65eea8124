package step

import (
	"context"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// NoWorkFound is a listener that gives a step that completed without reading anything the exit code
// FAILED: a transition can act on it. The step's status stays. A gate (`expect: read > 0`) fails the
// step instead.
type NoWorkFound struct{}

var _ core.AfterStep = NoWorkFound{}

// AfterStep implements core.AfterStep.
func (NoWorkFound) AfterStep(_ context.Context, s *core.StepExecution) error {
	if s.Status == core.StatusCompleted && s.Counters.Read+s.Counters.ReadSkip == 0 {
		s.ExitCode = core.ExitFailed
	}
	return nil
}
