package job

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// revisit replays the last visit of an element: it is passed, or run again if it did not complete or
// may start again. again means that something ran.
func (w *walk) revisit(ctx context.Context, at model.Element, e *entry) (r result, again bool, err error) {
	switch at := at.(type) {
	case *model.StepElement:
		return w.revisitStep(ctx, at, e)
	case *model.FlowElement:
		if at.AsStep {
			return w.revisitStep(ctx, w.asStep(at, w.visitOf(at), e), e)
		}
	case *model.DecisionElement, *model.SplitElement, *model.AtomicElement:
	}
	if e.Kind == ports.VisitNoop {
		if w.isBehindRun(e) {
			r, err = w.visit(ctx, at)
			return r, true, err
		}
		return known(core.Outcome{Status: core.StatusCompleted, ExitCode: core.ExitNoop}), false, nil
	}
	switch at := at.(type) {
	case *model.DecisionElement:
		if w.isTakenAgain(at, e) {
			r, err = w.visit(ctx, at)
			return r, true, err
		}
		if !w.stands(e) {
			w.port.decided(ctx, w, at, e.Verdict, true)
		}
		return known(core.Outcome{Status: core.StatusCompleted, ExitCode: e.Verdict}), false, nil
	case *model.SplitElement, *model.FlowElement:
		return w.inside(ctx, at, e, nil)
	case *model.AtomicElement:
		if len(e.outs) > 0 && e.outs[len(e.outs)-1].Status != core.StatusCompleted && w.isOfEarlierRound(e) {
			return known(e.outs[len(e.outs)-1]), false, nil
		}
		return w.inside(ctx, at, e, nil)
	case *model.StepElement: // above
	}
	return result{}, false, fmt.Errorf("element %s: a %T cannot be run", at.ElementName(), at)
}

// revisitStep passes a step that is done, and runs it again if it is not, or may start again.
func (w *walk) revisitStep(ctx context.Context, at *model.StepElement, e *entry) (result, bool, error) {
	isOver := e.record != nil && e.record.Status.IsOver()
	isOld := isOver && w.isOfEarlierRound(e)
	switch {
	case isOver && (w.stands(e) || isDone(*e.record) && (!at.AllowStartIfComplete || isOld)):
		return w.pass(ctx, at, *e.record), false, nil
	case isOld: // it failed, and a transition led on from that
		w.run.progress.recordSkipped(*e.record)
		w.last = e.record
		return known(outcomeOf(e.record)), false, nil
	}
	r, err := w.visitStep(ctx, at)
	return r, true, err
}

// stands reports whether the entry is kept as it ended: it was passed before, or this same attempt
// visited it before its walk moved to another process. A step that lost its worker is not kept.
func (w *walk) stands(e *entry) bool {
	if e.Kind == ports.VisitPass {
		return true
	}
	lost := e.record != nil && e.record.Status == core.StatusFailed && e.record.Error == core.LostOwner
	return w.run.resuming || w.run.part != nil && e.Execution == w.run.exec.ID && !lost
}

// isOfEarlierRound reports whether a loop, after the entry, reached an earlier element that leads to
// the entry's element again: the later round visits it (rule F3).
func (w *walk) isOfEarlierRound(e *entry) bool {
	return w.history || e.isOfEarlierRound(w.flow, w.log.entries)
}

// pass passes a step that an earlier attempt completed, or gave up.
func (w *walk) pass(ctx context.Context, at *model.StepElement, record core.StepExecution) result {
	w.run.progress.recordSkipped(record)
	w.last = &record
	w.port.passed(ctx, w, at, record)
	return known(outcomeOf(&record))
}

// isTakenAgain reports whether a decision of an earlier attempt is taken again: if it ended the flow
// other than COMPLETED, since with the same verdict no restart could end differently; and if the step
// before it ran again, but not on the path to a restart point, which another verdict would miss (rule
// F3). So is a verdict that led on and is unknown to the current definition.
func (w *walk) isTakenAgain(at *model.DecisionElement, e *entry) bool {
	if w.stands(e) {
		return false
	}
	if _, ok := model.Next(at.Edges(), core.StatusCompleted, e.Verdict); !ok && e.followed != "" { // the definition no longer has this path
		return true
	}
	last := &w.log.entries[len(w.log.entries)-1]
	return e.Ordinal == last.Ordinal && w.endsOtherwise(at, e.Verdict) || last.Kind != ports.VisitJump && w.isBehindRun(e)
}

// isBehindRun reports whether the element visited before the entry ran again in this attempt. If a loop
// then reached it once more, the entry is of an earlier round.
func (w *walk) isBehindRun(e *entry) bool {
	before := e.Ordinal == 1
	for i := range w.log.entries {
		before = before || w.log.entries[i].Ordinal < e.Ordinal && w.log.entries[i].behind == e.Ordinal
	}
	return before && !w.stands(e) && w.last != nil && w.last.JobExecutionID == w.run.exec.ID
}

// endsOtherwise reports whether the verdict ends the flow other than COMPLETED.
func (w *walk) endsOtherwise(at *model.DecisionElement, verdict string) bool {
	out := core.Outcome{Status: core.StatusCompleted, ExitCode: verdict}
	next, ok := model.Next(at.Edges(), out.Status, out.ExitCode)
	if !ok {
		return w.flow.Strict && len(at.Edges()) > 0 || unmatched(at, out).Status != core.StatusCompleted
	}
	return next.Kind == model.TargetFail || next.Kind == model.TargetStop
}

func (w *walk) visit(ctx context.Context, at model.Element) (result, error) {
	adopted := w.takeAdopted(at)
	if adopted != nil && len(model.Flows(at)) > 0 {
		w.note(at, ports.VisitAdopt, "", adoptTarget(adopted))
		w.ordinal++
	}
	switch at := at.(type) {
	case *model.StepElement:
		return w.visitOrAdopt(ctx, at, adopted)
	case *model.FlowElement:
		if at.AsStep {
			return w.visitOrAdopt(ctx, w.asStep(at, w.visitOf(at), adopted), adopted)
		}
	case *model.DecisionElement, *model.SplitElement, *model.AtomicElement:
	}
	under := w.under
	defer func() { w.under = under }()
	switch held, err := w.port.holds(ctx, w, at); {
	case err != nil:
		return result{}, err
	case held == no:
		w.note(at, ports.VisitNoop, "", "")
		return known(core.Outcome{Status: core.StatusCompleted, ExitCode: core.ExitNoop}), nil
	case held == perhaps:
		w.under = at.Condition().Text
	}
	r, err := w.visitInside(ctx, at, adopted)
	if err == nil && w.under != under && r.unknown == "" {
		r.unknown, r.refused = at.ElementName(), false
	}
	return r, err
}

func (w *walk) visitInside(ctx context.Context, at model.Element, adopted *entry) (result, error) {
	switch at := at.(type) {
	case *model.DecisionElement:
		return w.decide(ctx, at)
	case *model.SplitElement, *model.FlowElement, *model.AtomicElement:
		r, _, err := w.inside(ctx, at, nil, adopted)
		return r, err
	case *model.StepElement: // in visit
	}
	return result{}, fmt.Errorf("element %s: a %T cannot be run", at.ElementName(), at)
}

// takeAdopted returns the visit of the element on an abandoned path, once, or nil.
func (w *walk) takeAdopted(at model.Element) *entry {
	e, ok := w.adopt[at.ElementName()]
	if !ok {
		return nil
	}
	delete(w.adopt, at.ElementName())
	w.adopted++
	return &e
}

// visitOrAdopt runs a step, or passes its completed work of an abandoned path, or of another position
// in an earlier definition.
func (w *walk) visitOrAdopt(ctx context.Context, at *model.StepElement, adopted *entry) (result, error) {
	var done *core.StepExecution
	switch {
	case at.AllowStartIfComplete || adopted != nil && adopted.innerOnly:
	case adopted != nil && adopted.record != nil && isDone(*adopted.record):
		done = adopted.record
	case !w.isInLoop(at):
		done = w.doneBefore(at)
	}
	if done == nil {
		return w.visitStep(ctx, at)
	}
	w.note(at, ports.VisitPass, "", strconv.FormatInt(int64(done.ID), 10))
	return w.pass(ctx, at, *done), nil
}

// doneBefore returns the step as an earlier attempt completed it, at any position of the definition of
// that time, or nil.
func (w *walk) doneBefore(at *model.StepElement) *core.StepExecution {
	h, some := w.run.progress.historyOf(at.Step.Name())
	if !some || !isDone(h.Last) || h.Last.JobExecutionID == w.run.exec.ID {
		return nil
	}
	return &h.Last
}

// isInLoop reports whether the definition reaches the element more than once.
func (w *walk) isInLoop(at model.Element) bool {
	return w.looped || w.flow.IsInLoop(at.ElementName())
}

// visitStep runs a step, from the end of its unfinished attempt if there is one. The condition of a
// step that has begun is not asked again.
func (w *walk) visitStep(ctx context.Context, at *model.StepElement) (result, error) {
	name := at.Step.Name()
	before, some := w.run.progress.historyOf(name)
	under := w.under
	defer func() { w.under = under }()
	if unfinished := some && !isDone(before.Last); !unfinished {
		switch held, err := w.port.holds(ctx, w, at); {
		case err != nil:
			return result{}, err
		case held == no:
			return w.port.noop(ctx, w, at)
		case held == perhaps:
			w.under = at.When.Text
		}
	}
	if at.StartLimit != nil && !w.run.waitedFor(before.Last.ID) && before.Attempts >= *at.StartLimit {
		return w.port.limited(w, at, &StartLimitError{Step: name, Attempts: before.Attempts, Limit: *at.StartLimit})
	}
	return w.port.step(ctx, w, at, before)
}

// isDone reports whether a step is not resumed.
func isDone(s core.StepExecution) bool {
	return s.Status == core.StatusCompleted || s.Status == core.StatusAbandoned
}

// decide takes a decision. Its verdict is stored with the next write.
func (w *walk) decide(ctx context.Context, at *model.DecisionElement) (result, error) {
	verdict, answered, err := w.port.decide(ctx, w, at)
	switch {
	case err != nil:
		return result{}, &DecisionError{Decision: at.Name, Err: err}
	case !answered:
		return result{unknown: at.Name}, nil
	}
	w.note(at, ports.VisitDecision, verdict, "")
	w.port.decided(ctx, w, at, verdict, false)
	return known(core.Outcome{Status: core.StatusCompleted, ExitCode: verdict}), nil
}

// DecisionError is a decision that could not be taken; it fails the execution.
type DecisionError struct {
	Decision string
	Err      error
}

// Error names the decision.
func (e *DecisionError) Error() string {
	return fmt.Sprintf("decision %s: %v", e.Decision, e.Err)
}

// Unwrap returns the cause.
func (e *DecisionError) Unwrap() error { return e.Err }

// inside walks the flows inside an element. e is its visit in the log, if it is replayed, and adopted
// its visit on an abandoned path. ran means that something ran.
func (w *walk) inside(ctx context.Context, at model.Element, e, adopted *entry) (r result, ran bool, err error) {
	v := w.visitOf(at)
	var subs []*walk
	for branch, flow := range model.Flows(at) {
		sub := w.inner(flow, v, branch, cmp.Or(e, adopted), e != nil)
		sub.onWorkers = w.onWorkers || isOnWorkers(at)
		subs = append(subs, sub)
	}
	var kind ports.VisitKind
	switch at := at.(type) {
	case *model.SplitElement:
		kind = ports.VisitFlow
		r, err = w.port.split(ctx, w, at, subs)
		w.join(subs...)
	case *model.FlowElement:
		kind = ports.VisitFlow
		r, err = subs[0].walk(ctx)
		w.join(subs...)
	case *model.AtomicElement:
		r, err = w.port.group(ctx, w, at, subs[0])
	case *model.StepElement, *model.DecisionElement:
	}
	passed := true
	for _, sub := range subs {
		ran, passed = ran || sub.ran, passed && sub.isPassed()
	}
	if err == nil && kind != "" && r.unknown == "" && !r.isStopped() && !passed && !r.recorded {
		w.port.note(w, ports.FlowVisit{Visit: v, Kind: kind, Verdict: verdictOf(r.out)})
	}
	return r, ran, err
}

// inner prepares the walk of a flow inside an element. before is the visit that is continued; nil
// begins one. isReplayed means that it is in the log of this walk.
func (w *walk) inner(flow model.Flow, v core.Visit, branch int, before *entry, isReplayed bool) *walk {
	sub := &walk{
		run: w.run, port: w.port, flow: flow, id: v.Inner(branch), last: w.last, group: w.group, after: w.after, under: w.under, lost: w.lost,
		edges:  map[string][]PlanEdge{flow.Elements[0].ElementName(): w.edgesTo(v.Element)},
		looped: w.looped || w.flow.IsInLoop(v.Element), within: attempts{w.run.exec.ID, math.MaxInt64}, onWorkers: w.onWorkers,
	}
	if before != nil {
		sub.id, sub.within = before.inner.Inner(branch), before.inside
		sub.log = w.run.journal.log(flow, sub.id, sub.within)
		sub.ended = isReplayed && len(before.outs) > 0
		sub.history = isReplayed && (w.isOfEarlierRound(before) || before.isCommittedGroup(flow))
	}
	return sub
}

// isCommittedGroup reports whether the entry is a group that committed, with no element that starts
// again: its steps are passed, also one that failed in a transaction of its own and led on (rule T6).
func (e *entry) isCommittedGroup(flow model.Flow) bool {
	if e.Kind != ports.VisitGroup || e.open || len(e.outs) == 0 || e.outs[len(e.outs)-1].Status != core.StatusCompleted {
		return false
	}
	return !slices.ContainsFunc(flow.Elements, func(at model.Element) bool {
		s, is := at.(*model.StepElement)
		return is && s.AllowStartIfComplete
	})
}

// join takes over the results of the flows inside an element.
func (w *walk) join(subs ...*walk) {
	for _, sub := range subs {
		if sub.last != nil && (w.last == nil || sub.last.ID > w.last.ID) {
			w.last = sub.last
		}
		if w.after == "" {
			w.after = sub.after
		}
		w.lost = w.lost || sub.lost
	}
}

// asStep makes a step of a flow, with a record of its own.
func (w *walk) asStep(at *model.FlowElement, v core.Visit, before *entry) *model.StepElement {
	s := &flowStep{name: at.Name, walk: func(ctx context.Context) (result, error) {
		sub := w.inner(at.Flow, v, 0, before, false)
		r, err := sub.walk(ctx)
		w.join(sub)
		return r, err
	}}
	return &model.StepElement{Step: s, When: at.When, Next: at.Next, AllowStartIfComplete: at.AllowStartIfComplete, StartLimit: at.StartLimit}
}
