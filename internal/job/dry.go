package job

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

// planned is the ID of an execution that does not exist.
const planned core.JobExecutionID = -1

type dry struct {
	oracle Oracle
	plan   *Plan
	limit  *StartLimitError     // last limit that the walk reached
	stops  int                  // how often the flow may stop
	next   core.StepExecutionID // IDs of steps that would run
	// noops are the steps with a false condition; sure are the steps passed on every path.
	noops, sure map[string]bool
	// places are the indices of the entries, by PlanEntry.place.
	places map[string]int
	// refused are the elements with a false condition.
	refused map[string]bool
	// loops holds, by flow and name of an element, the elements that lead to it and follow it.
	loops map[string]map[string]bool
}

func newDry(oracle Oracle) *dry {
	return &dry{
		oracle: oracle, plan: &Plan{Entries: []PlanEntry{}}, next: math.MaxInt64 / 2,
		places: map[string]int{}, noops: map[string]bool{}, sure: map[string]bool{}, refused: map[string]bool{}, loops: map[string]map[string]bool{},
	}
}

func (d *dry) stopping() bool { return false }

// add appends an entry, as certain as the path to it. If another path after an unknown outcome has
// already reached the same place, that entry stands for both; with an oracle each visit has one.
func (d *dry) add(w *walk, at model.Element, act PlanAct, entry PlanEntry) {
	entry.Visit, entry.Act, entry.Certainty, entry.If = w.visitOf(at), act, Certain, w.under
	switch {
	case w.leaving != nil:
		entry.Certainty, entry.Text, entry.Via = CertainAfter, w.after, []PlanEdge{*w.leaving}
	case w.after != "":
		entry.Certainty, entry.Text, entry.Via = CertainAfter, w.after, w.edgesTo(at.ElementName())
	case w.under != "":
		entry.Certainty, entry.Text = CertainIf, w.under
	}
	place := entry.place()
	if first, there := d.places[place]; there && d.oracle == nil && d.plan.Entries[first].standsFor(entry) {
		same := &d.plan.Entries[first]
		same.MayRepeat = same.MayRepeat || same.isRun() && w.isInLoop(at)
		if same.Certainty == CertainAfter {
			same.Via = append(same.Via, slices.DeleteFunc(entry.Via, func(e PlanEdge) bool { return slices.Contains(same.Via, e) })...)
		}
		return
	}
	d.places[place] = len(d.plan.Entries)
	d.plan.Entries = append(d.plan.Entries, entry)
}

// standsFor reports whether the entry covers a later one of the same place. The outcome that leads to a
// step that certainly runs once more is stated separately.
func (e *PlanEntry) standsFor(later PlanEntry) bool {
	return later.Certainty == CertainAfter && (e.Certainty == CertainAfter || later.Step == "" || later.Act == PlanPass)
}

// place identifies an entry regardless of the round of a loop: running from the beginning, from the end
// of an attempt or once more is the same place.
func (e *PlanEntry) place() string {
	act := e.Act
	switch act {
	case PlanResume, PlanRepeat:
		act = PlanRun
	case PlanStop:
		for _, edge := range e.Via {
			act += PlanAct(" " + edge.From + " " + edge.On)
		}
	case PlanPass, PlanRun, PlanSkip, PlanAsk, PlanLimit, PlanFinally:
	}
	parts := strings.Split(e.Flow, "#")
	for i, part := range parts[1:] {
		_, parts[i+1], _ = strings.Cut(part, "/") // without the ordinal
	}
	return strings.Join(append(parts, e.Element, e.Kind, string(act), e.If), "#")
}

func (d *dry) passed(_ context.Context, w *walk, at *model.StepElement, s core.StepExecution) {
	d.sure[s.Name] = w.isCertain()
	delete(d.noops, s.Name)
	d.add(w, at, PlanPass, PlanEntry{Step: s.Name, Kind: at.Step.Kind(), Before: &s})
}

func (d *dry) holds(ctx context.Context, w *walk, at model.Element) (answer, error) {
	held := d.answer(ctx, w, at)
	if _, isStep := recordOf(at); isStep || held == yes {
		return held, nil
	}
	act := PlanAsk
	if held == no {
		act = PlanSkip
	}
	d.add(w, at, act, PlanEntry{Kind: "condition"})
	return held, nil
}

// answer answers the condition of an element, if a plan can.
func (d *dry) answer(ctx context.Context, w *walk, at model.Element) answer {
	condition := at.Condition()
	if condition == nil {
		return yes
	}
	if d.oracle != nil {
		if held, ok := d.oracle.Condition(w.visitOf(at)); ok {
			return answerOf(held)
		}
	}
	name := at.ElementName()
	held, known := d.try(ctx, w, condition)
	if !known || !held && d.refused[name] { // a loop in which nothing runs has no end
		return perhaps
	}
	d.refused[name] = d.refused[name] || !held
	return answerOf(held)
}

// try asks a condition. If it fails now, the execution asks it again.
func (d *dry) try(ctx context.Context, w *walk, condition *model.Condition) (held, known bool) {
	if condition.Try == nil {
		return false, false
	}
	err := exception.Guard(func() (err error) {
		held, known, err = condition.Try(ctx, w.view(), d.unknown(w))
		return err
	})
	return held, known && err == nil
}

// unknown returns the values that a condition cannot use at this point of the walk: the steps that ran
// on the path, and, once the path is uncertain, those that a loop may run again.
func (d *dry) unknown(w *walk) model.Unknown {
	seen, isWayKnown := w.run.progress.seen(), w.isCertain()
	u := model.Unknown{Context: !isWayKnown}
	for name, s := range seen {
		u.Context = u.Context || s.JobExecutionID == planned && !d.noops[name]
	}
	u.Step = func(name string) bool {
		s, there := seen[name]
		switch {
		case !there || d.noops[name]:
			return !isWayKnown
		case s.JobExecutionID == planned:
			return true
		}
		return !d.sure[name] || !isWayKnown && w.run.job.Flow.IsInLoop(name)
	}
	return u
}

func answerOf(held bool) answer {
	if held {
		return yes
	}
	return no
}

func (d *dry) noop(_ context.Context, w *walk, at *model.StepElement) (result, error) {
	d.add(w, at, PlanSkip, PlanEntry{Step: at.Step.Name(), Kind: at.Step.Kind()})
	out := core.Outcome{Status: core.StatusCompleted, ExitCode: core.ExitNoop}
	if w.group == nil {
		d.record(w, at, out)
		d.noops[at.Step.Name()] = true
	}
	return known(out), nil
}

func (d *dry) step(ctx context.Context, w *walk, at *model.StepElement, before ports.StepHistory) (result, error) {
	entry := PlanEntry{Step: at.Step.Name(), Kind: at.Step.Kind(), OnWorkers: w.onWorkers || onWorkers(at.Step)}
	act := PlanRun
	if before.Last.ID != 0 {
		entry.Before = &before.Last
		switch {
		case !isDone(before.Last):
			act = PlanResume
		case before.Last.JobExecutionID != planned:
			act = PlanRepeat
		}
	}
	d.add(w, at, act, entry)
	v, under, after, lost := w.visitOf(at), w.under, w.after, w.lost
	r := result{unknown: at.Step.Name()}
	if s, is := at.Step.(*flowStep); is {
		var err error
		if r, err = s.walk(ctx); err != nil { // like the result of a step that ran
			r = known(core.Outcome{Status: core.StatusFailed, ExitCode: core.ExitFailed, Message: err.Error(), Step: at.Step.Name()})
		}
		r.refused = false
	}
	if d.oracle != nil {
		if out, ok := d.oracle.Step(v); ok {
			r, w.after, w.lost = known(out), after, lost
		}
	}
	if w.under = under; under != "" { // whether it runs is unknown too
		r = result{unknown: at.Step.Name()}
	}
	d.record(w, at, r.out)
	return r, nil
}

func (d *dry) record(w *walk, at *model.StepElement, out core.Outcome) {
	d.next++
	delete(d.noops, at.Step.Name())
	s := core.StepExecution{ID: d.next, JobExecutionID: planned, Name: at.Step.Name(), Visit: w.visitOf(at), Status: out.Status, ExitCode: out.ExitCode}
	if out.Status == "" {
		s.Status = core.StatusCompleted
	}
	w.run.progress.record(s)
	w.last = &s
	if w.group != nil {
		w.group.records = append(w.group.records, s)
	}
}

func (d *dry) limited(w *walk, at *model.StepElement, refusal *StartLimitError) (result, error) {
	if w.after == "" && w.under == "" {
		d.limit = refusal
		return result{}, refusal
	}
	d.add(w, at, PlanLimit, PlanEntry{Step: at.Step.Name(), Kind: at.Step.Kind()})
	if w.under != "" {
		return result{unknown: at.Step.Name()}, nil
	}
	return result{out: failed(refusal), refused: true}, nil
}

func (d *dry) decide(_ context.Context, w *walk, at *model.DecisionElement) (verdict string, answered bool, err error) {
	d.add(w, at, PlanAsk, PlanEntry{Kind: "decision"})
	if d.oracle == nil {
		return "", false, nil
	}
	return d.oracle.Decision(w.visitOf(at))
}

func (d *dry) decided(context.Context, *walk, *model.DecisionElement, string, bool) {}

// split walks the branches one after the other. If one may stop the job, timing decides whether the
// later ones begin.
func (d *dry) split(ctx context.Context, _ *walk, at *model.SplitElement, branches []*walk) (result, error) {
	var errs []error
	results := make([]result, len(branches))
	stops := d.stops
	for i, sub := range branches {
		if d.stops > stops && sub.after == "" {
			sub.after = at.Name
		}
		r, err := sub.walk(ctx)
		results[i] = r
		errs = append(errs, err)
	}
	return worst(results), errors.Join(errs...)
}

func (d *dry) group(ctx context.Context, w *walk, at *model.AtomicElement, sub *walk) (result, error) {
	sub.group = &attempted{Group: model.Group{Name: at.Name, Database: at.Database}}
	r, err := sub.walk(ctx)
	w.join(sub)
	if err == nil && (r.unknown != "" || r.out.Status == core.StatusCompleted) {
		return r, nil
	}
	for _, s := range sub.group.records { // it is rolled back
		if s.Status == core.StatusCompleted {
			s.Status, s.ExitCode = core.StatusFailed, core.ExitFailed
			w.run.progress.recordEnd(s)
		}
	}
	return r, err
}

func (d *dry) stopped(_ context.Context, w *walk, at model.Element, _ bool) error {
	d.stops++
	d.add(w, at, PlanStop, PlanEntry{})
	return nil
}

func (d *dry) note(*walk, ports.FlowVisit) {}

// listed marks the entries that may repeat: the last entry of the element and of each element that
// leads back to it.
func (d *dry) listed(w *walk, at model.Element) {
	name := at.ElementName()
	loop := d.loopOf(w, name)
	last := map[string]int64{} // visits in the loop
	for _, e := range d.plan.Entries {
		if v, is := w.visitAround(e.Visit); is && e.isRun() && loop[v.Element] {
			last[v.Element] = max(last[v.Element], v.Ordinal)
		}
	}
	for i := range d.plan.Entries {
		e := &d.plan.Entries[i]
		v, is := w.visitAround(e.Visit)
		if !is || !e.isRun() {
			continue
		}
		e.MayRepeat = e.MayRepeat || last[v.Element] == v.Ordinal
		if e.Visit == v && v.Element == name && e.Certainty == CertainAfter {
			e.Via = w.edgesTo(name)
		}
	}
}

// loopOf returns the elements of the flow that lead to the element and follow it.
func (d *dry) loopOf(w *walk, name string) map[string]bool {
	key := core.FlowPrefix(w.id) + name
	if loop, known := d.loops[key]; known {
		return loop
	}
	loop := w.flow.LoopOf(name)
	d.loops[key] = loop
	for other := range loop {
		d.loops[core.FlowPrefix(w.id)+other] = loop
	}
	return loop
}

// isRun reports whether the entry stands for the later visits too: a passed element has another entry
// for them.
func (e *PlanEntry) isRun() bool { return e.Act != PlanStop && e.Act != PlanPass }

// visitAround returns the visit in the walk's own flow that is v or contains v.
func (w *walk) visitAround(v core.Visit) (around core.Visit, is bool) {
	if v.Flow == w.id {
		return v, true
	}
	inside, is := strings.CutPrefix(v.Flow, core.FlowPrefix(w.id))
	element, rest, found := strings.Cut(inside, "#")
	number, _, _ := strings.Cut(rest, "/")
	ordinal, err := strconv.ParseInt(number, 10, 64)
	return core.Visit{Flow: w.id, Ordinal: ordinal, Element: element}, is && found && err == nil
}

func (d *dry) planFinally(r *run) {
	w := &walk{run: r, port: d, flow: r.job.Finally, id: ports.FlowFinally}
	for _, at := range r.job.Finally.Elements {
		step, ok := at.(*model.StepElement)
		if !ok {
			continue
		}
		w.ordinal++
		w.under = ""
		if step.When != nil {
			w.under = step.When.Text
		}
		d.add(w, at, PlanFinally, PlanEntry{Step: step.Step.Name(), Kind: step.Step.Kind()})
	}
}
