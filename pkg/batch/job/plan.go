package job

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

// Plan is what a launch would do: the walk itself, through a port that acts on nothing
// (rule F5). It holds while the execution that it looked at is the newest of its
// instance and has this epoch.
type Plan struct {
	Execution core.JobExecutionID // the newest of the instance; 0: there is none
	Epoch     int64
	Entries   []PlanEntry
	// Limit is why the execution fails before a step begins: its start limit; nil: no
	// limit is reached as far as the way is certain.
	Limit *StartLimitError
	// Outcome is how the flow ends; nil: that depends on what runs.
	Outcome *core.Outcome
}

// PlanEntry is what a launch does at an element of the flow.
type PlanEntry struct {
	core.Visit
	// Step is the name of the step; empty for other elements. Kind is the kind of the
	// step, or of what is asked: decision, condition.
	Step, Kind string
	Act        PlanAct
	Certainty  Certainty
	// Text is the condition of an entry that is CertainIf, or the element whose outcome
	// decides about one that is CertainAfter.
	Text string
	// If is the condition whose answer is not known, also of an entry that is CertainAfter.
	If string
	// Before is the newest execution of the step; nil: it has none.
	Before *core.StepExecution
	// Via are the transitions by which the flow may come to an entry that is
	// CertainAfter; none: it follows the entry before it.
	Via []PlanEdge
	// MayRepeat says that the flow may come to the element again.
	MayRepeat bool
}

// PlanEdge is a transition behind an outcome that a plan does not know.
type PlanEdge struct {
	From string
	// On is the pattern of the exit code of From; core.ExitCompleted for every one of a
	// success; empty: the outcome of From is known.
	On string
}

// PlanAct is what a launch does at an element.
type PlanAct string

// The acts of a plan.
const (
	PlanPass    PlanAct = "pass"    // complete or given up: it does not run
	PlanResume  PlanAct = "resume"  // run from where its last attempt ended
	PlanRun     PlanAct = "run"     // run for the first time
	PlanRepeat  PlanAct = "repeat"  // run from its beginning though it ran before
	PlanSkip    PlanAct = "skip"    // not run, or not gone into: its condition does not hold
	PlanAsk     PlanAct = "ask"     // a decision, or the condition of an element without a step, is asked
	PlanStop    PlanAct = "stop"    // the flow stops here
	PlanFinally PlanAct = "finally" // run at the end, whatever happens
)

// Certainty says how sure an entry of a plan is.
type Certainty string

// The degrees of certainty. A request to stop, a failure of the database and the like
// are left out of account.
const (
	Certain Certainty = "certain"
	// CertainIf: if the condition holds.
	CertainIf Certainty = "if"
	// CertainAfter: it depends on the outcome of another element.
	CertainAfter Certainty = "after"
)

// StartLimitError refuses a step that was attempted as often as its start limit
// allows: core.ErrStartLimit is in its chain.
type StartLimitError struct {
	Step            string
	Attempts, Limit int
}

// Error names the step, its attempts and its limit.
func (e *StartLimitError) Error() string {
	return fmt.Sprintf("step %s was attempted %d times, its start_limit is %d: %v", e.Step, e.Attempts, e.Limit, core.ErrStartLimit)
}

// Unwrap returns core.ErrStartLimit.
func (e *StartLimitError) Unwrap() error { return core.ErrStartLimit }

// Oracle answers what a plan cannot know: for a visit, how a step ended, what a decision
// answered or why it failed, whether a condition held. ok is false where it does not know
// either. A step ends before the group around it does.
type Oracle interface {
	Step(v core.Visit) (out core.Outcome, ok bool)
	Decision(v core.Visit) (verdict string, ok bool, err error)
	Condition(v core.Visit) (holds, ok bool)
}

// NewPlan plans the next attempt of an instance whose newest execution is last. Where
// last is nil, or has no ID, it plans the first one. The parameters are those of last. It
// reads the repository, and calls no code of an author but core.Condition.Try. oracle may be
// nil. The error is that of the repository.
func NewPlan(ctx context.Context, repository core.JobRepository, j *core.Job, last *core.JobExecution, oracle Oracle) (*Plan, error) {
	d := &dry{
		oracle: oracle, plan: &Plan{Entries: []PlanEntry{}}, next: math.MaxInt64 / 2,
		noops: map[string]bool{}, sure: map[string]bool{}, refused: map[string]bool{}, loops: map[string]map[string]bool{},
	}
	r := &run{
		job: j, exec: &core.JobExecution{ID: planned, JobName: j.Name, Attempt: 1, Context: core.NewExecutionContext()},
		progress: newProgress(nil), journal: &journal{},
	}
	if last != nil {
		r.exec.Params = last.Params
	}
	if last != nil && last.ID != 0 {
		d.plan.Execution, d.plan.Epoch = last.ID, last.Epoch
		r.exec.InstanceID, r.exec.Attempt = last.InstanceID, last.Attempt+1
		if last.Context != nil {
			r.exec.Context = last.Context.Clone()
		}
		history, err := repository.LastSteps(ctx, last.InstanceID, last.AnewSince())
		if err != nil {
			return nil, fmt.Errorf("read the history of the instance: %w", err)
		}
		if r.journal, err = newJournal(ctx, repository, r.exec, history); err != nil {
			return nil, fmt.Errorf("read the history of the instance: %w", err)
		}
		for name, h := range history {
			h.Last = takenOver(h.Last)
			history[name] = h
		}
		for id, s := range r.journal.steps {
			r.journal.steps[id] = takenOver(s)
		}
		r.progress = newProgress(history)
	}
	w := &walk{run: r, port: d, flow: j.Flow, log: r.journal.log(j.Flow, "", allAttempts())}
	d.end(ctx, w)
	d.planFinally(r)
	return d.plan, nil
}

// end walks the flow. What ends the walk fails the execution.
func (d *dry) end(ctx context.Context, w *walk) {
	end, err := w.walk(ctx)
	if err != nil {
		end = known(failed(err))
	}
	isLimited := errors.As(err, new(*StartLimitError)) // whatever the other branches of a split come to
	if !isLimited && (end.unknown != "" || w.after != "") {
		return
	}
	d.plan.Outcome = &end.out
	if end.out.Status == core.StatusFailed {
		d.plan.Limit = d.limit
	}
}

// takenOver is the step as a launch finds it that takes over a lost execution.
func takenOver(s core.StepExecution) core.StepExecution {
	if s.Status.IsRunning() {
		s.Status, s.ExitCode = core.StatusFailed, core.ExitFailed
	}
	return s
}

// planned is the id of an execution that is not there.
const planned core.JobExecutionID = -1

// dry is the port of a plan.
type dry struct {
	oracle Oracle
	plan   *Plan
	limit  *StartLimitError     // the last that the walk reached
	stops  int                  // how often the flow may stop
	next   core.StepExecutionID // ids of steps that would run
	// noops are the steps whose condition does not hold, and sure those that are passed
	// on every way.
	noops, sure map[string]bool
	// refused are the elements whose condition does not hold.
	refused map[string]bool
	// loops are the elements that lead to an element and follow it, by its flow and name.
	loops map[string]map[string]bool
}

func (d *dry) stopping() bool { return false }

// add appends an entry, as certain as the way to it.
func (d *dry) add(w *walk, at core.Element, act PlanAct, entry PlanEntry) {
	entry.Visit, entry.Act, entry.Certainty, entry.If = w.visitOf(at), act, Certain, w.under
	switch {
	case w.after != "":
		entry.Certainty, entry.Text, entry.Via = CertainAfter, w.after, w.edgesTo(at.ElementName())
	case w.under != "":
		entry.Certainty, entry.Text = CertainIf, w.under
	}
	d.plan.Entries = append(d.plan.Entries, entry)
}

func (d *dry) passed(_ context.Context, w *walk, at *core.StepElement, s core.StepExecution) {
	d.sure[s.Name] = w.isCertain()
	delete(d.noops, s.Name)
	d.add(w, at, PlanPass, PlanEntry{Step: s.Name, Kind: at.Step.Kind(), Before: &s})
}

func (d *dry) holds(ctx context.Context, w *walk, at core.Element) (answer, error) {
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

// answer answers the condition of an element, as far as a plan can.
func (d *dry) answer(ctx context.Context, w *walk, at core.Element) answer {
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

// try asks a condition. What fails now is answered when the execution asks it.
func (d *dry) try(ctx context.Context, w *walk, condition *core.Condition) (held, known bool) {
	if condition.Try == nil {
		return false, false
	}
	err := exception.Guard(func() (err error) {
		held, known, err = condition.Try(ctx, w.view(), d.unknown(w))
		return err
	})
	return held, known && err == nil
}

// unknown is what a condition cannot be asked about at the place of the walk: what ran
// on the way there, and, once the way is not certain, what a loop may run again.
func (d *dry) unknown(w *walk) core.Unknown {
	seen, isWayKnown := w.run.progress.seen(), w.isCertain()
	u := core.Unknown{Context: !isWayKnown}
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

func (d *dry) noop(_ context.Context, w *walk, at *core.StepElement) (result, error) {
	d.add(w, at, PlanSkip, PlanEntry{Step: at.Step.Name(), Kind: at.Step.Kind()})
	out := core.Outcome{Status: core.StatusCompleted, ExitCode: core.ExitNoop}
	if w.group == nil {
		d.record(w, at, out)
		d.noops[at.Step.Name()] = true
	}
	return known(out), nil
}

func (d *dry) step(ctx context.Context, w *walk, at *core.StepElement, before core.StepHistory) (result, error) {
	entry := PlanEntry{Step: at.Step.Name(), Kind: at.Step.Kind()}
	act := PlanRun
	if before.Last.ID != 0 {
		entry.Before = &before.Last
		if act = PlanRepeat; !isDone(before.Last) {
			act = PlanResume
		}
	}
	d.add(w, at, act, entry)
	v, under, after, lost := w.visitOf(at), w.under, w.after, w.lost
	r := result{unknown: at.Step.Name()}
	if s, is := at.Step.(*flowStep); is {
		var err error
		if r, err = s.walk(ctx); err != nil { // as that of a step that ran
			r = known(core.Outcome{Status: core.StatusFailed, ExitCode: core.ExitFailed, Message: err.Error(), Step: at.Step.Name()})
		}
	}
	if d.oracle != nil {
		if out, ok := d.oracle.Step(v); ok {
			r, w.after, w.lost = known(out), after, lost
		}
	}
	if w.under = under; under != "" { // whether it runs is not known either
		r = result{unknown: at.Step.Name()}
	}
	d.record(w, at, r.out)
	return r, nil
}

// record notes a step that would have run.
func (d *dry) record(w *walk, at *core.StepElement, out core.Outcome) {
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

func (d *dry) limited(w *walk, at *core.StepElement, refusal *StartLimitError) (result, error) {
	if w.after != "" || w.under != "" {
		return result{unknown: at.Step.Name()}, nil
	}
	d.limit = refusal
	return result{}, refusal
}

func (d *dry) decide(_ context.Context, w *walk, at *core.DecisionElement) (verdict string, answered bool, err error) {
	d.add(w, at, PlanAsk, PlanEntry{Kind: "decision"})
	if d.oracle == nil {
		return "", false, nil
	}
	return d.oracle.Decision(w.visitOf(at))
}

func (d *dry) decided(context.Context, *walk, *core.DecisionElement, string, bool) {}

// split walks the branches one after the other. Where one may stop the job, it is a
// matter of time whether those behind it begin.
func (d *dry) split(ctx context.Context, _ *walk, at *core.SplitElement, branches []*walk) (result, error) {
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

func (d *dry) group(ctx context.Context, w *walk, at *core.AtomicElement, sub *walk) (result, error) {
	sub.group = &attempted{Group: core.Group{Name: at.Name, Database: at.Database}}
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

func (d *dry) stopped(_ context.Context, w *walk, at core.Element, _ bool) error {
	d.stops++
	d.add(w, at, PlanStop, PlanEntry{})
	if stop := &d.plan.Entries[len(d.plan.Entries)-1]; w.leaving != nil {
		stop.Via = []PlanEdge{*w.leaving}
	}
	return nil
}

func (d *dry) note(*walk, core.FlowVisit) {}

// listed marks what may repeat: of the element, and of all that leads back to it, the last
// entry.
func (d *dry) listed(w *walk, at core.Element) {
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

// isRun reports whether the entry stands for the visits that may follow: what was passed has
// another entry for them.
func (e *PlanEntry) isRun() bool { return e.Act != PlanStop && e.Act != PlanPass }

// visitAround is the visit in the flow of the walk that v is, or is inside of.
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
	w := &walk{run: r, port: d, flow: r.job.Finally, id: core.FlowFinally}
	for _, at := range r.job.Finally.Elements {
		step, ok := at.(*core.StepElement)
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
