package console

import (
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
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
	of := strings.NewReplacer("compare", "comparison", "parts", "partitions").Replace(name) + " of execution " + id(e.ID)
	of = strings.ToUpper(of[:1]) + of[1:]
	return &page{Title: of + ": " + string(e.Status), Heading: of + " of job " + clip(e.JobName, shortText), Body: body, Live: follows(&e.Execution)}
}

type resultsView struct {
	head
	Steps []resultLine
	// Silent names the steps that handed nothing on.
	Silent    string
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
	var silent []string
	for i := range shown.Steps {
		s := &shown.Steps[i]
		if !hasResults(s) {
			silent = append(silent, s.Step)
			continue
		}
		l := resultLine{Name: clip(s.Step, shortText), Status: status(s.Status), Exit: exitOf(s.Status, s.Exit), Gate: v.masked(s.Gate), Error: whole(v.masked(s.Error))}
		for _, w := range s.Warnings {
			l.Warnings = append(l.Warnings, whole(v.masked(w)))
		}
		l.Out = valuesOf(v.visit, s.Out, whole)
		view.Steps = append(view.Steps, l)
	}
	if len(silent) > 0 {
		view.Silent = "No values, gates or errors: " + clip(strings.Join(silent, ", "), 50*shortText) + "."
	}
	return tabPage(shown, "results", view), nil
}

func hasResults(s *operator.StepView) bool {
	return len(s.Out) > 0 || s.Gate != "" || s.Error != "" || len(s.Warnings) > 0
}

type changesView struct {
	head
	// Acts are those on all executions of the instance.
	Acts    []changeLine
	Changes []changeLine
}

type changeLine struct {
	At                     moment
	Of, Act, Move, By, Why string
	// On is the execution of an act.
	On link
}

func (v ofExecution) changes() (*page, error) {
	shown, h, err := v.tab("audit", operator.ShowRequest{Audit: true})
	if err != nil {
		return nil, err
	}
	view := changesView{head: h}
	for _, a := range shown.Acts {
		l := changeLine{At: v.moment(a.At), Act: a.Act, By: clip(wording.Actor(a.Actor), shortText), Why: clip(v.masked(wording.ActDetail(a.Detail)), lineText)}
		l.On = v.executionLink(a.Execution)
		view.Acts = append(view.Acts, l)
	}
	for i := range shown.Audit {
		a := &shown.Audit[i]
		l := changeLine{
			At: v.moment(a.At), Act: a.Act, Move: wording.Move(a.From, a.To), By: clip(wording.Actor(a.Actor), shortText), Why: clip(v.masked(wording.ActDetail(a.Detail)), lineText),
			Of: clip(wording.About(a), shortText),
		}
		view.Changes = append(view.Changes, l)
	}
	return tabPage(shown, "audit", view), nil
}

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
