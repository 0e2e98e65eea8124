package job

import (
	"context"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// port is the effect of a walk on the world. The live port acts. A plan's port answers what is known,
// calls no author's code and writes nothing.
type port interface {
	// stopping reports whether a stop was requested.
	stopping() bool
	// passed is called for a step that is not run again.
	passed(ctx context.Context, w *walk, at *model.StepElement, s core.StepExecution)
	// holds asks the condition of an element.
	holds(ctx context.Context, w *walk, at model.Element) (answer, error)
	// noop records a step with a false condition.
	noop(ctx context.Context, w *walk, at *model.StepElement) (result, error)
	// step runs a step. before is the known history of its attempts.
	step(ctx context.Context, w *walk, at *model.StepElement, before ports.StepHistory) (result, error)
	// limited refuses a step that was attempted too often.
	limited(w *walk, at *model.StepElement, refusal *StartLimitError) (result, error)
	// decide takes a decision; answered is false if a plan cannot.
	decide(ctx context.Context, w *walk, at *model.DecisionElement) (verdict string, answered bool, err error)
	// decided is called for a verdict; kept means that an earlier attempt took it.
	decided(ctx context.Context, w *walk, at *model.DecisionElement, verdict string, kept bool)
	// split walks the branches in parallel.
	split(ctx context.Context, w *walk, at *model.SplitElement, branches []*walk) (result, error)
	// group walks the flow of a group in its transaction.
	group(ctx context.Context, w *walk, at *model.AtomicElement, sub *walk) (result, error)
	// stopped is called when the flow stops by a transition. giveUp means that a failed step at the
	// element will not be resumed.
	stopped(ctx context.Context, w *walk, at model.Element, giveUp bool) error
	// note keeps a row of the journal until the next write.
	note(w *walk, row ports.FlowVisit)
	// listed is called when a plan reaches an element that it has listed.
	listed(w *walk, at model.Element)
}

// answer is the answer of a condition.
type answer int

// The answers. Only a plan can be unsure.
const (
	yes answer = iota
	no
	perhaps
)
