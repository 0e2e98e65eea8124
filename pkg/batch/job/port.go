package job

import (
	"context"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// port is what a walk does to the world. The live port acts. That of a plan answers
// what is known, calls no author's code and writes nothing.
type port interface {
	// stopping reports whether a stop was asked for.
	stopping() bool
	// passed is called for a step that is not run again.
	passed(ctx context.Context, w *walk, at *core.StepElement, s core.StepExecution)
	// holds asks the condition of an element.
	holds(ctx context.Context, w *walk, at core.Element) (answer, error)
	// noop records a step whose condition does not hold.
	noop(ctx context.Context, w *walk, at *core.StepElement) (result, error)
	// step runs a step. before is what is known of its attempts.
	step(ctx context.Context, w *walk, at *core.StepElement, before core.StepHistory) (result, error)
	// limited refuses a step that was attempted too often.
	limited(w *walk, at *core.StepElement, refusal *StartLimitError) (result, error)
	// decide takes a decision; answered is false where a plan cannot.
	decide(ctx context.Context, w *walk, at *core.DecisionElement) (verdict string, answered bool, err error)
	// decided is called for a verdict; kept says that an earlier attempt took it.
	decided(ctx context.Context, w *walk, at *core.DecisionElement, verdict string, kept bool)
	// split walks the branches side by side.
	split(ctx context.Context, w *walk, at *core.SplitElement, branches []*walk) (result, error)
	// group walks the flow of a group in its transaction.
	group(ctx context.Context, w *walk, at *core.AtomicElement, sub *walk) (result, error)
	// stopped is called where the flow stops by a transition. giveUp says that a failed
	// step at the element will not be resumed.
	stopped(ctx context.Context, w *walk, at core.Element, giveUp bool) error
	// note keeps a row of the journal until the next write.
	note(w *walk, row core.FlowVisit)
	// listed is called where a plan comes to an element that it has listed.
	listed(w *walk, at core.Element)
}

// answer is that of a condition.
type answer int

// The answers. Only a plan does not know.
const (
	yes answer = iota
	no
	perhaps
)
