package cli

import (
	"slices"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// restartPlan is what a restart would do, in the order in which it would.
type restartPlan struct {
	// Passes are steps that completed, or were given up, and are not run again.
	Passes []string `json:"passes,omitempty"`
	// Resumes are steps that go on where their last attempt ended.
	Resumes []resumeRecord `json:"resumes,omitempty"`
	// Repeats are steps that completed and run again from their beginning.
	Repeats []string `json:"repeats,omitempty"`
	// Runs are steps that run for the first time after them, as far as the way is
	// known.
	Runs []string `json:"runs,omitempty"`
	// Asks are the decisions and conditions that are asked on the way; behind them
	// the way is not known.
	Asks []string `json:"asks,omitempty"`
	// Stops is the element at which the flow stops by itself.
	Stops string `json:"stops,omitempty"`
	// Finally are the steps that run at the end whatever happens.
	Finally []string `json:"finally,omitempty"`
	// Limit says that a step would refuse to be attempted once more.
	Limit string `json:"limit,omitempty"`
	// Gate is what the job expects, where nothing but that is left to do.
	Gate string `json:"gate,omitempty"`
}

// resumeRecord is a step that goes on.
type resumeRecord struct {
	Step string `json:"step"`
	// From is where, in words; empty: from its beginning.
	From string `json:"from,omitempty"`
	// Parts are the partitions that run again, Done how many are complete.
	Parts []string `json:"partitions,omitempty"`
	Done  int      `json:"partitions_completed,omitempty"`
}

// The keys of the job context in which the flow remembers verdicts and stops.
const (
	decidedKey = "surfin.decided."
	whenKey    = "surfin.when."
	stoppedKey = "surfin.stopped_at."
)

// planner walks the flow of a job as a restart would (rule F3), as far as the
// history alone tells where it leads. Behind the first step that has to run it
// supposes success.
type planner struct {
	job     *core.Job
	history map[string]core.StepHistory
	context *core.ExecutionContext
	// reader names what a step reads, for a position; empty: not known.
	reader func(step string) string

	plan    restartPlan
	visited map[string]bool
	left    map[string]bool
	ran     map[string]bool // steps that the plan runs already
}

func (w *planner) restart() restartPlan {
	w.visited, w.left, w.ran = map[string]bool{}, map[string]bool{}, map[string]bool{}
	walk := &planWalk{planner: w, sure: true}
	walk.flow(w.job.Flow)
	for _, s := range w.job.Finally.Steps() {
		w.plan.Finally = append(w.plan.Finally, s.Name())
	}
	if p := &w.plan; w.job.Expect != nil && p.isDone() && p.Limit == "" {
		p.Gate = w.job.Expect.Text
	}
	return w.plan
}

// isDone reports whether the walk came to the end of the flow without a step to run.
func (r *restartPlan) isDone() bool {
	return len(r.Resumes)+len(r.Repeats)+len(r.Runs)+len(r.Asks) == 0 && r.Stops == ""
}

// planWalk is the way through one flow.
type planWalk struct {
	*planner
	// last is the step execution before the element at hand.
	last core.StepExecutionID
	// front is the step before the element at hand, and since its newest execution:
	// within a loop, what completed before that is of an earlier round.
	front string
	since core.StepExecutionID
	// under is the condition of the element that the flow is in, where it is asked.
	under string
	// sure says that the history alone led here; over that the way is not known.
	sure, over bool
}

// flow walks a flow and answers its outcome, if what is not known yet succeeds.
func (w *planWalk) flow(f core.Flow) core.Outcome {
	out := core.Outcome{Status: core.StatusCompleted, ExitCode: core.ExitCompleted}
	if len(f.Elements) == 0 {
		return out
	}
	at := f.Elements[0]
	for {
		point, repeat := w.leaveStop(f, at)
		if point != nil {
			w.jump(f, at)
			at = point
			continue
		}
		if w.visited[at.ElementName()] {
			w.over = true // a loop: how often it turns is not known
			return out
		}
		w.visited[at.ElementName()] = true
		out = w.visit(f, at, repeat)
		if w.over {
			return out
		}
		next, ok := core.Next(at.Edges(), out.Status, out.ExitCode)
		switch {
		case !ok:
			return out
		case next.Kind == core.TargetEnd:
			return core.Outcome{Status: core.StatusCompleted, ExitCode: exitOr(next.Exit, core.ExitCompleted)}
		case next.Kind == core.TargetFail:
			return core.Outcome{Status: core.StatusFailed, ExitCode: exitOr(next.Exit, core.ExitFailed)}
		case next.Kind == core.TargetStop:
			w.plan.Stops, w.over = at.ElementName(), true
			return out
		}
		if at, ok = f.Find(next.Name); !ok {
			w.over = true
			return out
		}
	}
}

func exitOr(exit, otherwise string) string {
	if exit != "" {
		return exit
	}
	return otherwise
}

// leaveStop answers where the restart goes on if an earlier execution stopped here.
func (w *planWalk) leaveStop(f core.Flow, at core.Element) (point core.Element, repeat bool) {
	stored, stopped := w.context.Get(stoppedKey + at.ElementName())
	if !stopped || w.left[at.ElementName()] {
		return nil, false
	}
	w.left[at.ElementName()] = true
	if name, _ := stored.(string); name != "" {
		if e, ok := f.Find(name); ok {
			return e, false
		}
	}
	return nil, true
}

// jump goes on at a restart point: that is no round of a loop.
func (w *planWalk) jump(f core.Flow, from core.Element) {
	if h, known := w.history[recordName(from)]; known {
		w.last = h.Last.ID
	}
	for _, e := range f.Elements {
		w.forget(e)
	}
	w.front, w.since = "", 0
}

func (w *planWalk) forget(e core.Element) {
	delete(w.visited, e.ElementName())
	for _, f := range core.Flows(e) {
		for _, inner := range f.Elements {
			w.forget(inner)
		}
	}
}

func recordName(e core.Element) string {
	if s, ok := e.(*core.StepElement); ok {
		return s.Step.Name()
	}
	return e.ElementName()
}

func (w *planWalk) visit(f core.Flow, at core.Element, repeat bool) core.Outcome {
	done := core.Outcome{Status: core.StatusCompleted, ExitCode: core.ExitCompleted}
	if e, ok := at.(*core.StepElement); ok {
		return w.step(f, e, repeat)
	}
	under := w.under
	if at.Condition() != nil {
		switch verdict, known := w.verdict(whenKey + at.ElementName()); {
		case known && verdict == "false":
			return core.Outcome{Status: core.StatusCompleted, ExitCode: core.ExitNoop}
		case !known:
			w.ask(at)
			w.sure, under = false, at.Condition().Text
		}
	}
	switch e := at.(type) {
	case *core.DecisionElement:
		if verdict, known := w.verdict(decidedKey + e.Name); known && !repeat {
			return core.Outcome{Status: core.StatusCompleted, ExitCode: verdict}
		}
		w.ask(at)
		w.over = true
	case *core.SplitElement:
		return w.split(e, under)
	case *core.FlowElement:
		if h, known := w.history[e.Name]; e.AsStep && known && isOver(h.Last) && !e.AllowStartIfComplete && !repeat {
			w.pass(h.Last)
			return passedWith(h.Last)
		}
		return w.inner(e.Flow, under)
	case *core.AtomicElement:
		return w.inner(e.Flow, under)
	case *core.StepElement: // above
	}
	return done
}

func (w *planWalk) ask(at core.Element) {
	if !slices.Contains(w.plan.Asks, at.ElementName()) {
		w.plan.Asks = append(w.plan.Asks, at.ElementName())
	}
}

func (w *planWalk) inner(f core.Flow, under string) core.Outcome {
	sub := &planWalk{planner: w.planner, last: w.last, under: under, sure: w.sure}
	out := sub.flow(f)
	w.last, w.sure, w.over = sub.last, sub.sure, sub.over
	return out
}

func (w *planWalk) split(e *core.SplitElement, under string) core.Outcome {
	out := core.Outcome{Status: core.StatusCompleted, ExitCode: core.ExitCompleted}
	sure := w.sure
	for _, branch := range e.Branches {
		sub := &planWalk{planner: w.planner, last: w.last, under: under, sure: w.sure}
		out = core.Worse(out, sub.flow(branch))
		sure, w.over = sure && sub.sure, w.over || sub.over
		if w.plan.Stops != "" {
			break // whether the others begin is a matter of luck
		}
	}
	w.sure = sure
	return out
}

// verdict is what was decided, if a restart keeps it: while the step before is the
// same execution.
func (w *planWalk) verdict(key string) (string, bool) {
	stored, _ := w.context.Get(key)
	text, ok := stored.(string)
	after, verdict, _ := strings.Cut(text, " ")
	return verdict, ok && w.sure && (after == strconv.FormatInt(int64(w.last), 10) || w.onTheWay())
}

// onTheWay reports whether an earlier execution stopped with a restart point that
// the walk has not come to yet: until there, verdicts are kept.
func (w *planWalk) onTheWay() bool {
	for _, key := range w.context.Keys() {
		element, is := strings.CutPrefix(key, stoppedKey)
		if !is || w.left[element] {
			continue
		}
		if point, _ := w.context.Get(key); point != "" {
			return true
		}
	}
	return false
}

// step plans one step: passed, resumed, or run.
func (w *planWalk) step(f core.Flow, e *core.StepElement, repeat bool) core.Outcome {
	name := e.Step.Name()
	h, known := w.history[name]
	completed := known && isOver(h.Last)
	earlier := known && w.front != "" && h.Last.ID < w.since && f.Leads(e.ElementName(), w.front)
	if completed && !repeat && !e.AllowStartIfComplete && !earlier && !w.ran[name] {
		w.pass(h.Last)
		w.front, w.since = e.ElementName(), h.Last.ID
		return passedWith(h.Last)
	}
	if e.StartLimit != nil && h.Attempts >= *e.StartLimit && w.plan.Limit == "" {
		w.plan.Limit = "step " + name + " was attempted " + times(h.Attempts) + ", and its start_limit is " + strconv.Itoa(*e.StartLimit)
	}
	w.sure = false
	switch {
	case completed || w.ran[name]:
		w.plan.Repeats = append(w.plan.Repeats, name+w.ifText(e))
	case known:
		w.plan.Resumes = append(w.plan.Resumes, w.resume(e.Step, h.Last))
	default:
		w.plan.Runs = append(w.plan.Runs, name+w.ifText(e))
	}
	w.ran[name] = true
	if known && !earlier {
		w.front, w.since = e.ElementName(), h.Last.ID
	}
	return core.Outcome{Status: core.StatusCompleted, ExitCode: core.ExitCompleted}
}

// ifText is the condition of a step that is asked before it runs.
func (w *planWalk) ifText(e *core.StepElement) string {
	switch {
	case e.When != nil:
		return " (if " + e.When.Text + ")"
	case w.under != "":
		return " (if " + w.under + ")"
	}
	return ""
}

func (w *planWalk) pass(s core.StepExecution) {
	w.last = s.ID
	if !slices.Contains(w.plan.Passes, s.Name) {
		w.plan.Passes = append(w.plan.Passes, s.Name)
	}
}

func isOver(s core.StepExecution) bool {
	return s.Status == core.StatusCompleted || s.Status == core.StatusAbandoned
}

// passedWith is the outcome of a step that is passed; one that was given up had
// failed.
func passedWith(s core.StepExecution) core.Outcome {
	if s.Status == core.StatusAbandoned {
		return core.Outcome{Status: core.StatusFailed, ExitCode: s.ExitCode}
	}
	return core.Outcome{Status: core.StatusCompleted, ExitCode: s.ExitCode}
}

func (w *planWalk) resume(s core.Step, last core.StepExecution) resumeRecord {
	r := resumeRecord{Step: s.Name(), From: positionText(last.Position, w.reader(s.Name()))}
	for _, name := range sortedKeys(w.history) {
		part, is := strings.CutPrefix(name, core.PartName(s.Name(), ""))
		switch {
		case !is:
		case w.history[name].Last.Status == core.StatusCompleted:
			r.Done++
		default:
			if from := positionText(w.history[name].Last.Position, ""); from != "" {
				part += " (behind " + from + ")"
			}
			r.Parts = append(r.Parts, part)
		}
	}
	return r
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return strconv.Itoa(n) + " times"
}
