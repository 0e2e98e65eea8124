package core

import (
	"context"
)

// View is the current records for conditions, deciders and late-bound values: copies.
type View struct {
	Job *JobExecution
	// Steps is by name the newest of each that has run, or was passed, here.
	Steps map[string]StepExecution
	// Last ended before in the same flow, or nil.
	Last *StepExecution
	// Step nil means the flow.
	Step *StepExecution
	// Part is the partition, or nil.
	Part *Partition
	// Outcome is the flow's, nil before its end.
	Outcome *Outcome
}

// Outcome of a flow or element.
type Outcome struct {
	Status   Status
	ExitCode string
	// Message is the reason of a failure or stop.
	Message string
	// Step is the failed, deciding step, or empty.
	Step    string
	Settles bool
}

// Decider returns a decision's exit code: kind "decider".
type Decider interface {
	Decide(ctx context.Context, v *View) (string, error)
}

// DeciderFunc is a function as a Decider.
type DeciderFunc func(ctx context.Context, v *View) (string, error)

// Decide calls f.
func (f DeciderFunc) Decide(ctx context.Context, v *View) (string, error) { return f(ctx, v) }
