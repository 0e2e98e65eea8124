// Package walk walks a flow: it replays the visits of earlier attempts from the
// journal, then visits elements along the transitions (rules F1, F3, F5). A
// walk acts through a Port, so a plan is the same walk through another port. Read
// walk.go for the path by the definition, visit.go for one element, replay.go for the path by the journal.
//
// It imports core and the journal.
package walk

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/surfin-batch/surfin/internal/job/journal"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Walk is the path through one flow, the job's or a nested one.
type Walk struct {
	Start
	Uncertainty
	Port    Port
	attempt *Attempt
	Ordinal int64
	Log     journal.Log
	// Ran means that something ran in this attempt.
	Ran     bool
	adopt   adoption
	failure failure
}

// Start is the beginning of a walk.
type Start struct {
	Flow   model.Flow
	ID     string
	Within journal.Attempts
	// Last is the step that ended before the current element, or nil.
	Last *core.StepExecution
	// HasEnd: an earlier attempt recorded the end of the flow.
	HasEnd bool
	// IsEarlierRound: the whole log is of an earlier round of a loop around the
	// flow.
	IsEarlierRound bool
	Looped         bool
	// OnWorkers: workers walk the flow, or a branch around it.
	OnWorkers bool
}

// New returns a walk that continues the log of the flow.
func New(a *Attempt, port Port, start Start) *Walk {
	return &Walk{Start: start, Port: port, attempt: a, Log: a.Journal.Log(start.Flow, start.ID, start.Within)}
}

// Run walks the flow to its end.
func (w *Walk) Run(ctx context.Context) (Result, error) {
	next, err := w.replay(ctx)
	if err != nil {
		return Result{}, err
	}
	if w.ID == "" { // it was parked between two steps
		w.attempt.Resuming = false
	}
	return w.follow(ctx, next)
}

type successors struct {
	elements []model.Element
	ends     []Result
}

func next(at model.Element) successors { return successors{elements: []model.Element{at}} }

func end(r Result) successors { return successors{ends: []Result{r}} }

func (s *successors) add(more successors) {
	s.elements, s.ends = append(s.elements, more.elements...), append(s.ends, more.ends...)
}

// A plan after an unknown outcome visits all that may follow, and lists each
// once.
func (w *Walk) follow(ctx context.Context, from successors) (Result, error) {
	listed := map[string]int{} // number of adopted visits before each
	for len(from.elements) > 0 {
		at := from.elements[0]
		from.elements = from.elements[1:]
		if w.Port.Stopping() {
			return Stopped("stopped on request"), nil
		}
		// Elements passed since on this path run when a loop reaches them again.
		if adopted, is := listed[at.ElementName()]; is && w.PathUnknown && (adopted == w.adopt.taken || !w.IsInLoop(at)) {
			if plan, is := w.Port.(Lister); is {
				plan.Listed(w, at)
			}
			continue
		}
		listed[at.ElementName()] = w.adopt.taken
		w.Ordinal++
		w.Ran = true
		r, err := w.visit(ctx, at)
		if err != nil {
			return r, err
		}
		if r.IsStopped() || r.Refused {
			from.add(end(r))
			continue
		}
		further, err := w.leave(ctx, at, r)
		if err != nil {
			return Result{}, err
		}
		from.add(further)
	}
	if !w.PathUnknown && len(from.ends) > 0 {
		return from.ends[0], nil
	}
	return Result{Unknown: w.After}, nil
}

func (w *Walk) leave(ctx context.Context, at model.Element, r Result) (successors, error) {
	if r.Unknown != "" {
		return w.leaveUnknown(ctx, at, r)
	}
	w.failure.note(at, r)
	target, ok := r.follow(at)
	switch {
	case !ok && w.Flow.Strict && len(at.Edges()) > 0:
		return successors{}, noTransition(at, r.Outcome)
	case !ok:
		return end(Known(unmatched(at, r.Outcome))), nil
	case target.Kind != model.TargetElement:
		r, err := w.end(ctx, at, target, r.Outcome)
		return end(r), err
	}
	to, ok := w.Flow.Find(target.Name)
	if !ok {
		return successors{}, fmt.Errorf("next %q: no such element", target.Name)
	}
	w.addEdge(Edge{From: at.ElementName()}, target.Name)
	return next(to), nil
}

func (w *Walk) leaveUnknown(ctx context.Context, at model.Element, r Result) (successors, error) {
	w.PathUnknown = true
	if w.After == "" {
		w.After = r.Unknown
	}
	var all successors
	isCompletedApart := slices.ContainsFunc(at.Edges(), func(t model.Transition) bool { return t.Pattern == core.ExitCompleted })
	for _, t := range at.Edges() {
		edge := Edge{From: at.ElementName(), On: cmp.Or(t.Pattern, "*")}
		switch {
		case t.Success && edge.On == "*" && isCompletedApart:
			edge.OtherSuccess = true
		case t.Success && edge.On == "*":
			edge.On = core.ExitCompleted
		}
		if t.Target.Kind != model.TargetElement {
			w.Ending = &edge
			r, err := w.end(ctx, at, t.Target, core.Outcome{})
			w.Ending = nil
			if err != nil {
				return all, err
			}
			all.add(end(r))
			continue
		}
		if to, ok := w.Flow.Find(t.Target.Name); ok {
			w.addEdge(edge, t.Target.Name)
			all.add(next(to))
		}
	}
	return all, nil
}

func noTransition(at model.Element, out core.Outcome) error {
	why := ""
	if out.Message != "" {
		why = " (" + out.Message + ")"
	}
	return fmt.Errorf("element %s ended with exit code %s%s: %w", at.ElementName(), out.ExitCode, why, ports.ErrNoTransition)
}

// The verdict FAILED or STOPPED of a decision counts as the outcome.
func unmatched(at model.Element, out core.Outcome) core.Outcome {
	if _, is := at.(*model.DecisionElement); !is {
		return out
	}
	switch out.ExitCode {
	case core.ExitFailed:
		out.Status = core.StatusFailed
	case core.ExitStopped:
		out.Status = core.StatusStopped
	case core.ExitUnknown:
		out.Status = core.StatusUnknown
	}
	if out.Status != core.StatusCompleted {
		out.Message = fmt.Sprintf("decision %s: %s", at.ElementName(), out.ExitCode)
	}
	return out
}

func (w *Walk) end(ctx context.Context, at model.Element, target model.Target, last core.Outcome) (Result, error) {
	endAs := func(status core.Status, exit string) core.Outcome {
		return core.Outcome{Status: status, ExitCode: cmp.Or(target.Exit, exit)}
	}
	switch target.Kind {
	case model.TargetEnd:
		return Known(endAs(core.StatusCompleted, core.ExitCompleted)), nil
	case model.TargetFail:
		out := endAs(core.StatusFailed, core.ExitFailed)
		out.Message, out.Step = last.Message, last.Step
		if out.Message == "" {
			out.Message = fmt.Sprintf("%s ended with exit code %s", at.ElementName(), last.ExitCode)
			if w.failure.out.Message != "" {
				out.Message, out.Step = out.Message+"; before it: "+w.failure.out.Message, w.failure.out.Step
			}
		}
		return Known(out), nil
	case model.TargetStop:
		out := endAs(core.StatusStopped, core.ExitStopped)
		out.Message = target.Message
		if out.Message == "" {
			out.Message, out.Step = last.Message, last.Step
		}
		return Known(out), w.stop(ctx, at, target)
	case model.TargetElement:
	}
	return Result{}, fmt.Errorf("element %s: a transition leads to %q", at.ElementName(), target.Kind)
}

// A step that failed is given up if the restart continues elsewhere: it is
// ABANDONED, and will be passed.
func (w *Walk) stop(ctx context.Context, at model.Element, target model.Target) error {
	w.Ordinal++
	if target.Restart == "" || target.Restart == at.ElementName() {
		w.note(at, ports.VisitStop, "", "")
		return w.Port.StoppedAt(ctx, w, at, false)
	}
	w.note(at, ports.VisitJump, "", target.Restart)
	return w.Port.StoppedAt(ctx, w, at, !w.Flow.Leads(target.Restart, at.ElementName())) // otherwise the restart returns to it
}

// Probe returns the same walk, not begun, in another attempt through another
// port.
func (w *Walk) Probe(a *Attempt, port Port) *Walk {
	probe := *w
	probe.attempt, probe.Port, probe.edges = a, port, nil
	return &probe
}

// IsPassed reports whether the end of the flow needs no row: another one would become the newest visit.
func (w *Walk) IsPassed() bool { return (w.HasEnd || w.IsEarlierRound) && !w.Ran }

// IsInLoop reports whether the definition reaches the element more than once.
func (w *Walk) IsInLoop(at model.Element) bool {
	return w.Looped || w.Flow.IsInLoop(at.ElementName())
}

// View is the state of the execution that conditions, decisions and gates see.
func (w *Walk) View() *core.View {
	return &core.View{Job: w.attempt.Execution(), Steps: w.attempt.Progress.Steps(), Last: w.Last, Outcome: w.attempt.Outcome}
}

// VisitOf is the current visit.
func (w *Walk) VisitOf(at model.Element) core.Visit {
	return core.Visit{Flow: w.ID, Ordinal: w.Ordinal, Element: at.ElementName()}
}

func (w *Walk) note(at model.Element, kind ports.VisitKind, verdict, target string) {
	w.Port.Note(w, ports.FlowVisit{Visit: w.VisitOf(at), Kind: kind, Verdict: verdict, Target: target})
}

// failure is zero if the element has completed since.
type failure struct {
	out core.Outcome
	at  string
}

func (f *failure) note(at model.Element, r Result) {
	switch {
	case r.Unknown != "":
	case r.Outcome.Status == core.StatusFailed:
		*f = failure{r.Outcome, at.ElementName()}
	case f.at == at.ElementName():
		*f = failure{}
	}
}

// adoption holds visits on abandoned paths, by element: the walk adopts each
// once, and passes its completed work.
type adoption struct {
	visits map[string]journal.Entry
	taken  int
}

func (a *adoption) offer(visits map[string]journal.Entry) {
	all := maps.Clone(a.visits)
	if all == nil {
		all = map[string]journal.Entry{}
	}
	maps.Copy(all, visits)
	a.visits = all
}

func (a *adoption) take(at model.Element) *journal.Entry {
	e, ok := a.visits[at.ElementName()]
	if !ok {
		return nil
	}
	delete(a.visits, at.ElementName())
	a.taken++
	return &e
}

func (a *adoption) fallBack(visits map[string]journal.Entry) {
	preferred := a.visits
	a.visits = visits
	a.offer(preferred)
}
