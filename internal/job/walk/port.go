package walk

import (
	"context"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Port is the effect of a walk on the world. An execution's port acts. A plan's port answers from known
// results, calls no author's code and writes nothing.
type Port interface {
	// Stopping reports whether a stop was requested.
	Stopping() bool
	// Passed is called for a step that is not run again.
	Passed(ctx context.Context, w *Walk, at *model.StepElement, s core.StepExecution)
	// Holds asks the condition of an element.
	Holds(ctx context.Context, w *Walk, at model.Element) (Answer, error)
	// Noop records a step with a false condition.
	Noop(ctx context.Context, w *Walk, at *model.StepElement) (Result, error)
	// Step runs a step. before is the known history of its attempts.
	Step(ctx context.Context, w *Walk, at *model.StepElement, before ports.StepHistory) (Result, error)
	// Limited refuses a step that was attempted too often.
	Limited(w *Walk, at *model.StepElement, refusal *StartLimitError) (Result, error)
	// Decide takes a decision; answered is false if a plan cannot.
	Decide(ctx context.Context, w *Walk, at *model.DecisionElement) (verdict string, answered bool, err error)
	// Decided is called for a verdict; kept means that an earlier attempt took it.
	Decided(ctx context.Context, w *Walk, at *model.DecisionElement, verdict string, kept bool)
	// Split walks the branches in parallel.
	Split(ctx context.Context, w *Walk, at *model.SplitElement, branches []*Walk) (Result, error)
	// Group walks the flow of a group in its transaction.
	Group(ctx context.Context, w *Walk, at *model.AtomicElement, inner *Walk) (Result, error)
	// StoppedAt is called when the flow stops by a transition. giveUp means that a failed step at the
	// element will not be resumed.
	StoppedAt(ctx context.Context, w *Walk, at model.Element, giveUp bool) error
	// Note keeps a row of the journal until the next write.
	Note(w *Walk, row ports.FlowVisit)
}

// Lister is a Port that is notified when a walk of unknown path reaches an element again.
type Lister interface {
	Listed(w *Walk, at model.Element)
}

// Answer is the answer of a condition.
type Answer int

// The answers. Only a plan can be unsure.
const (
	Yes Answer = iota
	No
	Perhaps
)
