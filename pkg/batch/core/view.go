package core

import (
	"context"
)

// View is the view of a run for conditions, deciders and late-bound values: its current records. They
// are copies; changes to them are not stored.
type View struct {
	Job *JobExecution
	// Steps are the steps of the instance, by name: the newest execution of each that has run, or was
	// passed, in this execution.
	Steps map[string]StepExecution
	// Last is the step that ended before in the same flow, or nil.
	Last *StepExecution
	// Step is the step in question; nil means the flow.
	Step *StepExecution
	// Part is the partition, or nil.
	Part *Partition
	// Outcome is the outcome of the flow, for steps and listeners after it; nil before.
	Outcome *Outcome
}

// Outcome is the outcome of a flow, or of an element of it.
type Outcome struct {
	Status   Status
	ExitCode string
	// Message is the reason of a failure or stop.
	Message string
	// Step is the name of the step that failed and decided, or empty.
	Step string
	// Settles is as in StepExecution.
	Settles bool
}

// Decider returns the exit code of a decision: the component kind "decider".
type Decider interface {
	Decide(ctx context.Context, v *View) (string, error)
}

// DeciderFunc makes a function a Decider.
type DeciderFunc func(ctx context.Context, v *View) (string, error)

// Decide calls f.
func (f DeciderFunc) Decide(ctx context.Context, v *View) (string, error) { return f(ctx, v) }
