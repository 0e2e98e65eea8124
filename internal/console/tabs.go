package console

import (
	"cmp"
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

// tab shows an execution for one of its tabs.
func (v ofExecution) tab(name string, req operator.ShowRequest) (*operator.ExecutionView, head, error) {
	req.Execution = v.executionID()
	shown, err := v.Service.Show(v.r.Context(), req)
	if err != nil {
		return nil, head{}, err
	}
	h, err := v.head(shown, name)
	return shown, h, err
}

func tabPage(e *operator.ExecutionView, name string, body any) *page {
	of := name + " of execution " + id(e.ID)
	return &page{Title: strings.ToUpper(of[:1]) + of[1:], Heading: strings.ToUpper(of[:1]) + of[1:] + " of job " + clip(e.JobName, shortText), Body: body}
}

// partsView are the parts of the steps.
type partsView struct {
	head
	Steps []choice
	Step  string
	Of    string
	// Counts are the states with their numbers, for the bar.
	Counts []partCount
	Parts  []stepLine
	// Left: only those that are not complete are shown.
	Left     bool
	LeftLink string
	Orders   []choice
	Next     string
	Shown    string
}

type partCount struct {
	statusView
	Count, Text string
	// X and Width are in thousandths of the bar.
	X, Width int
}

func (v ofExecution) parts() (*page, error) {
	shown, h, err := v.tab("parts", operator.ShowRequest{Partitions: true})
	if err != nil {
		return nil, err
	}
	view := partsView{head: h}
	var of *operator.StepView
	for i := range shown.Steps {
		s := &shown.Steps[i]
		if s.Partitions == nil {
			continue
		}
		chosen := v.text("step") == s.Step || v.text("step") == "" && of == nil
		if chosen {
			of = s
		}
		view.Steps = append(view.Steps, choice{clip(s.Step, shortText), v.with("step", s.Step, "from", ""), chosen})
	}
	if of == nil {
		if name := v.text("step"); name != "" {
			v.mistake("step", name, "this execution has no such step with parts")
		}
		return tabPage(shown, "parts", view), nil
	}
	view.Step, view.Of = clip(of.Step, shortText), wording.Parts(of.Partitions, of.Partitions.Total)
	view.Counts = partCounts(of.Partitions)
	v.partLines(&view, of, shown.ID)
	return tabPage(shown, "parts", view), nil
}

func partCounts(p *operator.PartitionsView) []partCount {
	const whole = 1000
	var list []partCount
	x := 0
	for _, s := range core.Statuses() {
		if n := p.Statuses[s]; n > 0 {
			width := max(1, n*whole/p.Total)
			list = append(list, partCount{status(s), humanize.Count(n), humanize.Count(n) + " " + string(s), x, width})
			x += width
		}
	}
	return list
}

const partsPage = 200

// partLines is a page of the parts, in the order that the address has.
func (v ofExecution) partLines(view *partsView, of *operator.StepView, execution core.JobExecutionID) {
	parts := slices.Clone(of.Partitions.List)
	view.Left = v.text("left") == "true"
	if view.Left {
		parts = slices.DeleteFunc(parts, func(p operator.StepView) bool { return p.Status == core.StatusCompleted })
		view.LeftLink = v.with("left", "", "from", "")
	} else {
		view.LeftLink = v.with("left", "true", "from", "")
	}
	orders := map[string]func(a, b operator.StepView) int{
		"duration": func(a, b operator.StepView) int { return cmp.Compare(b.Duration, a.Duration) },
		"status":   func(a, b operator.StepView) int { return cmp.Compare(worst(a.Status), worst(b.Status)) },
	}
	order := cmp.Or(v.text("order"), "status")
	if by := orders[order]; by != nil {
		slices.SortStableFunc(parts, by)
	} else if order != "name" {
		v.mistake("order", order, "no such order", "status", "duration", "name")
		order = "name"
	}
	for _, name := range []string{"status", "duration", "name"} {
		view.Orders = append(view.Orders, choice{name, v.with("order", name, "from", ""), name == order})
	}
	from := min(int(min(v.key("from"), int64(len(parts)))), len(parts))
	to := min(from+partsPage, len(parts))
	for i := from; i < to; i++ {
		view.Parts = append(view.Parts, v.stepLine(&parts[i], execution))
	}
	if to < len(parts) {
		view.Next = v.with("from", strconv.Itoa(to))
	}
	if len(parts) > 0 {
		view.Shown = humanize.Count(from+1) + " to " + humanize.Count(to) + " of " + humanize.Count(len(parts))
	}
}

// worst orders statuses: those that need a person first.
func worst(s core.Status) int {
	order := []core.Status{
		core.StatusFailed, core.StatusUnknown, core.StatusStopped, core.StatusStopping, core.StatusStarted, core.StatusParked, core.StatusStarting, core.StatusAbandoned,
		core.StatusCompleted,
	}
	return slices.Index(order, s)
}

// resultsView are the values that steps hand on, the decisions and the gates.
type resultsView struct {
	head
	Steps     []resultLine
	Decisions []operator.DecisionView
	// Error is the execution's, as a whole.
	Error string
}

type resultLine struct {
	Name   string
	Status statusView
	Exit   string
	Gate   string
	Out    []paramView
	Error  string
	// Warnings are whole.
	Warnings []string
}

func (v ofExecution) results() (*page, error) {
	shown, h, err := v.tab("results", operator.ShowRequest{})
	if err != nil {
		return nil, err
	}
	view := resultsView{head: h, Decisions: shown.Decisions, Error: whole(v.masked(shown.Error))}
	for i := range shown.Steps {
		s := &shown.Steps[i]
		l := resultLine{Name: clip(s.Step, shortText), Status: status(s.Status), Exit: exitOf(s.Status, s.Exit), Gate: v.masked(s.Gate), Error: whole(v.masked(s.Error))}
		for _, w := range s.Warnings {
			l.Warnings = append(l.Warnings, whole(v.masked(w)))
		}
		for _, name := range slices.Sorted(maps.Keys(s.Out)) {
			l.Out = append(l.Out, paramView{Name: name, Value: whole(v.masked(fmt.Sprint(s.Out[name])))})
		}
		view.Steps = append(view.Steps, l)
	}
	return tabPage(shown, "results", view), nil
}

// changesView are the changes of status of an execution and its steps.
type changesView struct {
	head
	Changes []changeLine
}

type changeLine struct {
	At                     moment
	Of, Act, Move, By, Why string
}

func (v ofExecution) changes() (*page, error) {
	shown, h, err := v.tab("audit", operator.ShowRequest{Audit: true})
	if err != nil {
		return nil, err
	}
	view := changesView{head: h}
	for _, a := range shown.Audit {
		l := changeLine{At: v.moment(a.At), Act: a.Act, Move: wording.Move(a.From, a.To), By: clip(a.Actor, shortText), Why: clip(v.masked(a.Detail), lineText), Of: "execution"}
		if a.Step != 0 {
			l.Of = "step " + clip(cmp.Or(a.StepName, strconv.FormatInt(int64(a.Step), 10)), shortText)
		}
		view.Changes = append(view.Changes, l)
	}
	return tabPage(shown, "audit", view), nil
}

// stepTasksView are the groups of tasks and the child jobs of the steps.
type stepTasksView struct {
	head
	Steps []stepWork
}

type stepWork struct {
	Name   string
	Status statusView
	Group  *link
	Tasks  string
	Child  *link
	Is     statusView
}

func (v ofExecution) stepTasks() (*page, error) {
	shown, h, err := v.tab("tasks", operator.ShowRequest{})
	if err != nil {
		return nil, err
	}
	view := stepTasksView{head: h}
	for i := range shown.Steps {
		s := &shown.Steps[i]
		w := stepWork{Name: clip(s.Step, shortText), Status: status(s.Status)}
		if s.Tasks != nil {
			group := strconv.FormatInt(s.Tasks.Group, 10)
			w.Group, w.Tasks = &link{"group " + group, v.Base + "/groups/" + group}, wording.Tasks(s.Tasks)
		}
		if s.Child != 0 {
			w.Child, w.Is = &link{"execution " + id(s.Child), v.executionLink(s.Child).Href}, status(s.ChildStatus)
		}
		if w.Group != nil || w.Child != nil {
			view.Steps = append(view.Steps, w)
		}
	}
	return tabPage(shown, "tasks", view), nil
}
