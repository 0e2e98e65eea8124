package step

import (
	"github.com/surfin-batch/surfin/internal/model"
)

// private returns the data for a step's goroutine: it shares nothing with the executor and the flow
// that it may change, or that they change when it is abandoned.
func private(run *model.StepRun) *model.StepRun {
	own := *run
	record := run.Step.Clone()
	own.Data, own.Step, own.Listeners = run.Data.Clone(), &record, nil
	return &own
}
