package walk

import (
	"context"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Port is the effect of a walk on the world. A plan's port calls no author's
// code and writes nothing.
type Port interface {
	Stopping() bool
	Passed(ctx context.Context, w *Walk, at *model.StepElement, s core.StepExecution)
	Holds(ctx context.Context, w *Walk, at model.Element) (Answer, error)
	// Noop records a step with a false condition.
	Noop(ctx context.Context, w *Walk, at *model.StepElement) (Result, error)
	// before is the known history.
	Step(ctx context.Context, w *Walk, at *model.StepElement, before ports.StepHistory) (Result, error)
	Limited(w *Walk, at *model.StepElement, refusal *StartLimitError) (Result, error)
	// answered is false if a plan cannot.
	Decide(ctx context.Context, w *Walk, at *model.DecisionElement) (verdict string, answered bool, err error)
	// kept: an earlier attempt took the verdict.
	Decided(ctx context.Context, w *Walk, at *model.DecisionElement, verdict string, kept bool)
	Split(ctx context.Context, w *Walk, at *model.SplitElement, branches []*Walk) (Result, error)
	// Group walks a flow in its transaction.
	Group(ctx context.Context, w *Walk, at *model.AtomicElement, inner *Walk) (Result, error)
	// giveUp: a failed step at the element will not be resumed.
	StoppedAt(ctx context.Context, w *Walk, at model.Element, giveUp bool) error
	Note(w *Walk, row ports.FlowVisit)
}

// Lister is notified when a walk of unknown path reaches an element again.
type Lister interface {
	Listed(w *Walk, at model.Element)
}

// Answer is the answer of a condition.
type Answer int

// Only a plan can be unsure.
const (
	Yes Answer = iota
	No
	Perhaps
)

// Result is the result of an element or a flow.
type Result struct {
	Outcome core.Outcome
	// Unknown is the element with an unknown outcome.
	Unknown string
	// Refused: a plan's path ends at a step that would be refused.
	Refused bool
	// Recorded: a step execution holds the end.
	Recorded bool
}

// Known is the result with this outcome.
func Known(out core.Outcome) Result { return Result{Outcome: out} }

// Stopped is the result after a stop request.
func Stopped(message string) Result {
	return Known(core.Outcome{Status: core.StatusStopped, ExitCode: core.ExitStopped, Message: message})
}

// Failed is a flow's outcome after an error.
func Failed(failure error) core.Outcome {
	return core.Outcome{Status: core.StatusFailed, ExitCode: core.ExitFailed, Message: failure.Error()}
}

func completed(exit string) Result {
	return Known(core.Outcome{Status: core.StatusCompleted, ExitCode: exit})
}

// IsStopped reports whether the element certainly ended STOPPED.
func (r Result) IsStopped() bool { return r.Unknown == "" && r.Outcome.Status == core.StatusStopped }

func (r Result) follow(at model.Element) (model.Target, bool) {
	return model.Next(at.Edges(), r.Outcome.Status, r.Outcome.ExitCode)
}

// Worst returns the result that decides for parallel branches.
func Worst(branches []Result) Result {
	r := branches[0]
	for _, b := range branches[1:] {
		if r.Unknown == "" {
			r.Unknown = b.Unknown
		}
		r.Outcome, r.Refused = model.Worse(r.Outcome, b.Outcome), r.Refused || b.Refused
	}
	return r
}

// StartLimitError has ports.ErrStartLimit in its chain.
type StartLimitError struct {
	Step            string
	Attempts, Limit int
}

func (e *StartLimitError) Error() string {
	return fmt.Sprintf("step %s was attempted %d times, its start_limit is %d: %v", e.Step, e.Attempts, e.Limit, ports.ErrStartLimit)
}

func (e *StartLimitError) Unwrap() error { return ports.ErrStartLimit }

// Edge is a transition after an outcome that a plan does not know.
type Edge struct {
	From string
	// On is the exit code's pattern; core.ExitCompleted stands for every
	// success; empty: the outcome of From is known.
	On string
	// OtherSuccess: On stands for each success except COMPLETED.
	OtherSuccess bool
}

// Uncertainty is the unknown part of the path. It is zero in a walk that acts.
type Uncertainty struct {
	// After has the unknown outcome, If the unknown answer.
	After, If   string
	PathUnknown bool
	// Ending leads to an end.
	Ending *Edge
	edges  map[string][]Edge // after an unknown outcome, by the element that they lead to
}

// IsCertain reports whether a plan knows the path to the current element.
func (u *Uncertainty) IsCertain() bool { return u.After == "" && !u.PathUnknown }

// EdgesTo returns the transitions that lead to the element.
func (u *Uncertainty) EdgesTo(element string) []Edge { return slices.Clone(u.edges[element]) }

func (u *Uncertainty) addEdge(edge Edge, to string) {
	if u.IsCertain() || slices.Contains(u.edges[to], edge) {
		return
	}
	if u.edges == nil {
		u.edges = map[string][]Edge{}
	}
	u.edges[to] = append(u.edges[to], edge)
}
