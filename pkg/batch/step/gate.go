package step

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// gateError is the failure of a step that did its work, but failed its gate.
type gateError struct{ gate string }

func (e *gateError) Error() string { return "expect: " + e.gate }

func (e *gateError) Unwrap() error { return ports.ErrExpect }

// gate checks the step's expectation. The condition sees the step as it would be recorded.
func (a *attempt) gate(ctx context.Context) error {
	expecting, ok := a.step.(model.Expecting)
	if !ok || expecting.Expect() == nil {
		return nil
	}
	v := a.run.View()
	seen := v.Step.Clone()
	out := a.completed()
	seen.Status, seen.ExitCode, seen.EndedAt = out.status, out.exit, a.now()
	v.Step = &seen
	held, gate, err := expecting.Expect().Check(ctx, v)
	a.run.Step.Gate = gate
	a.observer.Observe(ctx, core.GateChecked{
		Execution: a.run.Data.Job.ID, JobName: a.run.Data.Job.JobName, Step: a.run.Step.Name, Gate: gate, Held: held,
	})
	switch {
	case err != nil:
		return fmt.Errorf("expect: %w", err)
	case !held:
		return &gateError{gate}
	}
	return nil
}
