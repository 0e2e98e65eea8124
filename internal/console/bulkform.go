package console

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// The fields of an act on many executions.
const (
	actField     = "act"
	expectField  = "expect"
	confirmField = "confirm"
	// chosenField has the number of a chosen execution.
	chosenField = "execution"
	// typedFrom is the number of executions from which on it must be typed.
	typedFrom = 100
)

// bulkView is an act on all executions that filters select.
type bulkView struct {
	Form     formView
	Filters  []filterWord
	Acts     []option
	Selected int
	Expect   string
	// Typed: the number must be typed.
	Typed   bool
	Confirm inputView
	Items   []bulkLine
	More    string
	// NoWorker: nothing would begin.
	NoWorker string
}

type bulkLine struct {
	Execution link
	Job       string
	Status    statusView
	Does      string
	Refused   string
}

// bulkPlan is the dry run of the API.
type bulkPlan struct {
	Selected int `json:"selected"`
	Plan     struct {
		Items []struct {
			Execution core.JobExecutionID `json:"execution"`
			JobName   string              `json:"job"`
			Status    core.Status         `json:"status"`
			Steps     []struct {
				Step   string `json:"step"`
				Action string `json:"action"`
			} `json:"steps"`
			Refused *struct {
				Message string `json:"message"`
			} `json:"refused"`
		} `json:"items"`
		Next core.JobExecutionID `json:"next"`
	} `json:"plan"`
}

// bulkBody has the executions that were chosen, or a filter. It refuses one that does not count: without it
// the act would be for more executions.
func (f ofMany) bulkBody() (map[string]any, error) {
	filter, numbers := ofList{f.visit}.listRequest(), []int64{}
	for _, text := range f.r.URL.Query()[chosenField] {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			f.mistake(chosenField, text, "expected the number of an execution")
		}
		numbers = append(numbers, n)
	}
	switch {
	case len(f.visit.wrong) > 0:
		return nil, &problem{Status: http.StatusUnprocessableEntity, Detail: "nothing is done while a filter is wrong: correct or remove it"}
	case len(numbers) > 0:
		return map[string]any{actField: f.chosenAct(), "executions": numbers}, nil
	}
	filter.Limit, filter.FailedSteps, filter.Before, filter.After = 0, false, 0, 0
	return map[string]any{actField: f.chosenAct(), "filter": filter}, nil
}

func (f ofMany) chosenAct() string {
	if chosen := f.values.Get(actField); chosen != "" {
		return chosen
	}
	return ports.VerbRestart
}

func (f ofMany) bulk() (*page, error) {
	view := bulkView{Filters: ofList{f.visit}.filterWords()}
	for _, verb := range []string{ports.VerbRestart, ports.VerbRedrive, ports.VerbStop, ports.VerbAbandon} {
		view.Acts = append(view.Acts, option{verb, verb, verb == f.chosenAct()})
	}
	var plan bulkPlan
	body, err := f.bulkBody()
	if err == nil {
		body["dry_run"] = true
		err = f.request(f.r.Context(), operation{"/v1/bulk", body}, "", &plan)
	}
	if refused, is := err.(*problem); is { //nolint:errorlint // it is returned as it is
		if f.refused == nil {
			f.refused = refused
		}
	} else if err != nil {
		return nil, err
	}
	if view.NoWorker, err = f.Tasks.NoWorker(f.r.Context()); err != nil {
		return nil, err
	}
	view.plan(f, &plan)
	button := ""
	if plan.Selected > 0 {
		button = f.chosenAct() + " " + humanize.Plural(plan.Selected, "execution")
	}
	view.Form = f.view(strings.ToUpper(button[:min(1, len(button))]) + button[min(1, len(button)):])
	view.Form.Action, view.Form.Epoch = f.here(), ""
	back := url.Values{}
	for _, name := range filterNames() {
		if text := f.text(name); text != "" {
			back.Set(name, text)
		}
	}
	view.Form.Cancel = withQuery(f.Base+"/executions", back)
	return &page{Title: "Act on many executions", Heading: "Act on " + humanize.Plural(plan.Selected, "execution"), Body: view}, nil
}

func (view *bulkView) plan(f ofMany, plan *bulkPlan) {
	view.Selected, view.Expect, view.Typed = plan.Selected, strconv.Itoa(plan.Selected), plan.Selected > typedFrom
	view.Confirm = f.confirmation("executions", view.Expect)
	for _, item := range plan.Plan.Items {
		l := bulkLine{Execution: f.executionLink(item.Execution), Job: clip(item.JobName, shortText), Status: status(item.Status)}
		var does []string
		for _, s := range item.Steps {
			does = append(does, s.Action+" "+clip(s.Step, shortText))
		}
		l.Does = strings.Join(does, ", ")
		if item.Refused != nil {
			l.Refused = clip(f.masked(item.Refused.Message), lineText)
		}
		view.Items = append(view.Items, l)
	}
	if n := plan.Selected - len(view.Items); n > 0 {
		view.More = humanize.Plural(n, "further execution")
	}
}

// sendBulk does the act on as many executions as the page had; many are confirmed by their number.
func (f ofMany) sendBulk() (operation, error) {
	expected, err := strconv.Atoi(f.values.Get(expectField))
	if err != nil || expected < 1 || f.values.Get(plannedField) != f.chosenAct() {
		return operation{}, errShowAgain
	}
	if err := f.confirmed("executions", expected); err != nil {
		return operation{}, err
	}
	body, err := f.bulkBody()
	if err != nil {
		return operation{}, err
	}
	body = f.guarded(body)
	body[expectField] = expected
	delete(body, epochField)
	return operation{"/v1/bulk", body}, nil
}
