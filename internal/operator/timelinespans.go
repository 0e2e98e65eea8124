package operator

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func (b *timelineBuilder) addStep(s *ports.StepSpan) {
	if s.Manager != 0 {
		b.addPart(s)
		return
	}
	b.manager[s.ID], b.firsts[s.First] = s.Name, s.ID
	span := b.stepSpan(s)
	span.Kind, span.Of = SpanStep, s.Branch
	if s.Visit.Element != "" {
		at := roundOf{s.Execution, s.Visit.Flow, s.Visit.Element}
		b.rounds[at]++
		span.Round = b.rounds[at]
	}
	b.steps = append(b.steps, span)
	for _, wait := range b.waits(span, b.ofStep[s.ID], s.EndedAt) {
		b.parked[s.ID] += b.took(&wait)
		b.inner[s.ID] = append(b.inner[s.ID], wait)
	}
	if len(b.steps) > 2*maxSpans { // a loop of many thousand rounds
		b.drop(maxSpans)
	}
}

// drop leaves out the oldest steps.
func (b *timelineBuilder) drop(n int) {
	for i := range n {
		delete(b.inner, b.steps[i].Step)
	}
	b.steps = slices.Delete(b.steps, 0, n)
	b.omitted += int64(n)
}

func (b *timelineBuilder) stepSpan(s *ports.StepSpan) Span {
	span := b.span(s.Name, s.Execution, s.StartedAt, s.EndedAt)
	span.Step, span.Flow, span.Status, span.visit = s.ID, s.Visit.Flow, string(s.Status), s.Visit
	if s.Visit.Element != s.Name {
		span.Element = s.Visit.Element
	}
	b.owned(&span, s.Owner)
	span.Lost = s.Status.IsRunning() && b.lost(s.Owner, s.LeaseUntil)
	span.Read, span.Written, span.Filtered, span.Skipped = s.Counters.Read, s.Counters.Write, s.Counters.Filter, s.Counters.Skips()
	return span
}

func (b *timelineBuilder) span(name string, of core.JobExecutionID, started, ended time.Time) Span {
	span := Span{Name: name, Execution: of, Started: utc(started), Ended: utc(ended)}
	if a := b.attempts[of]; a != nil {
		span.Attempt = a.Attempt
	}
	span.Duration = seconds(b.took(&span))
	return span
}

func (b *timelineBuilder) took(s *Span) time.Duration {
	return max(0, elapsed(s.Started, s.Ended, b.now))
}

// isPast reports whether the worker no longer has the part.
func (s *Span) isPast() bool { return s.Status == "" && (s.Lost || s.Returned) }

// lists reports whether a wait is long enough, or lasts.
func (b *timelineBuilder) lists(wait *Span) bool {
	return wait.Ended.IsZero() || b.took(wait) >= leastWait
}

func (b *timelineBuilder) owned(s *Span, owner core.Owner) {
	if owner != (core.Owner{}) {
		s.Process, s.Worker = &Process{owner.Host, owner.PID}, b.names[owner]
	}
}

// addPart adds a span for each worker that had the part, and its waits for a worker. The last span has the
// counters.
func (b *timelineBuilder) addPart(s *ports.StepSpan) {
	whole := b.stepSpan(s)
	whole.Kind, whole.Of = SpanPart, s.Manager
	var list []Span
	wait := func(from, to time.Time) {
		w := b.span(s.Name, s.Execution, from, to)
		w.Kind, w.Wait, w.Step, w.Of = SpanWait, WaitQueued, s.ID, s.Manager
		if b.lists(&w) {
			list = append(list, w)
		}
	}
	since := s.StartedAt // it waits, or has it begun?
	if at, known := b.planned[s.Manager]; known && at.Before(since) {
		since = at
	}
	had := s.Status != core.StatusStarting
	var held *Span
	let := func(h ports.Hold) {
		b.owned(held, h.Owner)
		held.Ended = utc(h.At)
		held.Duration = seconds(b.took(held))
		held.Status, held.Read, held.Written, held.Filtered, held.Skipped = "", 0, 0, 0, 0
		list, held = append(list, *held), nil
	}
	for _, h := range b.ofStep[s.ID] {
		switch h.Kind {
		case ports.HoldAssign:
			if held != nil {
				held.Lost = true
				let(h)
			} else {
				wait(since, h.At)
			}
			taken := whole
			taken.Started = utc(h.At)
			held = &taken
		case ports.HoldRelease:
			if held != nil {
				held.Lost, held.Returned = false, true
				let(h)
			}
			since = h.At
		case ports.HoldPark, ports.HoldResume, ports.HoldPlan:
		}
	}
	switch {
	case held != nil:
		held.Duration = seconds(b.took(held))
		whole = *held
	case len(b.ofStep[s.ID]) > 0 || !had || s.Owner == (core.Owner{}): // it waits for a worker, or did until it was stopped
		wait(since, s.EndedAt)
		if s.EndedAt.IsZero() {
			b.addInner(list)
			return
		}
		whole.Started, whole.Duration = whole.Ended, 0
	}
	b.addInner(append(list, whole))
}

func (b *timelineBuilder) addInner(list []Span) {
	for _, s := range list {
		if s.Kind == SpanPart && !s.isPast() {
			if of := b.longest[s.Of]; of.Step == 0 || of.Duration < s.Duration {
				b.longest[s.Of] = s
			}
		}
		if b.folds && s.Of != 0 && s.Kind != SpanChild {
			b.lanes.add(s, b.manager[s.Of])
			continue
		}
		b.inner[s.Of] = append(b.inner[s.Of], s)
		b.parts++
	}
}

// waits are the times between parking and resuming.
func (b *timelineBuilder) waits(of Span, holds []ports.Hold, ended time.Time) (list []Span) {
	var since time.Time
	add := func(to time.Time) {
		w := b.span(of.Name, of.Execution, since, to)
		w.Kind, w.Wait, w.Step = SpanWait, WaitParked, of.Step
		if b.lists(&w) {
			list = append(list, w)
		}
		since = time.Time{}
	}
	for _, h := range holds {
		switch {
		case h.Kind == ports.HoldPark:
			since = h.At
		case h.Kind == ports.HoldResume && !since.IsZero():
			add(h.At)
		}
	}
	if !since.IsZero() {
		add(ended)
	}
	return list
}

func (b *timelineBuilder) attemptSpans(a *ports.AttemptSpan) []Span {
	started := a.StartedAt
	if started.IsZero() {
		started = a.CreatedAt
	}
	span := b.span("attempt "+strconv.Itoa(a.Attempt), a.ID, started, a.EndedAt)
	span.Kind, span.Status = SpanAttempt, string(a.Status)
	b.owned(&span, a.Owner)
	list := []Span{span}
	for _, wait := range b.waits(span, b.holds[a.ID], a.EndedAt) {
		if a.StartedAt.IsZero() || !wait.Started.After(a.StartedAt) { // launched for workers
			wait.Wait = WaitQueued
		}
		list = append(list, wait)
	}
	return list
}

func (b *timelineBuilder) addTask(t *ports.TaskSpan) {
	at := b.attemptAt(t)
	name := "task " + strconv.FormatInt(t.Task, 10)
	if t.Number <= 1 && t.Ready && (t.Number == 1 || t.State == "PENDING" || t.State == "ORPHANED") {
		wait := b.span(name, at, t.CreatedAt, t.StartedAt)
		wait.Kind, wait.Wait, wait.Task, wait.Of = SpanWait, WaitQueued, t.Task, t.Step
		if b.lists(&wait) {
			b.addInner([]Span{wait})
		}
	}
	if t.Number == 0 {
		return
	}
	span := b.span(fmt.Sprintf("%s (%s)", name, t.Type), at, t.StartedAt, t.EndedAt)
	span.Kind, span.Task, span.Try, span.Of, span.Status, span.Worker = SpanTask, t.Task, t.Number, t.Step, t.State, t.Worker
	b.addInner([]Span{span})
}

// attemptAt is the attempt in which a task was tried: its group belongs to the newest step that waits for it.
func (b *timelineBuilder) attemptAt(t *ports.TaskSpan) core.JobExecutionID {
	at := t.StartedAt
	if at.IsZero() {
		at = t.CreatedAt
	}
	found := b.order[0]
	for _, id := range b.order {
		if !b.attempts[id].CreatedAt.After(at) {
			found = id
		}
	}
	return found
}

func (b *timelineBuilder) addChild(c *ports.ChildSpan) {
	started := c.StartedAt
	if started.IsZero() {
		started = c.CreatedAt
	}
	span := b.span(c.JobName, c.Parent, started, c.EndedAt)
	span.Kind, span.Execution, span.Status, span.Of = SpanChild, c.ID, string(c.Status), b.firsts[c.Call]
	b.owned(&span, c.Owner)
	b.addInner([]Span{span})
}

// timeline puts the spans in order: attempts, each with its waits and its steps.
func (b *timelineBuilder) timeline() *Timeline {
	t := &Timeline{Execution: b.exec.ID, InstanceID: b.exec.InstanceID, JobName: b.exec.JobName}
	first, last := b.attempts[b.order[0]], b.attempts[b.order[len(b.order)-1]]
	t.From, t.To, t.Lasts = utc(first.CreatedAt), utc(last.EndedAt), !last.Status.IsOver()
	if t.To.IsZero() {
		t.To = b.now.UTC()
	}
	t.Critical = b.critical(last)
	if !b.folds && len(b.steps)+len(b.order)+b.parts > maxSpans {
		b.fold()
	}
	if n := len(b.steps) - maxSpans; n > 0 {
		b.drop(n)
	}
	t.Omitted = b.omitted
	of := map[core.JobExecutionID][]Span{}
	for _, s := range b.steps {
		if s.Round == 1 && b.rounds[roundOf{s.Execution, s.visit.Flow, s.visit.Element}] == 1 {
			s.Round = 0
		}
		of[s.Execution] = append(append(of[s.Execution], s), b.innerOf(s.Step)...)
	}
	for _, id := range b.order {
		t.Spans = append(append(t.Spans, b.attemptSpans(b.attempts[id])...), of[id]...)
	}
	t.Spans = append(t.Spans, b.inner[0]...)
	t.Lanes = b.lanes.list()
	return t
}

// innerOf are the waits, parts, tasks and child jobs of a step, by start.
func (b *timelineBuilder) innerOf(step core.StepExecutionID) []Span {
	list := append(b.inner[step], b.lanes.apart[step].spans()...)
	slices.SortStableFunc(list, func(x, y Span) int {
		return cmp.Or(x.Started.Compare(y.Started), cmp.Compare(x.Step, y.Step), cmp.Compare(x.Task, y.Task))
	})
	return list
}

// fold moves parts and tasks to lanes.
func (b *timelineBuilder) fold() {
	b.folds, b.parts = true, 0
	all := b.inner
	b.inner = map[core.StepExecutionID][]Span{}
	for of, list := range all {
		for _, s := range list {
			if s.Of == 0 || s.Kind == SpanChild { // of the step itself
				b.inner[of] = append(b.inner[of], s)
				continue
			}
			b.lanes.add(s, b.manager[s.Of])
		}
	}
}
