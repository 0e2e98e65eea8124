package console

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type stepLine struct {
	Name    string
	Link    string
	Kind    string
	Round   string
	Status  statusView
	Exit    string
	Read    string
	Written string
	// Filtered and Skipped are empty for none.
	Filtered string
	Skipped  string
	SkipLink string
	Balance  balance
	Took     string
	Rate     string
	Started  moment
	Ended    moment
	// Earlier is the attempt that ran it, if it is not this one.
	Earlier *link
	Parts   string
	// PartsLink leads to them.
	PartsLink string
	Tasks     string
	Child     *link
	ChildIs   statusView
	Owner     string
	Position  string
	Gate      string
	// Error is cut; the step's own page has it as a whole.
	Error    string
	Warnings []string
	// Restart is the effect of a restart on it.
	Restart string
	Out     string
}

// balance reports whether every item is accounted for.
type balance struct {
	// Known: it is a chunk step that has read something and is over.
	Known, Holds bool
	Says         string
}

// stepLines are the steps with the committed counters of all attempts, in the order in which they ran.
func (v ofExecution) stepLines(shown *operator.ExecutionView, explained *operator.Explanation) []stepLine {
	own := map[core.StepExecutionID]*operator.StepView{}
	for i := range shown.Steps {
		own[shown.Steps[i].ID] = &shown.Steps[i]
	}
	var list []stepLine
	for i := range explained.Steps {
		step := &explained.Steps[i]
		l := v.stepLine(step, shown.ID)
		if of := own[step.ID]; of != nil {
			v.addOwn(&l, of)
		}
		if explained.Restart != nil && shown.Status != core.StatusCompleted {
			l.Restart = restartOf(explained.Restart, step)
		}
		list = append(list, l)
	}
	return list
}

func (v *visit) stepLine(step *operator.StepView, of core.JobExecutionID) stepLine {
	l := stepLine{
		Name: clip(step.Step, shortText), Kind: step.Kind, Status: status(step.Status), Exit: exitOf(step.Status, step.Exit), Read: wording.Read(step),
		Written: humanize.Count(step.Written), Filtered: some(step.Filtered), Skipped: some(step.Skipped), Started: v.moment(step.Started), Ended: v.moment(step.Ended),
		Gate: clip(step.Gate, lineText), Error: clip(v.masked(step.Error), lineText), Balance: balanceOf(step),
		Out: clip(v.masked(wording.Out(step.Out)), lineText),
	}
	if step.Status != core.StatusCompleted {
		l.Position = clip(step.Position, lineText)
	}
	l.Link = v.with("element", elementOf(step)) + "#element"
	if step.Skipped > 0 {
		l.SkipLink = v.executionLink(step.Execution).Href + "/skips?step=" + query(step.Step)
	}
	if !step.Started.IsZero() {
		l.Took = humanize.Seconds(step.Duration)
	}
	if step.RowsPerSecond > 0 {
		l.Rate = perSecond(step.RowsPerSecond)
	}
	if step.Execution != of {
		earlier := v.executionLink(step.Execution)
		l.Earlier = &link{"execution " + earlier.Text, earlier.Href}
	}
	if p := step.Process; p != nil {
		l.Owner = wording.Process(p.PID, clip(p.Host, shortText))
	}
	if step.Worker != nil {
		l.Owner += ", " + wording.WorkerLease(step.Worker, v.Now())
	}
	for _, w := range wording.StepNotes(step) {
		l.Warnings = append(l.Warnings, clip(v.masked(w), lineText))
	}
	if p := step.Partitions; p != nil {
		l.Parts = wording.Parts(p, p.Total) + ": " + wording.StatusCounts(p.Statuses)
		l.PartsLink = v.executionLink(step.Execution).Href + "/parts?step=" + query(step.Step)
	}
	return l
}

// addOwn adds the fields that only the views of this attempt have.
func (v ofExecution) addOwn(l *stepLine, of *operator.StepView) {
	if of.Round > 0 {
		l.Round = "round " + strconv.Itoa(of.Round)
	}
	if of.Tasks != nil {
		l.Tasks = wording.Tasks(of.Tasks)
	}
	if of.Child != 0 {
		child := v.executionLink(of.Child)
		l.Child, l.ChildIs = &link{"execution " + child.Text, child.Href}, status(of.ChildStatus)
	}
}

// valuesOf are the results of a step, each as cut makes it.
func valuesOf(v *visit, out map[string]any, cut func(text string) string) (list []paramView) {
	for _, name := range slices.Sorted(maps.Keys(out)) {
		list = append(list, paramView{Name: clip(name, shortText), Value: cut(v.masked(fmt.Sprint(out[name])))})
	}
	return list
}

func perSecond(rows float64) string { return humanize.Count(int64(rows)) + "/s" }

func some(n int64) string {
	if n == 0 {
		return ""
	}
	return humanize.Count(n)
}

func elementOf(step *operator.StepView) string {
	if step.Element != "" {
		return step.Element
	}
	return step.Step
}

// balanceOf is rule C11 for a complete step: of others the counters are of the committed chunks alone.
func balanceOf(step *operator.StepView) balance {
	c := core.Counters{
		Read: step.Read, Write: step.Written, Filter: step.Filtered, ReadSkip: step.ReadSkipped, ProcessSkip: step.ProcessSkip, WriteSkip: step.WriteSkipped,
	}
	if step.Kind != "chunk" || step.Status != core.StatusCompleted || step.Read+step.ReadSkipped == 0 {
		return balance{}
	}
	if c.Balanced() {
		return balance{true, true, "balanced: every item is written, filtered or skipped"}
	}
	return balance{true, false, "not balanced: some items are neither written nor filtered nor skipped"}
}

func restartOf(plan *operator.RestartPlan, step *operator.StepView) string {
	for _, e := range plan.Entries {
		if e.Step == step.Step || e.Step == "" && e.Element == step.Step {
			return strings.TrimSpace(string(e.Action) + " " + wording.Certainty(e, plan.Entries))
		}
	}
	return ""
}
