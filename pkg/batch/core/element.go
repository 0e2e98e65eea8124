package core

import "context"

// StepElement is a node that runs a step.
type StepElement struct {
	// ID is the element's name; empty: the step's. It differs where a step is there
	// twice.
	ID   string
	Step Step
	When *Condition
	Next []Transition
	// AllowStartIfComplete runs the step again on a restart though it completed.
	AllowStartIfComplete bool
	// StartLimit is the most attempts of the step per instance; nil: no limit.
	StartLimit *int
}

// DecisionElement is a node that only decides where to go.
type DecisionElement struct {
	Name string
	When *Condition
	// Decide answers the exit code that the transitions match. The verdict is stored
	// before it is acted on; a restart keeps it while the step before the decision is
	// the same execution, or while the flow is on the way to a restart point, and
	// asks again where the decision stopped the job without one (rule F3).
	Decide func(ctx context.Context, v *View) (verdict string, err error)
	Next   []Transition
}

// SplitElement runs flows side by side, waits for all, and has the outcome of the
// most severe (rule F2). The failure of one branch does not end the others; a
// branch does not begin when another one stopped.
type SplitElement struct {
	Name     string
	When     *Condition
	Branches []Flow
	// Workers is how many branches run at once; 0: all.
	Workers int
	// OnWorkers has worker processes walk the branches (rule P8): Workers counts for nothing
	// then. Nothing inside may wait for workers in its turn.
	OnWorkers bool
	// On says for each branch which workers may walk it; a shorter list, or nil: any.
	On   []*Placement
	Next []Transition
}

// FlowElement is a flow as a node. Its outcome is that of the flow's end.
type FlowElement struct {
	Name string
	When *Condition
	Flow Flow
	// AsStep gives the flow a step execution of its own, and with it what steps
	// have: it is passed on a restart once it completed.
	AsStep               bool
	AllowStartIfComplete bool
	// StartLimit is the most attempts of it per instance; nil: no limit.
	StartLimit *int
	Next       []Transition
}

// AtomicElement is a flow of steps in one outer transaction: all of them commit
// or none does (rule T6).
type AtomicElement struct {
	Name string
	When *Condition
	// Flow holds StepElements, whose steps take part in the transaction as their
	// propagation says.
	Flow Flow
	// Database is the name of the transaction's database.
	Database string
	// Snapshot says that the transaction does not see what others commit after it has
	// begun: the starts of its steps are recorded before.
	Snapshot bool
	// Do runs fn in the outer transaction. Where it cannot be known whether its COMMIT took
	// effect, its error has ErrUnknownOutcome in its chain.
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

// Flows returns the flows inside of an element: none for steps and decisions.
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

// Steps returns all steps of the flow and of the flows inside of it, in the order
// of the definition.
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
