package console

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// The fields of a restart.
const (
	// plannedField has the choices that the plan on the page is for.
	plannedField = "planned"
)

// actView is a page that does one thing.
type actView struct {
	Form formView
	// Execution is empty if it is about something else.
	Execution link
	Job       link
	Status    statusView
	Params    []paramView
	// Sentences describe its effect.
	Sentences []string
	Fields    []inputView
	// Checked: they are about the fields, as Planned has them, and follow them.
	Checked bool
	Planned string
	// Subject is a thing that is there already.
	Subject link
}

// restartView is the plan of a restart, and the button that does it.
type restartView struct {
	actView
	Plan    *planView
	From    []option
	Planned string
	Accept  bool
	// Complete: also if it is COMPLETED.
	Complete bool
}

// option is a choice of a field.
type option struct {
	Value, Text string
	Chosen      bool
}

// planView is a dry run.
type planView struct {
	Refused string
	Changes []string
	Steps   []plannedStep
	Fails   bool
}

type plannedStep struct {
	Headline      string
	Before, After []string
	Rows          [][]string
}

// planned is a dry run, as the API answers it.
type planned struct {
	Steps     []*operator.DryStep `json:"steps"`
	Fails     bool                `json:"fails"`
	Changes   []jobfile.Change    `json:"changes"`
	Execution core.JobExecutionID `json:"execution"`
	Epoch     int64               `json:"epoch"`
	Refused   *struct {
		Message string `json:"message"`
	} `json:"refused"`
}

// about is the part that all acts on an execution show.
func (f *form) about() (*operator.ExecutionView, actView, error) {
	e, err := f.Service.Show(f.r.Context(), operator.ShowRequest{Execution: f.executionID()})
	if err != nil {
		return nil, actView{}, err
	}
	view := actView{Execution: f.executionLink(e.ID), Job: link{clip(e.JobName, shortText), f.jobLink(e.JobName)}, Status: status(e.Status)}
	for _, p := range operator.Given(e.Params.Parameters) {
		view.Params = append(view.Params, paramView{clip(p.Name, shortText), clip(f.masked(p.Text()), lineText), p.Identifying})
	}
	return e, view, nil
}

func (f *form) choices() map[string]any {
	body := map[string]any{}
	switch from := f.values.Get(fromField); {
	case from == fromStart:
		body["from_start"] = true
	case strings.HasPrefix(from, elementPrefix):
		body["from"] = strings.TrimPrefix(from, elementPrefix)
	}
	for _, name := range []string{acceptField, ifCompleteField} {
		if f.values.Get(name) == yesValue {
			body[name] = true
		}
	}
	return body
}

// plannedChoices are the choices in one text.
func (f *form) plannedChoices() string {
	q := url.Values{}
	for _, name := range []string{fromField, acceptField, ifCompleteField} {
		if v := f.values.Get(name); v != "" {
			q.Set(name, v)
		}
	}
	return q.Encode()
}

func (f *form) restart() (*page, error) {
	e, about, err := f.about()
	if err != nil {
		return nil, err
	}
	view := restartView{actView: about, Planned: f.plannedChoices(), Accept: f.values.Get(acceptField) == yesValue, Complete: f.values.Get(ifCompleteField) == yesValue}
	if view.From, err = f.starts(e); err != nil {
		return nil, err
	}
	plan, err := f.plan("/v1/executions/"+id(e.ID)+"/plan", f.choices())
	if err != nil {
		return nil, err
	}
	button := ""
	if plan != nil && plan.Refused == nil {
		button = "Restart execution " + id(e.ID)
	}
	view.Form = f.view(button)
	if plan != nil {
		view.Plan, view.Form.Epoch = f.planView(plan), fmt.Sprint(plan.Epoch)
	}
	view.Form.Cancel = about.Execution.Href
	return &page{Title: "Restart " + title(&e.Execution), Heading: "Restart execution " + id(e.ID) + " of job " + clip(e.JobName, shortText), Body: view}, nil
}

// plan asks for a dry run; nil means that it was refused.
func (f *form) plan(path string, body map[string]any) (*planned, error) {
	const sample = 5
	body["sample"] = sample
	var plan planned
	err := f.request(f.r.Context(), operation{path, body}, "", &plan)
	if refused, is := err.(*problem); is { //nolint:errorlint // request returns it as it is
		if f.refused == nil {
			f.refused = refused
		}
		return nil, nil //nolint:nilnil // refused
	}
	return &plan, err
}

func (f *form) planView(plan *planned) *planView {
	view := &planView{Fails: plan.Fails}
	if plan.Refused != nil {
		view.Refused = f.masked(plan.Refused.Message)
	}
	for _, c := range plan.Changes {
		view.Changes = append(view.Changes, f.masked(c.String()))
	}
	all := wording.DryEntries(&operator.DryRun{Steps: plan.Steps})
	for _, s := range plan.Steps {
		one := plannedStep{Headline: f.masked(wording.DryHeadline(s))}
		before, after := wording.DryNotes(s, all, func(name string) string { return name })
		one.Before, one.After = f.maskedAll(before), f.maskedAll(after)
		for _, item := range s.Items {
			for _, row := range wording.DryRows(item) {
				one.Rows = append(one.Rows, f.maskedAll(row))
			}
		}
		view.Steps = append(view.Steps, one)
	}
	return view
}

func (f *form) maskedAll(texts []string) []string {
	list := make([]string, len(texts))
	for i, text := range texts {
		list[i] = f.masked(text)
	}
	return list
}

// starts are the places from which it can be restarted.
func (f *form) starts(e *operator.ExecutionView) ([]option, error) {
	chosen := f.values.Get(fromField)
	list := []option{{"", "where it stopped", chosen == ""}, {fromStart, "the start of every step", chosen == fromStart}}
	flow, err := f.Service.ExecutionFlow(f.r.Context(), e.ID)
	if err != nil {
		return nil, err
	}
	for i := range flow.Flow {
		value := elementPrefix + flow.Flow[i].Name
		list = append(list, option{value, "from " + clip(flow.Flow[i].Name, shortText) + " on, also if it completed", chosen == value})
	}
	if !slices.ContainsFunc(list, func(o option) bool { return o.Chosen }) {
		list = append(list, option{chosen, clip(strings.TrimPrefix(chosen, elementPrefix), shortText), true})
	}
	return list, nil
}

// sendRestart requests the plan of the page; with other choices than those of the plan the form is shown again.
func (f *form) sendRestart() (operation, error) {
	if f.values.Get(plannedField) != f.plannedChoices() {
		return operation{}, errShowAgain
	}
	return operation{"/v1/executions/" + id(f.executionID()) + "/restart", f.guarded(f.choices())}, nil
}

// guarded adds the state that the page showed, and the reason.
func (f *form) guarded(body map[string]any) map[string]any {
	if epoch := f.values.Get(epochField); epoch != "" {
		body[epochField] = number(epoch)
	}
	if reason := strings.TrimSpace(f.values.Get(reasonField)); reason != "" {
		body[reasonField] = reason
	}
	return body
}

func (f *form) stop() (*page, error) {
	return f.simple("Stop", wording.Stopping)
}

func (f *form) abandon() (*page, error) {
	return f.simple("Abandon", wording.Abandoning)
}

// simple is a page with a button and a reason.
func (f *form) simple(verb string, says func(e *operator.ExecutionView) []string) (*page, error) {
	e, view, err := f.about()
	if err != nil {
		return nil, err
	}
	view.Form, view.Sentences = f.view(verb+" execution "+id(e.ID)), says(e)
	if view.Form.Epoch == "" {
		view.Form.Epoch = fmt.Sprint(e.Epoch)
	}
	view.Form.Cancel = view.Execution.Href
	return &page{Title: verb + " " + title(&e.Execution), Heading: verb + " execution " + id(e.ID) + " of job " + clip(e.JobName, shortText), Body: view}, nil
}

func (f *form) sendStop() (operation, error) {
	return operation{"/v1/executions/" + id(f.executionID()) + "/stop", f.guarded(map[string]any{})}, nil
}

func (f *form) sendAbandon() (operation, error) {
	return operation{"/v1/executions/" + id(f.executionID()) + "/abandon", f.guarded(map[string]any{})}, nil
}
