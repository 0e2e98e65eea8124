package walk

import (
	"context"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/internal/job/journal"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// replay follows the log regardless of the current definition: done elements
// are passed, others run again. It ends after the last entry, at a restart
// point, or where an element now leads elsewhere.
type replay struct {
	*Walk
	result      Result
	others      successors
	othersAdopt map[string]journal.Entry
}

func (w *Walk) replay(ctx context.Context) (successors, error) {
	p := &replay{Walk: w}
	further, err := p.run(ctx)
	if len(p.others.elements)+len(p.others.ends) > 0 {
		p.PathUnknown = true
		p.adopt.fallBack(p.othersAdopt)
	}
	further.add(p.others)
	return further, err
}

func (p *replay) run(ctx context.Context) (successors, error) {
	at := p.Flow.Elements[0]
	entries := p.Log.Entries
	p.adopt.offer(p.Log.Abandoned)
	if len(entries) > 0 && entries[0].Ordinal == 1 && p.isNew(at.ElementName()) { // the definition has gained it since
		p.abandon(at, entries)
		return next(at), nil
	}
	back := p.jumpsBackTo()
	for i := 0; i < len(entries); i++ {
		if i >= back {
			i = len(entries) - 1
		}
		e, rest := &entries[i], entries[i+1:]
		if p.Port.Stopping() {
			return end(Stopped("stopped on request")), nil
		}
		found, ok := p.Flow.Find(e.Element)
		switch {
		case !ok: // the definition no longer has it
			p.abandon(at, entries[i:])
			return p.leaveLast(ctx, at, i)
		case e.Kind == ports.VisitJump:
			return p.jump(found, e, entries[:i], back), nil
		case len(rest) == 1 && rest[0].Kind == ports.VisitStop:
			p.runAgain(found, e, &rest[0])
			return next(found), nil
		}
		at, p.Ordinal = found, e.Ordinal
		r, ran, err := p.revisit(ctx, at, e)
		if err != nil {
			return successors{}, err
		}
		if r.IsStopped() || r.Refused {
			return end(r), nil
		}
		p.Ran = p.Ran || ran
		p.result = r
		p.failure.note(at, r)
		switch {
		case len(rest) == 0:
			p.Ordinal = p.Log.Ordinal
			return p.leave(ctx, at, r)
		case r.Unknown != "":
			if err := p.addOthers(ctx, at, r, rest); err != nil {
				return successors{}, err
			}
			continue
		case !ran || e.IsLeftBy(at, r.Outcome):
			if p.leadsToNew(at, r, e) {
				p.abandon(at, rest)
				return p.leave(ctx, at, r)
			}
			p.addEdge(Edge{From: at.ElementName()}, rest[0].Element)
			continue
		}
		skipped := p.rejoin(at, r, rest)
		if skipped < 0 {
			p.abandonUnlessFailed(at, r, rest)
			return p.leave(ctx, at, r)
		}
		i += skipped
	}
	return next(at), nil
}

func (p *replay) leadsToNew(at model.Element, r Result, e *journal.Entry) bool {
	to, ok := r.follow(at)
	return ok && e.Next != "" && to.Kind == model.TargetElement && to.Name != e.Next && p.isNew(to.Name)
}

func (p *replay) isNew(name string) bool {
	at, ok := p.Flow.Find(name)
	if !ok || slices.ContainsFunc(p.Log.Entries, func(e journal.Entry) bool { return e.Element == name }) {
		return false
	}
	if _, abandoned := p.Log.Abandoned[name]; abandoned {
		return false
	}
	return !slices.ContainsFunc(model.Flow{Elements: []model.Element{at}}.Steps(), func(s model.Step) bool {
		_, ran := p.attempt.Progress.HistoryOf(s.Name())
		return ran
	})
}

func (p *replay) addOthers(ctx context.Context, at model.Element, r Result, rest []journal.Entry) error {
	isUnknown := p.PathUnknown
	further, err := p.leaveUnknown(ctx, at, r)
	p.PathUnknown = isUnknown
	for _, to := range further.elements {
		if !slices.ContainsFunc(rest, func(e journal.Entry) bool { return e.Element == to.ElementName() }) {
			p.others.elements = append(p.others.elements, to)
		}
	}
	if p.othersAdopt == nil && len(p.others.elements) > 0 { // includes what a later element leaves
		p.othersAdopt = journal.LastRound(p.Flow, rest)
	}
	p.others.ends = append(p.others.ends, further.ends...)
	return err
}

func (p *replay) leaveLast(ctx context.Context, at model.Element, replayed int) (successors, error) {
	if replayed == 0 {
		return next(at), nil
	}
	return p.leave(ctx, at, p.result)
}

// rejoin continues in the log at the element to which this one leads now, and
// returns the number of entries abandoned between, or -1.
func (p *replay) rejoin(at model.Element, r Result, rest []journal.Entry) int {
	to, ok := r.follow(at)
	if r.Unknown != "" || !ok || to.Kind != model.TargetElement {
		return -1
	}
	isTarget := func(e journal.Entry) bool { return e.Element == to.Name && e.IsVisit() }
	if !slices.ContainsFunc(rest, isTarget) {
		return -1
	}
	skipped, first := 0, p.Ordinal+1
	for !isTarget(rest[skipped]) && rest[skipped].Ordinal == first+int64(skipped) {
		skipped++
	}
	if skipped > 0 {
		p.Port.Note(p.Walk, ports.FlowVisit{
			Visit: core.Visit{Flow: p.ID, Ordinal: first, Element: at.ElementName()}, Kind: ports.VisitTurn,
			Target: journal.Abandon(first, rest[skipped-1].Ordinal),
		})
	}
	return skipped
}

// abandonUnlessFailed keeps the rest if the flow ends FAILED here: the next
// restart runs the element again, which may lead on as before.
func (p *replay) abandonUnlessFailed(at model.Element, r Result, rest []journal.Entry) {
	to, ok := r.follow(at)
	ends := r.Unknown == "" && (!ok && r.Outcome.Status == core.StatusFailed || ok && to.Kind == model.TargetFail)
	if _, decision := at.(*model.DecisionElement); ends && !decision && r.Outcome.Status == core.StatusFailed {
		p.Ordinal = p.Log.Ordinal
		return
	}
	p.abandon(at, rest)
}

func (p *replay) abandon(at model.Element, rest []journal.Entry) {
	p.adopt.offer(journal.LastRound(p.Flow, rest))
	p.Ordinal++
	p.note(at, ports.VisitTurn, "", journal.AbandonFrom(p.Ordinal))
}

func (p *replay) runAgain(at model.Element, e, stop *journal.Entry) {
	again := *e
	again.RunsAgain = true
	p.adopt.offer(map[string]journal.Entry{at.ElementName(): again})
	p.Ordinal = stop.Ordinal
}

// jumpsBackTo returns the index of the restart point if the log ends with a
// stop that leads back, otherwise its length: the walk reaches the elements
// between again.
func (p *replay) jumpsBackTo() int {
	entries := p.Log.Entries
	none := len(entries)
	if none == 0 || !entries[none-1].JumpsBack(p.Flow) {
		return none
	}
	target := entries[none-1].Target
	if since := slices.IndexFunc(entries[:none-1], func(e journal.Entry) bool { return e.Element == target }); since >= 0 {
		return since
	}
	return none
}

func (p *replay) jump(at model.Element, e *journal.Entry, before []journal.Entry, since int) successors {
	p.Ordinal = p.Log.Ordinal
	target, ok := p.Flow.Find(e.Target)
	if !ok { // the definition no longer has it
		return next(at)
	}
	if since < len(before) {
		p.adopt.offer(journal.LastRound(p.Flow, before[since:]))
		p.Ordinal++
		p.note(at, ports.VisitTurn, "", journal.AbandonFrom(before[since].Ordinal))
	}
	return next(target)
}

func (p *replay) revisit(ctx context.Context, at model.Element, e *journal.Entry) (r Result, ran bool, err error) {
	switch at := at.(type) {
	case *model.StepElement:
		return p.revisitStep(ctx, at, e)
	case *model.FlowElement:
		if at.AsStep {
			return p.revisitStep(ctx, p.asStep(at, p.VisitOf(at), e), e)
		}
	case *model.DecisionElement, *model.SplitElement, *model.AtomicElement:
	}
	if e.Kind == ports.VisitNoop {
		if p.followsRerun(e) {
			r, err = p.visit(ctx, at)
			return r, true, err
		}
		return completed(core.ExitNoop), false, nil
	}
	switch at := at.(type) {
	case *model.DecisionElement:
		if p.decidesAgain(at, e) {
			r, err = p.visit(ctx, at)
			return r, true, err
		}
		if !p.isKept(e) {
			p.Port.Decided(ctx, p.Walk, at, e.Verdict, true)
		}
		return completed(e.Verdict), false, nil
	case *model.SplitElement, *model.FlowElement:
		return p.inside(ctx, at, e, nil)
	case *model.AtomicElement:
		if out, ended := e.Outcome(); ended && out.Status != core.StatusCompleted && p.isOfEarlierRound(e) {
			return Known(out), false, nil
		}
		return p.inside(ctx, at, e, nil)
	case *model.StepElement: // above
	}
	return Result{}, false, fmt.Errorf("element %s: cannot run a %T", at.ElementName(), at)
}

func (p *replay) revisitStep(ctx context.Context, at *model.StepElement, e *journal.Entry) (Result, bool, error) {
	isOver := e.Record != nil && e.Record.Status.IsOver()
	isOld := isOver && p.isOfEarlierRound(e)
	switch {
	case isOver && (p.isKept(e) || journal.IsDone(*e.Record) && (!at.AllowStartIfComplete || isOld)):
		return p.pass(ctx, at, *e.Record), false, nil
	case isOld: // it failed, and a transition led on from that
		p.attempt.Progress.RecordPassed(*e.Record)
		p.Last = e.Record
		return Known(journal.OutcomeOf(e.Record)), false, nil
	}
	r, err := p.visitStep(ctx, at)
	return r, true, err
}

// isKept reports whether the visit stands: an attempt passed it, or this
// attempt visited it in another process and did not lose its worker.
func (p *replay) isKept(e *journal.Entry) bool {
	if e.Kind == ports.VisitPass {
		return true
	}
	lost := e.Record != nil && e.Record.Status == core.StatusFailed && e.Record.Error == ports.LostOwner
	return p.attempt.Resuming || p.attempt.OnBranch && e.Execution == p.attempt.ID && !lost
}

// decidesAgain is true if the verdict ended the flow other than COMPLETED (no
// restart could end differently); if the step before ran again, but not toward
// a restart point; or if its path is gone (rule F3).
func (p *replay) decidesAgain(at *model.DecisionElement, e *journal.Entry) bool {
	if p.isKept(e) {
		return false
	}
	if _, ok := model.Next(at.Edges(), core.StatusCompleted, e.Verdict); !ok && e.NextKind != "" { // the definition no longer has this path
		return true
	}
	last := &p.Log.Entries[len(p.Log.Entries)-1]
	return e.Ordinal == last.Ordinal && p.endsNotCompleted(at, e.Verdict) || last.Kind != ports.VisitJump && p.followsRerun(e)
}

func (p *replay) followsRerun(e *journal.Entry) bool {
	follows := e.Ordinal == 1 || slices.ContainsFunc(p.Log.Entries, func(before journal.Entry) bool {
		return before.Ordinal < e.Ordinal && before.NextOrdinal == e.Ordinal
	})
	return follows && !p.isKept(e) && p.Last != nil && p.Last.JobExecutionID == p.attempt.ID
}

func (p *replay) endsNotCompleted(at *model.DecisionElement, verdict string) bool {
	r := completed(verdict)
	to, ok := r.follow(at)
	if !ok {
		return p.Flow.Strict && len(at.Edges()) > 0 || unmatched(at, r.Outcome).Status != core.StatusCompleted
	}
	return to.Kind == model.TargetFail || to.Kind == model.TargetStop
}
