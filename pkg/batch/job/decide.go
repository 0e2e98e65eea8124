package job

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// What begins the keys of the job context under which verdicts are stored: of
// decisions, and of the conditions of elements that are no steps. The value is the
// id of the step execution before the element, and the verdict.
const (
	decidedAt = "surfin.decided."
	whenAt    = "surfin.when."
)

// lastVerdict is there instead of an id where the verdict ended the execution: it is
// history, and not kept.
const lastVerdict = "last"

// decide takes a decision and stores the verdict before it is acted on: a process
// that dies in between must not decide otherwise when it is asked again.
func (w *walk) decide(ctx context.Context, e *core.DecisionElement, again bool) (core.Outcome, error) {
	verdict, kept := w.verdict(e, decidedAt+e.Name, again)
	if !kept {
		view, answer := w.view(), ""
		err := w.awaited(ctx, func() (err error) {
			answer, err = e.Decide(ctx, view)
			return err
		})
		if err == nil {
			verdict = answer
		}
		if err != nil {
			return core.Outcome{}, &DecisionError{Decision: e.Name, Err: err}
		}
		if err := w.store(ctx, decidedAt+e.Name, verdict); err != nil {
			return core.Outcome{}, err
		}
	}
	w.config.Observer.Observe(ctx, core.Decided{
		Execution: w.exec.ID, JobName: w.job.Name, Element: e.Name, Verdict: verdict, Kept: kept,
	})
	return core.Outcome{Status: core.StatusCompleted, ExitCode: verdict}, nil
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

// verdict recalls what an earlier execution decided. It is kept while the step
// before is the same execution of it, since then nothing has happened that could be
// decided on; and on the way to a restart point, which another verdict would miss
// (rule F3). Reached again in one execution, by a loop, a decision is taken again.
func (w *walk) verdict(at core.Element, key string, again bool) (string, bool) {
	stored, ok := w.recall(key)
	text, isText := stored.(string)
	if !ok || !isText || again {
		return "", false
	}
	after, verdict, _ := strings.Cut(text, " ")
	return verdict, after == w.lastID() || after != lastVerdict && w.onTheWay(at)
}

func (w *walk) store(ctx context.Context, key, verdict string) error {
	text := w.lastID() + " " + verdict
	return w.remember(ctx, func(c *core.ExecutionContext) error { return c.Put(key, text) })
}

func (w *walk) lastID() string {
	if w.last == nil {
		return "0"
	}
	return strconv.FormatInt(int64(w.last.ID), 10)
}

// onTheWay reports whether an earlier execution stopped with a restart point that
// this one has not come to yet. In a loop, a stop that is older than the step in front
// of the element was in an earlier round.
func (w *walk) onTheWay(at core.Element) bool {
	inLoop := w.round.looped || w.flow.Leads(at.ElementName(), at.ElementName())
	w.contextMu.Lock()
	defer w.contextMu.Unlock()
	for _, key := range w.exec.Context.Keys() {
		element, is := strings.CutPrefix(key, stoppedAt)
		if !is || w.memory.hasLeft(element) {
			continue
		}
		after, known := w.exec.Context.Get(stoppedAfter + element)
		if id, _ := after.(int64); known && inLoop && core.StepExecutionID(id) < w.after() { //nolint:errcheck // absent is zero
			continue
		}
		if point, _ := w.exec.Context.Get(key); point != "" {
			return true
		}
	}
	return false
}

// holds asks the condition of an element.
func (w *walk) holds(ctx context.Context, e core.Element) (bool, error) {
	condition := e.Condition()
	if condition == nil {
		return true, nil
	}
	held, _, err := condition.Check(ctx, w.view())
	if err != nil {
		return false, fmt.Errorf("%s: when: %w", e.ElementName(), err)
	}
	if !held {
		w.config.Observer.Observe(ctx, core.ElementSkipped{
			Execution: w.exec.ID, JobName: w.job.Name, Element: e.ElementName(), Condition: condition.Text,
		})
	}
	return held, nil
}

// admits answers the condition of an element that is no step: as an earlier
// execution did, where that is stored.
func (w *walk) admits(ctx context.Context, e core.Element, again bool) (bool, error) {
	if e.Condition() == nil {
		return true, nil
	}
	key := whenAt + e.ElementName()
	if verdict, kept := w.verdict(e, key, again); kept {
		return verdict == "true", nil
	}
	held, err := w.holds(ctx, e)
	if err != nil {
		return false, err
	}
	return held, w.store(ctx, key, strconv.FormatBool(held))
}

// admitsStep answers the condition of a step. One that began is not asked again:
// it goes on, unless it only began to be recorded as one whose condition does not
// hold, which is stored before.
func (w *walk) admitsStep(ctx context.Context, e *core.StepElement, began bool) (bool, error) {
	if e.When == nil {
		return true, nil
	}
	key := whenAt + e.ElementName()
	_, refused := w.recall(key)
	if began {
		return !refused, nil
	}
	held, err := w.holds(ctx, e)
	if err != nil || held == !refused || w.group != nil {
		return held, err
	}
	if held {
		return true, w.remember(ctx, func(c *core.ExecutionContext) error {
			c.Delete(key)
			return nil
		})
	}
	return false, w.store(ctx, key, strconv.FormatBool(false))
}
