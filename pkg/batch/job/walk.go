package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// walk is the way through one flow: that of the job, or one inside of it.
type walk struct {
	*run
	flow core.Flow
	// last is the step that ended before the element at hand; nil: none did.
	last *core.StepExecution
	// round tells rounds of a loop apart.
	round round
	// group is the group whose transaction the steps take part in; nil: none.
	group *attempted
	// verdicts are the decisions that the element at hand, or what is in it, ended with
	// otherwise than completed.
	verdicts []string
}

// walk visits elements from the first one on, along the transitions that their exit
// codes choose (rule F1). On a restart it passes what completed, and resumes what
// did not (rule F3).
func (w *walk) walk(ctx context.Context) (core.Outcome, error) {
	at := w.flow.Elements[0]
	for {
		if w.stop.requested() {
			return stopped("stopped on request"), nil
		}
		target, repeat, err := w.leaveStop(ctx, at)
		if err != nil {
			return core.Outcome{}, err
		}
		if target != nil {
			at = target
			continue
		}
		out, err := w.visit(ctx, at, repeat)
		if err != nil || out.Status == core.StatusStopped {
			return out, err
		}
		next, ok := core.Next(at.Edges(), out.Status, out.ExitCode)
		switch {
		case !ok && w.flow.Strict && len(at.Edges()) > 0:
			return core.Outcome{}, noTransition(at, out)
		case !ok:
			if out = unmatched(at, out); out.Status != core.StatusCompleted {
				w.endedBy(at)
			}
			return out, nil
		case next.Kind != core.TargetElement:
			if next.Kind == core.TargetFail {
				w.endedBy(at)
			}
			return w.arrive(ctx, at, next, out)
		}
		if at, ok = w.flow.Find(next.Name); !ok {
			return core.Outcome{}, fmt.Errorf("next %q: no such element", next.Name)
		}
	}
}

func noTransition(at core.Element, out core.Outcome) error {
	why := ""
	if out.Message != "" {
		why = " (" + out.Message + ")"
	}
	return fmt.Errorf("element %s ended with exit code %s%s: %w", at.ElementName(), out.ExitCode, why, core.ErrNoTransition)
}

// endedBy notes the decision that the flow ends with, if it is one.
func (w *walk) endedBy(at core.Element) {
	if _, is := at.(*core.DecisionElement); is {
		w.verdicts = append(w.verdicts, at.ElementName())
	}
}

// unmatched is the outcome of a flow that ends at the element. A verdict that is
// the exit code of a failure or a stop is one.
func unmatched(at core.Element, out core.Outcome) core.Outcome {
	if _, is := at.(*core.DecisionElement); !is {
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

func stopped(message string) core.Outcome {
	return core.Outcome{Status: core.StatusStopped, ExitCode: core.ExitStopped, Message: message}
}

// arrive ends the flow at an end, fail or stop target.
func (w *walk) arrive(ctx context.Context, at core.Element, target core.Target, last core.Outcome) (core.Outcome, error) {
	end := func(status core.Status, exit string) core.Outcome {
		if target.Exit != "" {
			exit = target.Exit
		}
		return core.Outcome{Status: status, ExitCode: exit}
	}
	switch target.Kind {
	case core.TargetEnd:
		return end(core.StatusCompleted, core.ExitCompleted), nil
	case core.TargetFail:
		out := end(core.StatusFailed, core.ExitFailed)
		out.Message, out.Step = last.Message, last.Step
		if out.Message == "" {
			out.Message = fmt.Sprintf("%s ended with exit code %s", at.ElementName(), last.ExitCode)
		}
		return out, nil
	case core.TargetStop:
		out := end(core.StatusStopped, core.ExitStopped)
		out.Message = target.Message
		return out, w.stopAt(ctx, at, target)
	case core.TargetElement:
	}
	return core.Outcome{}, fmt.Errorf("element %s: a transition leads to %q", at.ElementName(), target.Kind)
}

// stoppedAt begins the keys of the job context that remember at which elements
// earlier executions of the instance took a `stop` transition, and its restart
// point, so that a restart goes on there instead of stopping again.
const stoppedAt = "surfin.stopped_at."

// stoppedAfter begins the keys under which the id of the newest step execution at such
// a stop is kept: a stop of an earlier round of a loop is over.
const stoppedAfter = "surfin.stopped_after."

// stopAt remembers the stop. A step that failed is given up where the restart goes
// on elsewhere: it is ABANDONED, and will be passed.
func (w *walk) stopAt(ctx context.Context, at core.Element, target core.Target) error {
	restart := target.Restart
	if restart == at.ElementName() {
		restart = ""
	}
	if restart != "" && !w.flow.Leads(restart, at.ElementName()) { // else the restart comes back to it
		if err := w.giveUp(ctx, at); err != nil {
			return err
		}
	}
	return w.remember(ctx, func(c *core.ExecutionContext) error {
		if restart == "" {
			c.Delete(decidedAt + at.ElementName())
		}
		return errors.Join(c.Put(stoppedAt+at.ElementName(), restart), c.Put(stoppedAfter+at.ElementName(), int64(w.after())))
	})
}

func (w *walk) giveUp(ctx context.Context, at core.Element) error {
	name, ok := recordOf(at)
	if !ok {
		return nil
	}
	h, known := w.memory.of(name)
	s := h.Last
	if !known || s.Status != core.StatusFailed || s.JobExecutionID != w.exec.ID {
		return nil
	}
	ref := core.StepRef{ID: s.ID, Owner: s.Owner, Epoch: s.Epoch}
	_, err := w.config.Repository.EndStep(ctx, ref, core.StepChange{
		To: core.StatusAbandoned, ExitCode: s.ExitCode, Error: s.Error, Counters: s.Counters, Out: s.Out,
	})
	if err != nil {
		return fmt.Errorf("give up step %s: %w", name, err)
	}
	s.Status = core.StatusAbandoned
	w.memory.ran(s)
	return nil
}

// recordOf is the name of the step execution that an element has.
func recordOf(at core.Element) (string, bool) {
	switch e := at.(type) {
	case *core.StepElement:
		return e.Step.Name(), true
	case *core.FlowElement:
		return e.Name, e.AsStep
	case *core.DecisionElement, *core.SplitElement, *core.AtomicElement:
	}
	return "", false
}

// after is the id of the newest step execution in front; 0: there is none.
func (w *walk) after() core.StepExecutionID {
	if w.last == nil {
		return 0
	}
	return w.last.ID
}

// leaveStop answers where a restart goes on if an earlier execution stopped at
// this element: at the restart point; where there is none, the element is run
// again. It happens once per execution: a restart point before the element comes
// back to it. A stop is over when the element is come to once more, by a loop.
func (w *walk) leaveStop(ctx context.Context, at core.Element) (target core.Element, repeat bool, err error) {
	name := at.ElementName()
	restart, stopped := w.recall(stoppedAt + name)
	if !stopped {
		return nil, false, nil
	}
	after, known := w.recall(stoppedAfter + name)
	id, _ := after.(int64) //nolint:errcheck // absent is zero
	since := core.StepExecutionID(id)
	over := known && since < w.base(at)
	first := w.memory.leave(name)
	if point, ok := restart.(string); ok && point != "" && first && !over {
		if target, ok = w.flow.Find(point); ok {
			w.jump(at, target, since)
			return target, false, nil
		}
	}
	return nil, first && !over, w.remember(ctx, func(c *core.ExecutionContext) error {
		c.Delete(stoppedAt + name)
		c.Delete(stoppedAfter + name)
		return nil
	})
}

// jump leads from an element that stopped to the restart point. It is no round of a
// loop: what is in front of the element counts as it did, and what comes behind it has
// not been run since the stop.
func (w *walk) jump(at, target core.Element, since core.StepExecutionID) {
	w.pass(at)
	before := w.memory.hasVisited(target.ElementName())
	w.memory.forget(w.flow.Elements)
	w.round = round{base: w.round.base, looped: w.round.looped}
	if !before {
		w.behind(at, since)
	}
}

// pass notes the step of an element that the flow goes on behind.
func (w *walk) pass(at core.Element) {
	name, ok := recordOf(at)
	if !ok {
		return
	}
	if h, known := w.memory.of(name); known {
		w.memory.pass(h.Last)
		w.last = &h.Last
	}
}

// round tells the rounds of a loop apart: an execution that is restarted in a later
// round passes what that round has completed, and must not take for it what an
// earlier round has. Ids of step executions grow, so within a loop what completed
// before the element in front of it did is of an earlier round. Outside of loops a
// completed step is passed, whatever ran again in front of it (rule F3).
type round struct {
	// at is the element in front, and since the id that what follows it in its loop
	// must not be older than.
	at    string
	since core.StepExecutionID
	// base holds for all of the flow, and looped says that it is inside of an element
	// of a loop.
	base   core.StepExecutionID
	looped bool
}

// isOver reports whether the completed step at the element is of an earlier round.
func (w *walk) isOver(at core.Element, completed core.StepExecution) bool {
	return completed.ID < w.base(at)
}

// roundAt begins the keys of the job context that remember since when an element
// with flows in it is in its latest round of a loop: the id of the newest step
// execution before. From the records inside it cannot be told where a branch has not
// begun the round.
const roundAt = "surfin.round."

// beginRound notes that a loop has come to the element again.
func (w *walk) beginRound(ctx context.Context, at core.Element) error {
	if len(core.Flows(at)) == 0 || w.last == nil {
		return nil
	}
	return w.noteRound(ctx, at)
}

// noteRound is for those elements, and for a step that goes on, in another round, with
// an attempt of an earlier one.
func (w *walk) noteRound(ctx context.Context, at core.Element) error {
	return w.remember(ctx, func(c *core.ExecutionContext) error {
		return c.Put(roundAt+at.ElementName(), int64(w.after()))
	})
}

// since is what comes behind the step in this round newer than: its first attempt in
// it. A later one is no measure: a step that failed, and whose failure was made good,
// is repeated by each restart.
func (w *walk) since(at core.Element, s core.StepExecution) core.StepExecutionID {
	first := s.First
	if first == 0 {
		first = s.ID
	}
	noted, _ := w.recall(roundAt + at.ElementName())
	id, _ := noted.(int64)                               //nolint:errcheck // absent is zero
	if since := core.StepExecutionID(id); since < s.ID { // else it has not run in that round
		first = max(first, since+1)
	}
	return max(first, w.baseHere(at))
}

// base is what step executions in the element must not be older than.
func (w *walk) base(at core.Element) core.StepExecutionID {
	if since, ok := w.recall(roundAt + at.ElementName()); ok && len(core.Flows(at)) > 0 {
		if id, is := since.(int64); is {
			return max(w.baseHere(at), core.StepExecutionID(id)+1)
		}
	}
	return w.baseHere(at)
}

func (w *walk) baseHere(at core.Element) core.StepExecutionID {
	if w.round.at != "" && (w.round.looped || w.flow.Leads(at.ElementName(), w.round.at)) {
		return max(w.round.base, w.round.since)
	}
	return w.round.base
}

// behind moves on: the element is in front now.
func (w *walk) behind(at core.Element, since core.StepExecutionID) {
	w.round.at, w.round.since = at.ElementName(), since
}
