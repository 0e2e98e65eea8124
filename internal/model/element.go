package model

import (
	"context"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// StepElement is a node that runs a step.
type StepElement struct {
	// ID is empty for the step's name; it differs if a step occurs twice.
	ID                   string
	Step                 Step
	When                 *Condition
	Next                 []Transition
	AllowStartIfComplete bool
	// StartLimit is the maximum of attempts per instance; nil means no limit.
	StartLimit *int
}

// DecisionElement is a node that only chooses the next element.
type DecisionElement struct {
	Name string
	When *Condition
	// Decide returns the exit code for the transitions. The verdict is stored first. A restart
	// keeps it while the step before is the same execution, or on the path to a restart point, and
	// asks again if the decision stopped the job without one (rule F3).
	Decide func(ctx context.Context, v *core.View) (verdict string, err error)
	Next   []Transition
}

// SplitElement runs flows in parallel and takes the most severe outcome (rule F2). A failure does
// not end the other branches; none begins after a stop.
type SplitElement struct {
	Name     string
	When     *Condition
	Branches []Flow
	// Workers is the number of branches at once; 0 means all.
	Workers int
	// OnWorkers has workers walk the branches (rule P8); nothing inside may itself wait for
	// workers.
	OnWorkers bool
	On        []*core.Placement
	Next      []Transition
}

// FlowElement is a flow as a node.
type FlowElement struct {
	Name string
	When *Condition
	Flow Flow
	// AsStep gives the flow a step execution: a restart passes it once completed.
	AsStep               bool
	AllowStartIfComplete bool
	StartLimit           *int
	Next                 []Transition
}

// AtomicElement is a flow of steps in one outer transaction: all of them commit or none does (rule T6).
type AtomicElement struct {
	Name     string
	When     *Condition
	Flow     Flow
	Database string
	// Snapshot: the transaction does not see later commits, so its steps' starts are recorded
	// before it.
	Snapshot bool
	// Do runs fn in the outer transaction; its error has ErrUnknownOutcome if the COMMIT's effect
	// is unknown.
	Do   func(ctx context.Context, fn func(ctx context.Context) error) error
	Next []Transition
}

// ElementName is the ID, or the step's name.
func (e *StepElement) ElementName() string {
	if e.ID != "" {
		return e.ID
	}
	return e.Step.Name()
}

// ElementName is the decision's name.
func (e *DecisionElement) ElementName() string { return e.Name }

// ElementName is the split's name.
func (e *SplitElement) ElementName() string { return e.Name }

// ElementName is the flow's name.
func (e *FlowElement) ElementName() string { return e.Name }

// ElementName is the group's name.
func (e *AtomicElement) ElementName() string { return e.Name }

// Edges are the transitions that leave the element.
func (e *StepElement) Edges() []Transition { return e.Next }

// Edges are the transitions that leave the element.
func (e *DecisionElement) Edges() []Transition { return e.Next }

// Edges are the transitions that leave the element.
func (e *SplitElement) Edges() []Transition { return e.Next }

// Edges are the transitions that leave the element.
func (e *FlowElement) Edges() []Transition { return e.Next }

// Edges are the transitions that leave the element.
func (e *AtomicElement) Edges() []Transition { return e.Next }

// Condition is When.
func (e *StepElement) Condition() *Condition { return e.When }

// Condition is When.
func (e *DecisionElement) Condition() *Condition { return e.When }

// Condition is When.
func (e *SplitElement) Condition() *Condition { return e.When }

// Condition is When.
func (e *FlowElement) Condition() *Condition { return e.When }

// Condition is When.
func (e *AtomicElement) Condition() *Condition { return e.When }

func (*StepElement) element()     {}
func (*DecisionElement) element() {}
func (*SplitElement) element()    {}
func (*FlowElement) element()     {}
func (*AtomicElement) element()   {}

// Flows returns the flows inside an element: none for steps and decisions.
func Flows(e Element) []Flow {
	switch e := e.(type) {
	case *SplitElement:
		return e.Branches
	case *FlowElement:
		return []Flow{e.Flow}
	case *AtomicElement:
		return []Flow{e.Flow}
	case *StepElement, *DecisionElement:
	}
	return nil
}

// Steps returns all steps of the flow and of nested flows, in the order of the definition.
func (f Flow) Steps() []Step {
	var steps []Step
	for _, e := range f.Elements {
		if s, ok := e.(*StepElement); ok {
			steps = append(steps, s.Step)
		}
		for _, inner := range Flows(e) {
			steps = append(steps, inner.Steps()...)
		}
	}
	return steps
}
