package operator

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// RestartPlan is what a restart of an execution does, in the order in which it does so.
type RestartPlan struct {
	// Execution and Epoch are those of the execution that was looked at: the plan holds
	// while it is the newest of its instance and has this epoch.
	Execution core.JobExecutionID `json:"execution"`
	Epoch     int64               `json:"epoch"`
	Entries   []PlanEntry         `json:"entries"`
	// Limit is the step that would refuse to be attempted once more; nil: none does.
	Limit *StartLimit `json:"limit,omitempty"`
	// Gate is what the job expects, where only that is left to do.
	Gate string `json:"gate,omitempty"`
}

// PlanEntry is what a restart does at an element of the flow.
type PlanEntry struct {
	Element string `json:"element"`
	// Step is the name of the step; empty: the element is no step.
	Step      string    `json:"step,omitempty"`
	Action    PlanAct   `json:"action"`
	Certainty Certainty `json:"certainty"`
	// Text is the condition of an entry that is not certain, or the step whose outcome
	// has to be known first.
	Text string `json:"text,omitempty"`
	// From says where a step is resumed, in words; empty: from its beginning.
	From string `json:"from,omitempty"`
	// Partitions are those of a partitioned step that is resumed.
	Partitions *PlanPartitions `json:"partitions,omitempty"`
	// MayRepeat says that a loop may come to the element again.
	MayRepeat bool `json:"may_repeat,omitempty"`
}

// PlanPartitions are the partitions of a step that is resumed.
type PlanPartitions struct {
	Completed int `json:"completed"`
	// Again are the partitions that run again.
	Again []PlanPartition `json:"again,omitempty"`
}

// PlanPartition is a partition that runs again.
type PlanPartition struct {
	Name string `json:"name"`
	From string `json:"from,omitempty"` // as of PlanEntry
}

// StartLimit is a step that was attempted as often as its start_limit allows.
type StartLimit struct {
	Step     string `json:"step"`
	Attempts int    `json:"attempts"`
	Limit    int    `json:"limit"`
}

// PlanAct is what a restart does at an element.
type PlanAct string

// The acts of a plan.
const (
	PlanPass    PlanAct = "pass"    // complete or given up: it does not run
	PlanResume  PlanAct = "resume"  // run from where its last attempt ended
	PlanRun     PlanAct = "run"     // run for the first time
	PlanRepeat  PlanAct = "repeat"  // run from its beginning though it is complete
	PlanAsk     PlanAct = "ask"     // a decision or condition is asked
	PlanStop    PlanAct = "stop"    // the flow stops here
	PlanFinally PlanAct = "finally" // run at the end, whatever happens
)

// Certainty says how sure an entry of a plan is.
type Certainty string

// The degrees of certainty.
const (
	Certain Certainty = "certain"
	// CertainIf: if the condition Text holds.
	CertainIf Certainty = "if"
	// CertainAfter: it depends on the outcome of the step Text, which is supposed to
	// succeed.
	CertainAfter Certainty = "after"
)

// restartPlan plans a restart of the execution. history has the newest execution of each
// step of the instance. Positions and partitions are left out: see describeResumed.
func restartPlan(_ context.Context, exec *core.JobExecution, job *core.Job, history map[string]core.StepHistory) (RestartPlan, error) {
	w := &planner{job: job, history: history, context: exec.Context}
	if w.context == nil {
		w.context = core.NewExecutionContext()
	}
	w.plan.Execution, w.plan.Epoch, w.plan.Entries = exec.ID, exec.Epoch, []PlanEntry{}
	return w.restart(), nil
}

// IsDone reports whether the restart comes to the end of the flow without a step to run.
func (p *RestartPlan) IsDone() bool {
	return !slices.ContainsFunc(p.Entries, func(e PlanEntry) bool {
		return e.Action != PlanPass && e.Action != PlanFinally
	})
}

// planner walks the flow of a job as a restart would (rule F3), as far as the history
// alone tells where it leads. Behind the first step that has to run it supposes success.
type planner struct {
	job     *core.Job
	history map[string]core.StepHistory
	context *core.ExecutionContext

	plan    RestartPlan
	visited map[string]bool
	left    map[string]bool
	ran     map[string]bool // steps that the plan runs already
	// unknown is the first step that runs: what follows depends on its outcome.
	unknown string
	stopped bool
}

func (w *planner) restart() RestartPlan {
	w.visited, w.left, w.ran = map[string]bool{}, map[string]bool{}, map[string]bool{}
	walk := &planWalk{planner: w, sure: true}
	walk.flow(w.job.Flow)
	for _, s := range w.job.Finally.Steps() {
		w.plan.Entries = append(w.plan.Entries, PlanEntry{Element: s.Name(), Step: s.Name(), Action: PlanFinally, Certainty: Certain})
	}
	if p := &w.plan; w.job.Expect != nil && p.IsDone() && p.Limit == nil {
		p.Gate = w.job.Expect.Text
	}
	return w.plan
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
			w.mayRepeat(at.ElementName())
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
			w.add(PlanEntry{Element: at.ElementName(), Action: PlanStop})
			w.stopped, w.over = true, true
			return out
		}
		if at, ok = f.Find(next.Name); !ok {
			w.over = true
			return out
		}
	}
}

// add appends an entry, as certain as the way to it.
func (w *planWalk) add(e PlanEntry) {
	switch {
	case e.Certainty != "":
	case w.under != "":
		e.Certainty, e.Text = CertainIf, w.under
	case w.sure || w.unknown == "":
		e.Certainty = Certain
	default:
		e.Certainty, e.Text = CertainAfter, w.unknown
	}
	w.plan.Entries = append(w.plan.Entries, e)
}

func (w *planWalk) mayRepeat(element string) {
	for i := range w.plan.Entries {
		if e := &w.plan.Entries[i]; e.Element == element && e.Action != PlanPass {
			e.MayRepeat = true
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
			w.pass(e.Name, h.Last)
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
	asked := func(e PlanEntry) bool { return e.Action == PlanAsk && e.Element == at.ElementName() }
	if !slices.ContainsFunc(w.plan.Entries, asked) {
		w.add(PlanEntry{Element: at.ElementName(), Action: PlanAsk})
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
		if w.stopped {
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
		w.pass(e.ElementName(), h.Last)
		w.front, w.since = e.ElementName(), h.Last.ID
		return passedWith(h.Last)
	}
	if e.StartLimit != nil && h.Attempts >= *e.StartLimit && w.plan.Limit == nil {
		w.plan.Limit = &StartLimit{Step: name, Attempts: h.Attempts, Limit: *e.StartLimit}
	}
	entry := PlanEntry{Element: e.ElementName(), Step: name, Action: PlanRun}
	switch {
	case completed || w.ran[name]:
		entry.Action = PlanRepeat
	case known:
		entry.Action = PlanResume
	}
	if e.When != nil && entry.Action != PlanResume {
		entry.Certainty, entry.Text = CertainIf, e.When.Text
	}
	w.add(entry)
	w.sure, w.ran[name] = false, true
	if w.unknown == "" {
		w.unknown = name
	}
	if known && !earlier {
		w.front, w.since = e.ElementName(), h.Last.ID
	}
	return core.Outcome{Status: core.StatusCompleted, ExitCode: core.ExitCompleted}
}

func (w *planWalk) pass(element string, s core.StepExecution) {
	w.last = s.ID
	passed := func(e PlanEntry) bool { return e.Action == PlanPass && e.Step == s.Name }
	if !slices.ContainsFunc(w.plan.Entries, passed) {
		w.plan.Entries = append(w.plan.Entries, PlanEntry{Element: element, Step: s.Name, Action: PlanPass, Certainty: Certain})
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
