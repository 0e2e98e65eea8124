package step

import (
	"context"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// NoWorkFound gives a completed step that read nothing the exit code FAILED, for a transition. The status
// stays; a gate (`expect: read > 0`) fails the step.
type NoWorkFound struct{}

var _ core.AfterStep = NoWorkFound{}

// AfterStep implements core.AfterStep.
func (NoWorkFound) AfterStep(_ context.Context, s *core.StepExecution) error {
	if s.Status == core.StatusCompleted && s.Counters.Read+s.Counters.ReadSkip == 0 {
		s.ExitCode = core.ExitFailed
	}
	return nil
}
