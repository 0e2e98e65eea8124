package step

import (
	"github.com/surfin-batch/surfin/internal/model"
)

// private shares nothing that the abandoned step, the executor or the flow may change.
func private(run *model.StepRun) *model.StepRun {
	own := *run
	record := run.Step.Clone()
	own.Data, own.Step, own.Listeners = run.Data.Clone(), &record, nil
	return &own
}
