package step

import "github.com/surfin-batch/surfin/pkg/batch/core"

// private is what a step's goroutine works on: nothing that it may change, or that
// others change when it is left behind, is shared with the executor and the flow.
func private(run *core.StepRun) *core.StepRun {
	own := *run
	record := run.Step.Clone()
	own.Data, own.Step, own.Listeners = run.Data.Clone(), &record, nil
	return &own
}
