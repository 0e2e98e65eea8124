package walk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/surfin-batch/surfin/internal/job/journal"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func (w *Walk) visit(ctx context.Context, at model.Element) (Result, error) {
	adopted := w.adopt.take(at)
	if adopted != nil && len(model.Flows(at)) > 0 {
		w.note(at, ports.VisitAdopt, "", journal.Adopt(adopted))
		w.Ordinal++
	}
	switch at := at.(type) {
	case *model.StepElement:
		return w.visitOrAdopt(ctx, at, adopted)
	case *model.FlowElement:
		if at.AsStep {
			return w.visitOrAdopt(ctx, w.asStep(at, w.VisitOf(at), adopted), adopted)
		}
	case *model.DecisionElement, *model.SplitElement, *model.AtomicElement:
	}
	condition := w.If
	defer func() { w.If = condition }()
	switch held, err := w.Port.Holds(ctx, w, at); {
	case err != nil:
		return Result{}, err
	case held == No:
		w.note(at, ports.VisitNoop, "", "")
		return completed(core.ExitNoop), nil
	case held == Perhaps:
		w.If = at.Condition().Text
	}
	r, err := w.visitInside(ctx, at, adopted)
	if err == nil && w.If != condition && r.Unknown == "" {
		r.Unknown, r.Refused = at.ElementName(), false
	}
	return r, err
}

func (w *Walk) visitInside(ctx context.Context, at model.Element, adopted *journal.Entry) (Result, error) {
	switch at := at.(type) {
	case *model.DecisionElement:
		return w.decide(ctx, at)
	case *model.SplitElement, *model.FlowElement, *model.AtomicElement:
		r, _, err := w.inside(ctx, at, nil, adopted)
		return r, err
	case *model.StepElement: // in visit
	}
	return Result{}, fmt.Errorf("element %s: cannot run a %T", at.ElementName(), at)
}

func (w *Walk) visitOrAdopt(ctx context.Context, at *model.StepElement, adopted *journal.Entry) (Result, error) {
	var done *core.StepExecution
	switch {
	case at.AllowStartIfComplete || adopted != nil && adopted.RunsAgain:
	case adopted != nil && adopted.Record != nil && journal.IsDone(*adopted.Record):
		done = adopted.Record
	case !w.IsInLoop(at):
		done = w.doneBefore(at)
	}
	if done == nil {
		return w.visitStep(ctx, at)
	}
	w.note(at, ports.VisitPass, "", strconv.FormatInt(int64(done.ID), 10))
	return w.pass(ctx, at, *done), nil
}

func (w *Walk) doneBefore(at *model.StepElement) *core.StepExecution {
	h, some := w.attempt.Progress.HistoryOf(at.Step.Name())
	if !some || !journal.IsDone(h.Last) || h.Last.JobExecutionID == w.attempt.ID {
		return nil
	}
	return &h.Last
}

// The condition of a step that has begun is not asked again.
func (w *Walk) visitStep(ctx context.Context, at *model.StepElement) (Result, error) {
	name := at.Step.Name()
	before, some := w.attempt.Progress.HistoryOf(name)
	condition := w.If
	defer func() { w.If = condition }()
	if unfinished := some && !journal.IsDone(before.Last); !unfinished {
		switch held, err := w.Port.Holds(ctx, w, at); {
		case err != nil:
			return Result{}, err
		case held == No:
			return w.Port.Noop(ctx, w, at)
		case held == Perhaps:
			w.If = at.When.Text
		}
	}
	if at.StartLimit != nil && !w.attempt.HasWaited(before.Last.ID) && before.Attempts >= *at.StartLimit {
		return w.Port.Limited(w, at, &StartLimitError{Step: name, Attempts: before.Attempts, Limit: *at.StartLimit})
	}
	return w.Port.Step(ctx, w, at, before)
}

func (w *Walk) decide(ctx context.Context, at *model.DecisionElement) (Result, error) {
	verdict, answered, err := w.Port.Decide(ctx, w, at)
	switch {
	case err != nil:
		return Result{}, fmt.Errorf("decision %s: %w", at.Name, err)
	case !answered:
		return Result{Unknown: at.Name}, nil
	}
	w.note(at, ports.VisitDecision, verdict, "")
	w.Port.Decided(ctx, w, at, verdict, false)
	return completed(verdict), nil
}

func (w *Walk) inside(ctx context.Context, at model.Element, e, adopted *journal.Entry) (r Result, ran bool, err error) {
	v := w.VisitOf(at)
	split, isSplit := at.(*model.SplitElement)
	var inner []*Walk
	for branch, flow := range model.Flows(at) {
		sub := w.inner(flow, v, branch, cmp.Or(e, adopted), e != nil)
		sub.OnWorkers = w.OnWorkers || isSplit && split.OnWorkers
		inner = append(inner, sub)
	}
	group, isGroup := at.(*model.AtomicElement) // it notes its end itself, in its transaction
	switch {
	case isSplit:
		r, err = w.Port.Split(ctx, w, split, inner)
	case isGroup:
		r, err = w.Port.Group(ctx, w, group, inner[0])
	default:
		r, err = inner[0].Run(ctx)
	}
	w.join(inner...)
	passed := true
	for _, sub := range inner {
		ran, passed = ran || sub.Ran, passed && sub.IsPassed()
	}
	if err == nil && !isGroup && r.Unknown == "" && !r.IsStopped() && !passed && !r.Recorded {
		w.Port.Note(w, ports.FlowVisit{Visit: v, Kind: ports.VisitFlow, Verdict: journal.VerdictOf(r.Outcome)})
	}
	return r, ran, err
}

// In inner, isReplayed means that the visit is in the log of this walk.
func (w *Walk) inner(flow model.Flow, v core.Visit, branch int, before *journal.Entry, isReplayed bool) *Walk {
	start := Start{
		Flow: flow, ID: v.Inner(branch), Within: journal.Since(w.attempt.ID), Last: w.Last,
		Looped: w.Looped || w.Flow.IsInLoop(v.Element), OnWorkers: w.OnWorkers,
	}
	sub := &Walk{Start: start, Port: w.Port, attempt: w.attempt}
	if before != nil {
		start.ID, start.Within = before.Inner.Inner(branch), before.Within
		start.HasEnd = isReplayed && len(before.Outcomes) > 0
		start.IsEarlierRound = isReplayed && (w.isOfEarlierRound(before) || isCommittedGroup(before, flow))
		sub = New(w.attempt, w.Port, start)
	}
	sub.Uncertainty = Uncertainty{
		After: w.After, If: w.If, PathUnknown: w.PathUnknown, edges: map[string][]Edge{flow.Elements[0].ElementName(): w.EdgesTo(v.Element)},
	}
	return sub
}

// isOfEarlierRound reports whether a loop, after the entry, reached an earlier
// element that leads here again (rule F3).
func (w *Walk) isOfEarlierRound(e *journal.Entry) bool {
	return w.IsEarlierRound || e.IsOfEarlierRound(w.Flow, w.Log.Entries)
}

func (w *Walk) pass(ctx context.Context, at *model.StepElement, record core.StepExecution) Result {
	w.attempt.Progress.RecordPassed(record)
	w.Last = &record
	w.Port.Passed(ctx, w, at, record)
	return Known(journal.OutcomeOf(&record))
}

// isCommittedGroup reports whether no step of the group runs again, even one
// that failed in its own transaction (rule T6).
func isCommittedGroup(e *journal.Entry, flow model.Flow) bool {
	out, ended := e.Outcome()
	if e.Kind != ports.VisitGroup || e.Open || !ended || out.Status != core.StatusCompleted {
		return false
	}
	return !slices.ContainsFunc(flow.Elements, func(at model.Element) bool {
		s, is := at.(*model.StepElement)
		return is && s.AllowStartIfComplete
	})
}

func (w *Walk) join(inner ...*Walk) {
	for _, sub := range inner {
		if sub.Last != nil && (w.Last == nil || sub.Last.ID > w.Last.ID) {
			w.Last = sub.Last
		}
		if w.After == "" {
			w.After = sub.After
		}
		w.PathUnknown = w.PathUnknown || sub.PathUnknown
	}
}

// OnWorkers reports whether workers do the work of the step.
func OnWorkers(s model.Step) bool {
	remote, is := s.(interface{ OnWorkers() bool })
	return is && remote.OnWorkers()
}

// FlowStep is a flow with a step execution of its own, as a step.
type FlowStep struct {
	name string
	Walk func(ctx context.Context) (Result, error)
}

func (w *Walk) asStep(at *model.FlowElement, v core.Visit, before *journal.Entry) *model.StepElement {
	s := &FlowStep{name: at.Name, Walk: func(ctx context.Context) (Result, error) {
		sub := w.inner(at.Flow, v, 0, before, false)
		r, err := sub.Run(ctx)
		w.join(sub)
		return r, err
	}}
	return &model.StepElement{Step: s, When: at.When, Next: at.Next, AllowStartIfComplete: at.AllowStartIfComplete, StartLimit: at.StartLimit}
}

// Name implements model.Step.
func (s *FlowStep) Name() string { return s.name }

// Kind implements model.Step.
func (s *FlowStep) Kind() string { return "flow" }

// Composite marks that the steps inside are bounded by themselves.
func (s *FlowStep) Composite() {}

// Execute implements model.Step.
func (s *FlowStep) Execute(ctx context.Context, run *model.StepRun) error {
	r, err := s.Walk(ctx)
	if err != nil {
		return err
	}
	return EndStep(run, r.Outcome)
}

// EndStep ends a step as the flows in it did.
func EndStep(run *model.StepRun, out core.Outcome) error {
	run.Step.ExitCode = out.ExitCode
	switch out.Status {
	case core.StatusCompleted:
		return nil
	case core.StatusStopped:
		return core.ErrStopped
	case core.StatusUnknown:
		if out.Settles {
			return fmt.Errorf("%w: %s", ports.ErrLostCommit, out.Message)
		}
		return fmt.Errorf("%w: %s", ports.ErrUnknownOutcome, out.Message)
	case core.StatusFailed, core.StatusAbandoned, core.StatusStarting, core.StatusStarted, core.StatusParked, core.StatusStopping:
	}
	return errors.New(out.Message)
}
