package job

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// walk is the path through one flow, the job's or a nested one. It first replays the visits of earlier
// attempts, and then visits elements along the transitions (rules F1, F3, F5). It acts on the world
// through its port, so a plan is the same walk through another port.
type walk struct {
	run  *run
	port port
	flow model.Flow
	// id names the flow's log in the journal, and ordinal is the last visit there.
	id      string
	ordinal int64
	log     log
	// adopt are visits of a path that the walk has left, by element: their completed work is passed
	// once. adopted counts them.
	adopt   map[string]entry
	adopted int
	// last is the step that ended before the current element, or nil.
	last *core.StepExecution
	// group is the group of the transaction that the steps take part in, or nil.
	group *attempted
	// history means that the whole log is of an earlier round of a loop around the flow.
	history bool
	// within are the attempts with rows that count in the log.
	within attempts
	// onWorkers means that workers walk the flow, or a branch around it.
	onWorkers bool
	// looped means that a loop around the flow reaches it more than once.
	looped bool
	// ran means that something in the flow ran in this attempt; ended that the journal has the end of
	// it from an earlier attempt.
	ran, ended bool
	// left is the result of the last replayed element.
	left result
	// failed is the newest failure that led elsewhere, at the element failedAt; zero means none, or
	// that the element has completed since.
	failed   core.Outcome
	failedAt string
	// after is the element with the unknown outcome, and under the condition with the unknown answer;
	// lost means that the path is unknown. All are empty except in a plan.
	after, under string
	lost         bool
	// edges are the transitions to elements after an unknown outcome, and leaving is the one that is
	// followed to an end.
	edges   map[string][]PlanEdge
	leaving *PlanEdge
}

// result is the result of an element or a flow.
type result struct {
	out core.Outcome
	// unknown is the name of the element with an outcome that a plan does not know; empty means that
	// out is known.
	unknown string
	// refused means that a plan reached a step that would be refused: the path ends there.
	refused bool
	// recorded means that the visit is a step execution, which holds its end.
	recorded bool
}

// isCertain reports whether a plan knows the path to the current element.
func (w *walk) isCertain() bool { return w.after == "" && !w.lost }

// isPassed reports whether nothing in the flow ran, and its end is already in the journal or of an
// earlier round: another row would become the newest visit.
func (w *walk) isPassed() bool { return (w.ended || w.history) && !w.ran }

func known(out core.Outcome) result { return result{out: out} }

func (r result) isStopped() bool { return r.unknown == "" && r.out.Status == core.StatusStopped }

func (w *walk) walk(ctx context.Context) (result, error) {
	way, err := w.replay(ctx)
	if err != nil {
		return result{}, err
	}
	if w.id == "" { // it was parked between two steps
		w.run.resuming = false
	}
	return w.live(ctx, way)
}

// way is the result of leaving an element: the next element or the end of the flow. A plan may have
// several of both.
type way struct {
	next []model.Element
	ends []result
	// adopt are the visits that a plan leaves on these paths, as turn does.
	adopt map[string]entry
}

func ended(r result) way { return way{ends: []result{r}} }

// replay follows the log, regardless of the current definition. It returns the point from which the
// walk continues by the definition.
func (w *walk) replay(ctx context.Context) (way, error) {
	var others way // after outcomes that a plan does not know
	further, err := w.replayTo(ctx, &others)
	if len(others.next)+len(others.ends) > 0 {
		w.lost = true
		w.adopt = joined(w.adopt, others.adopt)
	}
	return way{next: append(further.next, others.next...), ends: append(further.ends, others.ends...)}, err
}

func (w *walk) replayTo(ctx context.Context, others *way) (way, error) {
	at := w.flow.Elements[0]
	entries := w.log.entries
	w.adopt = joined(w.log.left, w.adopt)
	if len(entries) > 0 && entries[0].Ordinal == 1 && w.isNew(at.ElementName()) { // the definition has gained it since
		w.turn(at, entries)
		return way{next: []model.Element{at}}, nil
	}
	back := w.jumpsBackTo()
	for i := 0; i < len(entries); i++ {
		if i >= back {
			i = len(entries) - 1
		}
		e, left := &entries[i], entries[i+1:]
		if w.port.stopping() {
			return ended(known(stopped("stopped on request"))), nil
		}
		found, ok := w.flow.Find(e.Element)
		switch {
		case !ok: // the definition no longer has it
			w.turn(at, entries[i:])
			return w.restartAt(ctx, at, i)
		case e.Kind == ports.VisitJump:
			return w.jump(found, e, entries[:i], back), nil
		case len(left) == 1 && left[0].Kind == ports.VisitStop:
			w.repeat(found, e, &left[0])
			return way{next: []model.Element{found}}, nil
		}
		at, w.ordinal = found, e.Ordinal
		r, again, err := w.revisit(ctx, at, e)
		if err != nil {
			return way{}, err
		}
		if r.isStopped() || r.refused {
			return ended(r), nil
		}
		w.ran = w.ran || again
		w.left = r
		w.keepFailure(at, r)
		switch {
		case len(left) == 0:
			w.ordinal = w.log.ordinal
			return w.leave(ctx, at, r)
		case r.unknown != "":
			if err := w.noteOthers(ctx, at, r, left, others); err != nil {
				return way{}, err
			}
			continue
		case !again || e.isLeftBy(at, r):
			if w.leadsToNew(at, r, e) {
				w.turn(at, left)
				return w.leave(ctx, at, r)
			}
			w.reach(PlanEdge{From: at.ElementName()}, left[0].Element)
			continue
		}
		rejoined := w.rejoin(at, r, left)
		if rejoined < 0 {
			w.turnUnlessFailed(at, e, r, left)
			return w.leave(ctx, at, r)
		}
		i += rejoined
	}
	return way{next: []model.Element{at}}, nil
}

// leadsToNew reports whether the element now leads to one that is not in the log: the definition has
// gained it since, and the walk visits it before the next element of the log.
func (w *walk) leadsToNew(at model.Element, r result, e *entry) bool {
	to, ok := model.Next(at.Edges(), r.out.Status, r.out.ExitCode)
	return ok && e.next != "" && to.Kind == model.TargetElement && to.Name != e.next && w.isNew(to.Name)
}

// isNew reports whether no attempt has visited the element, or a step in it.
func (w *walk) isNew(name string) bool {
	at, ok := w.flow.Find(name)
	if !ok || slices.ContainsFunc(w.log.entries, func(e entry) bool { return e.Element == name }) {
		return false
	}
	if _, left := w.log.left[name]; left {
		return false
	}
	return !slices.ContainsFunc(model.Flow{Elements: []model.Element{at}}.Steps(), func(s model.Step) bool {
		_, ran := w.run.progress.historyOf(s.Name())
		return ran
	})
}

// noteOthers notes the elements that may follow, after which a plan still replays the log.
func (w *walk) noteOthers(ctx context.Context, at model.Element, r result, left []entry, others *way) error {
	lost := w.lost
	further, err := w.leaveUnknown(ctx, at, r)
	w.lost = lost
	for _, to := range further.next {
		if !slices.ContainsFunc(left, func(e entry) bool { return e.Element == to.ElementName() }) {
			others.next = append(others.next, to)
		}
	}
	if others.adopt == nil && len(others.next) > 0 { // includes what a later element leaves
		others.adopt = log{entries: ofLastRound(w.flow, left)}.byElement()
	}
	others.ends = append(others.ends, further.ends...)
	return err
}

// restartAt continues by the definition if the log names an element that is gone: after the entry
// before it, or at the beginning.
func (w *walk) restartAt(ctx context.Context, at model.Element, entries int) (way, error) {
	if entries == 0 {
		return way{next: []model.Element{at}}, nil
	}
	return w.leave(ctx, at, w.left)
}

// isLeftBy reports whether an element that ran again, with this result, is left as it was before.
func (e *entry) isLeftBy(at model.Element, r result) bool {
	if r.unknown != "" {
		return false
	}
	to, some := model.Next(at.Edges(), r.out.Status, r.out.ExitCode)
	switch {
	case e.followed == ports.VisitStop || e.followed == ports.VisitJump:
		return some && to.Kind == model.TargetStop
	case e.followed != "":
		return some && to.Kind == model.TargetElement && to.Name == e.next
	}
	return slices.ContainsFunc(e.outs, func(out core.Outcome) bool {
		was, known := model.Next(at.Edges(), out.Status, out.ExitCode)
		return some && known && was == to
	})
}

// rejoin continues in the log if the element now leads to another one that is visited there, and leaves
// out the path to it. It returns the number of entries left out, or -1 if the log does not have the
// element.
func (w *walk) rejoin(at model.Element, r result, left []entry) int {
	to, ok := model.Next(at.Edges(), r.out.Status, r.out.ExitCode)
	if r.unknown != "" || !ok || to.Kind != model.TargetElement {
		return -1
	}
	isTarget := func(e entry) bool { return e.Element == to.Name && isVisit(e.Kind) }
	if !slices.ContainsFunc(left, isTarget) {
		return -1
	}
	out := 0
	for !isTarget(left[out]) && left[out].Ordinal == w.ordinal+1+int64(out) {
		out++
	}
	if out > 0 {
		from := w.ordinal + 1
		w.port.note(w, ports.FlowVisit{
			Visit: core.Visit{Flow: w.id, Ordinal: from, Element: at.ElementName()}, Kind: ports.VisitTurn, Target: turnTarget(from, left[out-1].Ordinal),
		})
	}
	return out
}

// turnUnlessFailed leaves the path of earlier attempts, unless the flow ends FAILED at an element that
// the next restart runs again: that may lead on as before.
func (w *walk) turnUnlessFailed(at model.Element, e *entry, r result, left []entry) {
	to, ok := model.Next(at.Edges(), r.out.Status, r.out.ExitCode)
	ends := r.unknown == "" && (!ok && r.out.Status == core.StatusFailed || ok && to.Kind == model.TargetFail)
	if _, decision := at.(*model.DecisionElement); ends && !decision && r.out.Status == core.StatusFailed {
		w.ordinal = w.log.ordinal
		return
	}
	w.turn(at, left)
}

// turn leaves the path of earlier attempts. Elements they completed after this one are passed when the
// walk reaches them.
func (w *walk) turn(at model.Element, left []entry) {
	w.adopt = joined(log{entries: ofLastRound(w.flow, left)}.byElement(), w.adopt)
	w.ordinal++
	w.note(at, ports.VisitTurn, "", turnTarget(w.ordinal, math.MaxInt64))
}

func joined(first, second map[string]entry) map[string]entry {
	all := maps.Clone(second)
	if all == nil {
		all = map[string]entry{}
	}
	maps.Copy(all, first)
	return all
}

// live visits elements by the definition. A walk has one next element; a plan after an unknown outcome
// has all that may follow, and lists each once.
func (w *walk) live(ctx context.Context, from way) (result, error) {
	listed := map[string]int{} // number of adopted visits before each
	for len(from.next) > 0 {
		at := from.next[0]
		from.next = from.next[1:]
		if w.port.stopping() {
			return known(stopped("stopped on request")), nil
		}
		// Elements passed since on this path run when a loop reaches them again.
		if adopted, is := listed[at.ElementName()]; is && w.lost && (adopted == w.adopted || !w.isInLoop(at)) {
			w.port.listed(w, at)
			continue
		}
		listed[at.ElementName()] = w.adopted
		w.ordinal++
		w.ran = true
		r, err := w.visit(ctx, at)
		if err != nil {
			return r, err
		}
		if r.isStopped() || r.refused {
			from.ends = append(from.ends, r)
			continue
		}
		further, err := w.leave(ctx, at, r)
		if err != nil {
			return result{}, err
		}
		from.next, from.ends = append(from.next, further.next...), append(from.ends, further.ends...)
	}
	if !w.lost && len(from.ends) > 0 {
		return from.ends[0], nil
	}
	return result{unknown: w.after}, nil
}

// leave returns the target of an element's outcome.
func (w *walk) leave(ctx context.Context, at model.Element, r result) (way, error) {
	if r.unknown != "" {
		return w.leaveUnknown(ctx, at, r)
	}
	w.keepFailure(at, r)
	next, ok := model.Next(at.Edges(), r.out.Status, r.out.ExitCode)
	switch {
	case !ok && w.flow.Strict && len(at.Edges()) > 0:
		return way{}, noTransition(at, r.out)
	case !ok:
		return ended(known(unmatched(at, r.out))), nil
	case next.Kind != model.TargetElement:
		r, err := w.arrive(ctx, at, next, r.out)
		return ended(r), err
	}
	to, ok := w.flow.Find(next.Name)
	if !ok {
		return way{}, fmt.Errorf("next %q: no such element", next.Name)
	}
	w.reach(PlanEdge{From: at.ElementName()}, next.Name)
	return way{next: []model.Element{to}}, nil
}

// keepFailure keeps the failure of an element, for the message of a later target `fail`.
func (w *walk) keepFailure(at model.Element, r result) {
	switch {
	case r.unknown != "":
	case r.out.Status == core.StatusFailed:
		w.failed, w.failedAt = r.out, at.ElementName()
	case w.failedAt == at.ElementName():
		w.failed, w.failedAt = core.Outcome{}, ""
	}
}

// reach notes a transition after an outcome that a plan does not know.
func (w *walk) reach(edge PlanEdge, to string) {
	if w.isCertain() || slices.Contains(w.edges[to], edge) {
		return
	}
	if w.edges == nil {
		w.edges = map[string][]PlanEdge{}
	}
	w.edges[to] = append(w.edges[to], edge)
}

func (w *walk) edgesTo(element string) []PlanEdge { return slices.Clone(w.edges[element]) }

// leaveUnknown lists everything that may follow.
func (w *walk) leaveUnknown(ctx context.Context, at model.Element, r result) (way, error) {
	w.lost = true
	if w.after == "" {
		w.after = r.unknown
	}
	var all way
	isCompletedApart := slices.ContainsFunc(at.Edges(), func(t model.Transition) bool { return t.Pattern == core.ExitCompleted })
	for _, t := range at.Edges() {
		edge := PlanEdge{From: at.ElementName(), On: cmp.Or(t.Pattern, "*")}
		switch {
		case t.Success && edge.On == "*" && isCompletedApart:
			edge.OtherSuccess = true
		case t.Success && edge.On == "*":
			edge.On = core.ExitCompleted
		}
		if t.Target.Kind != model.TargetElement {
			w.leaving = &edge
			end, err := w.arrive(ctx, at, t.Target, core.Outcome{})
			w.leaving = nil
			if err != nil {
				return all, err
			}
			all.ends = append(all.ends, end)
			continue
		}
		if to, ok := w.flow.Find(t.Target.Name); ok {
			w.reach(edge, t.Target.Name)
			all.next = append(all.next, to)
		}
	}
	return all, nil
}

func noTransition(at model.Element, out core.Outcome) error {
	why := ""
	if out.Message != "" {
		why = " (" + out.Message + ")"
	}
	return fmt.Errorf("element %s ended with exit code %s%s: %w", at.ElementName(), out.ExitCode, why, core.ErrNoTransition)
}

// unmatched is the outcome of a flow that ends at the element. A verdict equal to the exit code of a
// failure or a stop counts as one.
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

// arrive ends the flow at an end, fail or stop target.
func (w *walk) arrive(ctx context.Context, at model.Element, target model.Target, last core.Outcome) (result, error) {
	end := func(status core.Status, exit string) core.Outcome {
		if target.Exit != "" {
			exit = target.Exit
		}
		return core.Outcome{Status: status, ExitCode: exit}
	}
	switch target.Kind {
	case model.TargetEnd:
		return known(end(core.StatusCompleted, core.ExitCompleted)), nil
	case model.TargetFail:
		out := end(core.StatusFailed, core.ExitFailed)
		out.Message, out.Step = last.Message, last.Step
		if out.Message == "" {
			out.Message = fmt.Sprintf("%s ended with exit code %s", at.ElementName(), last.ExitCode)
			if w.failed.Message != "" {
				out.Message, out.Step = out.Message+"; before it: "+w.failed.Message, w.failed.Step
			}
		}
		return known(out), nil
	case model.TargetStop:
		out := end(core.StatusStopped, core.ExitStopped)
		out.Message = target.Message
		if out.Message == "" {
			out.Message, out.Step = last.Message, last.Step
		}
		return known(out), w.stopAt(ctx, at, target)
	case model.TargetElement:
	}
	return result{}, fmt.Errorf("element %s: a transition leads to %q", at.ElementName(), target.Kind)
}

func (w *walk) note(at model.Element, kind ports.VisitKind, verdict, target string) {
	w.port.note(w, ports.FlowVisit{Visit: w.visitOf(at), Kind: kind, Verdict: verdict, Target: target})
}

func (w *walk) visitOf(at model.Element) core.Visit {
	return core.Visit{Flow: w.id, Ordinal: w.ordinal, Element: at.ElementName()}
}
