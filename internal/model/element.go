package model

import (
	"context"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// StepElement is a node that runs a step.
type StepElement struct {
	// ID is the element's name; empty means the step's. It differs if a step occurs twice.
	ID   string
	Step Step
	When *Condition
	Next []Transition
	// AllowStartIfComplete runs the step again on a restart although it completed.
	AllowStartIfComplete bool
	// StartLimit is the maximum number of attempts of the step per instance; nil means no limit.
	StartLimit *int
}

// DecisionElement is a node that only chooses the next element.
type DecisionElement struct {
	Name string
	When *Condition
	// Decide returns the exit code that the transitions match. The verdict is stored before it is acted
	// on. A restart keeps it while the step before the decision is the same execution, or while the
	// flow is on the path to a restart point, and asks again if the decision stopped the job without
	// one (rule F3).
	Decide func(ctx context.Context, v *core.View) (verdict string, err error)
	Next   []Transition
}

// SplitElement runs flows in parallel, waits for all, and takes the most severe outcome (rule F2). The
// failure of one branch does not end the others; a branch does not begin after another one stopped.
type SplitElement struct {
	Name     string
	When     *Condition
	Branches []Flow
	// Workers is the number of branches that run at once; 0 means all.
	Workers int
	// OnWorkers has worker processes walk the branches (rule P8) and ignores Workers. Nothing inside
	// may itself wait for workers.
	OnWorkers bool
	// On restricts the workers that may walk each branch; a shorter list, or nil, means any.
	On   []*core.Placement
	Next []Transition
}

// FlowElement is a flow as a node. Its outcome is the outcome of the flow's end.
type FlowElement struct {
	Name string
	When *Condition
	Flow Flow
	// AsStep gives the flow a step execution of its own, with the features of steps: a restart passes
	// it once it completed.
	AsStep               bool
	AllowStartIfComplete bool
	// StartLimit is the maximum number of its attempts per instance; nil means no limit.
	StartLimit *int
	Next       []Transition
}

// AtomicElement is a flow of steps in one outer transaction: all of them commit or none does (rule T6).
type AtomicElement struct {
	Name string
	When *Condition
	// Flow holds StepElements; their steps take part in the transaction by their propagation.
	Flow Flow
	// Database is the name of the transaction's database.
	Database string
	// Snapshot means that the transaction does not see later commits of others: the starts of its steps
	// are recorded before it begins.
	Snapshot bool
	// Do runs fn in the outer transaction. If it cannot be known whether its COMMIT took effect, its
	// error has ErrUnknownOutcome in its chain.
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
