package planner

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/internal/job/journal"
	"github.com/surfin-batch/surfin/internal/job/walk"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/panics"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const planned core.JobExecutionID = -1

type dry struct {
	job     *model.Job
	attempt *walk.Attempt
	oracle  Oracle
	plan    *Plan
	limit   *walk.StartLimitError // last limit that the walk reached
	stops   int                   // how often the flow may stop
	next    core.StepExecutionID  // IDs of steps that would run
	// group are the steps that roll back together; may be nil.
	group *[]core.StepExecution
	// noops have a false condition; alwaysPassed are passed on every path.
	noops, alwaysPassed map[string]bool
	index               map[string]int
	notHeld             map[string]bool
	// By flow and element, those that lead to it and follow it.
	loops map[string]map[string]bool
}

func newDry(j *model.Job, exec *core.JobExecution, attempt *walk.Attempt, oracle Oracle) *dry {
	attempt.ID = exec.ID
	attempt.Execution = func() *core.JobExecution {
		now := *exec
		now.Context = exec.Context.Clone()
		return &now
	}
	return &dry{
		job: j, attempt: attempt, oracle: oracle, plan: &Plan{Entries: []Entry{}}, next: math.MaxInt64 / 2,
		index: map[string]int{}, noops: map[string]bool{}, alwaysPassed: map[string]bool{}, notHeld: map[string]bool{}, loops: map[string]map[string]bool{},
	}
}

func (d *dry) walk(ctx context.Context, w *walk.Walk) {
	end, err := w.Run(ctx)
	if err != nil {
		end = walk.Known(walk.Failed(err))
	}
	isLimited := errors.As(err, new(*walk.StartLimitError)) // regardless of the other branches of a split
	if !isLimited && (end.Unknown != "" || w.After != "") {
		return
	}
	d.plan.Outcome = &end.Outcome
	if end.Outcome.Status == core.StatusFailed {
		d.plan.Limit = d.limit
	}
}

func (d *dry) Stopping() bool { return false }

// Entries that another path led to already are not repeated; with an oracle
// each visit has one.
func (d *dry) add(w *walk.Walk, at model.Element, act Act, entry Entry) {
	entry.Visit, entry.Act, entry.Certainty, entry.If = w.VisitOf(at), act, Certain, w.If
	switch {
	case w.Ending != nil:
		entry.Certainty, entry.Text, entry.Via = CertainAfter, w.After, []walk.Edge{*w.Ending}
	case w.After != "":
		entry.Certainty, entry.Text, entry.Via = CertainAfter, w.After, w.EdgesTo(at.ElementName())
	case w.If != "":
		entry.Certainty, entry.Text = CertainIf, w.If
	}
	key := entry.key()
	if first, there := d.index[key]; there && d.oracle == nil && d.plan.Entries[first].standsFor(entry) {
		same := &d.plan.Entries[first]
		same.MayRepeat = same.MayRepeat || same.isRun() && w.IsInLoop(at)
		if same.Certainty == CertainAfter {
			same.Via = append(same.Via, slices.DeleteFunc(entry.Via, func(e walk.Edge) bool { return slices.Contains(same.Via, e) })...)
		}
		return
	}
	d.index[key] = len(d.plan.Entries)
	d.plan.Entries = append(d.plan.Entries, entry)
}

func (e *Entry) standsFor(later Entry) bool {
	return later.Certainty == CertainAfter && (e.Certainty == CertainAfter || later.Step == "" || later.Act == ActPass)
}

func (e *Entry) key() string {
	act := e.Act
	switch act {
	case ActResume, ActRepeat:
		act = ActRun
	case ActStop:
		for _, edge := range e.Via {
			act += Act(" " + edge.From + " " + edge.On)
		}
	case ActPass, ActRun, ActSkip, ActAsk, ActLimit, ActFinally:
	}
	parts := strings.Split(e.Flow, "#")
	for i, part := range parts[1:] {
		_, parts[i+1], _ = strings.Cut(part, "/") // without the ordinal
	}
	return strings.Join(append(parts, e.Element, e.Kind, string(act), e.If), "#")
}

func (d *dry) Passed(_ context.Context, w *walk.Walk, at *model.StepElement, s core.StepExecution) {
	d.alwaysPassed[s.Name] = w.IsCertain()
	delete(d.noops, s.Name)
	d.add(w, at, ActPass, Entry{Step: s.Name, Kind: at.Step.Kind(), Before: &s})
}

func (d *dry) Holds(ctx context.Context, w *walk.Walk, at model.Element) (walk.Answer, error) {
	held := d.answer(ctx, w, at)
	if _, isStep := journal.StepName(at); isStep || held == walk.Yes {
		return held, nil
	}
	act := ActAsk
	if held == walk.No {
		act = ActSkip
	}
	d.add(w, at, act, Entry{Kind: "condition"})
	return held, nil
}

func (d *dry) answer(ctx context.Context, w *walk.Walk, at model.Element) walk.Answer {
	condition := at.Condition()
	if condition == nil {
		return walk.Yes
	}
	if d.oracle != nil {
		if held, ok := d.oracle.Condition(w.VisitOf(at)); ok {
			return answerOf(held)
		}
	}
	name := at.ElementName()
	held, known := d.try(ctx, w, condition)
	if !known || !held && d.notHeld[name] { // a loop in which nothing runs has no end
		return walk.Perhaps
	}
	d.notHeld[name] = d.notHeld[name] || !held
	return answerOf(held)
}

func (d *dry) try(ctx context.Context, w *walk.Walk, condition *model.Condition) (held, known bool) {
	if condition.Try == nil {
		return false, false
	}
	err := panics.Guard(func() (err error) {
		held, known, err = condition.Try(ctx, w.View(), d.unknown(w))
		return err
	})
	return held, known && err == nil
}

// unknown are values of steps that would run, and, once the path is uncertain,
// of those that a loop may run again.
func (d *dry) unknown(w *walk.Walk) model.Unknown {
	seen, isCertain := d.attempt.Progress.Steps(), w.IsCertain()
	u := model.Unknown{Context: !isCertain}
	for name, s := range seen {
		u.Context = u.Context || s.JobExecutionID == planned && !d.noops[name]
	}
	u.Step = func(name string) bool {
		s, there := seen[name]
		switch {
		case !there || d.noops[name]:
			return !isCertain
		case s.JobExecutionID == planned:
			return true
		}
		return !d.alwaysPassed[name] || !isCertain && d.job.Flow.IsInLoop(name)
	}
	return u
}

func answerOf(held bool) walk.Answer {
	if held {
		return walk.Yes
	}
	return walk.No
}

func (d *dry) Noop(_ context.Context, w *walk.Walk, at *model.StepElement) (walk.Result, error) {
	d.add(w, at, ActSkip, Entry{Step: at.Step.Name(), Kind: at.Step.Kind()})
	out := core.Outcome{Status: core.StatusCompleted, ExitCode: core.ExitNoop}
	if d.group == nil {
		d.record(w, at, out)
		d.noops[at.Step.Name()] = true
	}
	return walk.Known(out), nil
}

func (d *dry) Step(ctx context.Context, w *walk.Walk, at *model.StepElement, before ports.StepHistory) (walk.Result, error) {
	entry := Entry{Step: at.Step.Name(), Kind: at.Step.Kind(), OnWorkers: w.OnWorkers || walk.OnWorkers(at.Step)}
	act := ActRun
	if before.Last.ID != 0 {
		entry.Before = &before.Last
		switch {
		case !journal.IsDone(before.Last):
			act = ActResume
		case before.Last.JobExecutionID != planned:
			act = ActRepeat
		}
	}
	d.add(w, at, act, entry)
	v, condition, after, isUnknown := w.VisitOf(at), w.If, w.After, w.PathUnknown
	r := walk.Result{Unknown: at.Step.Name()}
	if s, is := at.Step.(*walk.FlowStep); is {
		var err error
		if r, err = s.Walk(ctx); err != nil { // like the result of a step that ran
			r = walk.Known(core.Outcome{Status: core.StatusFailed, ExitCode: core.ExitFailed, Message: err.Error(), Step: at.Step.Name()})
		}
		r.Refused = false
	}
	if d.oracle != nil {
		if out, ok := d.oracle.Step(v); ok {
			r, w.After, w.PathUnknown = walk.Known(out), after, isUnknown
		}
	}
	if w.If = condition; condition != "" { // whether it runs is unknown too
		r = walk.Result{Unknown: at.Step.Name()}
	}
	d.record(w, at, r.Outcome)
	return r, nil
}

func (d *dry) record(w *walk.Walk, at *model.StepElement, out core.Outcome) {
	d.next++
	delete(d.noops, at.Step.Name())
	s := core.StepExecution{ID: d.next, JobExecutionID: planned, Name: at.Step.Name(), Visit: w.VisitOf(at), Status: out.Status, ExitCode: out.ExitCode}
	if out.Status == "" {
		s.Status = core.StatusCompleted
	}
	d.attempt.Progress.Record(s)
	w.Last = &s
	if d.group != nil {
		*d.group = append(*d.group, s)
	}
}

func (d *dry) Limited(w *walk.Walk, at *model.StepElement, refusal *walk.StartLimitError) (walk.Result, error) {
	if w.After == "" && w.If == "" {
		d.limit = refusal
		return walk.Result{}, refusal
	}
	d.add(w, at, ActLimit, Entry{Step: at.Step.Name(), Kind: at.Step.Kind()})
	if w.If != "" {
		return walk.Result{Unknown: at.Step.Name()}, nil
	}
	return walk.Result{Outcome: walk.Failed(refusal), Refused: true}, nil
}

func (d *dry) Decide(_ context.Context, w *walk.Walk, at *model.DecisionElement) (verdict string, answered bool, err error) {
	d.add(w, at, ActAsk, Entry{Kind: "decision"})
	if d.oracle == nil {
		return "", false, nil
	}
	return d.oracle.Decision(w.VisitOf(at))
}

func (d *dry) Decided(context.Context, *walk.Walk, *model.DecisionElement, string, bool) {}

// If a branch may stop the job, timing decides whether the later ones begin.
func (d *dry) Split(ctx context.Context, _ *walk.Walk, at *model.SplitElement, branches []*walk.Walk) (walk.Result, error) {
	var errs []error
	results := make([]walk.Result, len(branches))
	stops := d.stops
	for i, sub := range branches {
		if d.stops > stops && sub.After == "" {
			sub.After = at.Name
		}
		r, err := sub.Run(ctx)
		results[i] = r
		errs = append(errs, err)
	}
	return walk.Worst(results), errors.Join(errs...)
}

func (d *dry) Group(ctx context.Context, _ *walk.Walk, _ *model.AtomicElement, inner *walk.Walk) (walk.Result, error) {
	around, steps := d.group, []core.StepExecution{}
	d.group = &steps
	r, err := inner.Run(ctx)
	d.group = around
	if err == nil && (r.Unknown != "" || r.Outcome.Status == core.StatusCompleted) {
		return r, nil
	}
	for _, s := range steps { // the group rolls back
		if s.Status == core.StatusCompleted {
			s.Status, s.ExitCode = core.StatusFailed, core.ExitFailed
			d.attempt.Progress.RecordEnd(s)
		}
	}
	return r, err
}

func (d *dry) StoppedAt(_ context.Context, w *walk.Walk, at model.Element, _ bool) error {
	d.stops++
	d.add(w, at, ActStop, Entry{})
	return nil
}

func (d *dry) Note(*walk.Walk, ports.FlowVisit) {}

// The last entries of the element and of those that lead back to it may repeat.
func (d *dry) Listed(w *walk.Walk, at model.Element) {
	name := at.ElementName()
	loop := d.loopOf(w, name)
	last := map[string]int64{} // visits in the loop
	for _, e := range d.plan.Entries {
		if v, is := around(w.ID, e.Visit); is && e.isRun() && loop[v.Element] {
			last[v.Element] = max(last[v.Element], v.Ordinal)
		}
	}
	for i := range d.plan.Entries {
		e := &d.plan.Entries[i]
		v, is := around(w.ID, e.Visit)
		if !is || !e.isRun() {
			continue
		}
		e.MayRepeat = e.MayRepeat || last[v.Element] == v.Ordinal
		if e.Visit == v && v.Element == name && e.Certainty == CertainAfter {
			e.Via = w.EdgesTo(name)
		}
	}
}

func (d *dry) loopOf(w *walk.Walk, name string) map[string]bool {
	key := core.FlowPrefix(w.ID) + name
	if loop, known := d.loops[key]; known {
		return loop
	}
	loop := w.Flow.LoopOf(name)
	d.loops[key] = loop
	for other := range loop {
		d.loops[core.FlowPrefix(w.ID)+other] = loop
	}
	return loop
}

// A passed element has another entry for later visits.
func (e *Entry) isRun() bool { return e.Act != ActStop && e.Act != ActPass }

func around(flow string, v core.Visit) (in core.Visit, is bool) {
	if v.Flow == flow {
		return v, true
	}
	inside, is := strings.CutPrefix(v.Flow, core.FlowPrefix(flow))
	element, rest, found := strings.Cut(inside, "#")
	number, _, _ := strings.Cut(rest, "/")
	ordinal, err := strconv.ParseInt(number, 10, 64)
	return core.Visit{Flow: flow, Ordinal: ordinal, Element: element}, is && found && err == nil
}

func (d *dry) addFinally() {
	w := walk.New(d.attempt, d, walk.Start{Flow: d.job.Finally, ID: ports.FlowFinally})
	for _, at := range d.job.Finally.Elements {
		step, ok := at.(*model.StepElement)
		if !ok {
			continue
		}
		w.Ordinal++
		w.If = ""
		if step.When != nil {
			w.If = step.When.Text
		}
		d.add(w, at, ActFinally, Entry{Step: step.Step.Name(), Kind: step.Step.Kind()})
	}
}
