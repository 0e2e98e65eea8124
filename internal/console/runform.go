package console

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/operator/catalog"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// likeField has an execution whose parameters are filled in.
const likeField = "like"

// runView is the form of a run, with its plan.
type runView struct {
	Form   formView
	Job    link
	About  string
	Fields []inputView
	// Like is the execution with the values that are filled in.
	Like        *link
	Incrementer string
	Again, Next bool
	Plan        *planView
	// Instance says which one it is.
	Instance string
	Resumes  *link
	Changed  bool
	Accept   bool
}

// inputView is the field of a parameter.
type inputView struct {
	parameterLine
	Field, Value string
	// Input is the type of the field in HTML; Options replace it.
	Input   string
	Options []option
	Wrong   string
	// First is the first wrong one.
	First bool
	Hint  string
}

func (f ofRun) run() (*page, error) {
	name := f.r.PathValue("job")
	described, err := f.Jobs.Job(name)
	if err != nil {
		return nil, err
	}
	view := runView{
		Job: link{clip(name, shortText), f.jobLink(name)}, About: whole(described.Description), Incrementer: described.Incrementer,
		Again: f.values.Get(againField) == yesValue, Next: f.values.Get(nextField) == yesValue, Accept: f.values.Get(acceptField) == yesValue,
	}
	if err := f.like(&view, described); err != nil {
		return nil, err
	}
	button, err := f.planRun(&view, name)
	if err != nil {
		return nil, err
	}
	view.Form, view.Fields = f.view(button), f.inputs(described)
	view.Form.Cancel = view.Job.Href
	view.Changed = view.Accept || f.refused != nil && f.refused.Diff != ""
	return &page{Title: "Run " + clip(name, shortText), Heading: "Run job " + clip(name, shortText), Body: view}, nil
}

// planRun plans the typed values, and returns the text of the button.
func (f ofRun) planRun(view *runView, name string) (button string, err error) {
	if f.r.Method != http.MethodPost && !f.values.Has(doField) {
		return "Run", nil // nothing was typed yet
	}
	plan, err := f.plan("/v1/jobs/"+url.PathEscape(name)+"/plan", f.runBody())
	if err != nil || plan == nil {
		return "Run", err
	}
	view.Plan, button = f.planView(plan), "Run"
	switch {
	case plan.Refused != nil:
		button = ""
	case plan.Execution != 0:
		of := f.executionLink(plan.Execution)
		view.Resumes, button = &of, "Resume execution "+id(plan.Execution)
	}
	return button, nil
}

// like fills in the parameters of an execution.
func (f ofRun) like(view *runView, described *catalog.JobDescription) error {
	number := f.key(likeField)
	if number == 0 || f.r.Method == http.MethodPost {
		return nil
	}
	e, err := f.Service.Show(f.r.Context(), operator.ShowRequest{Execution: core.JobExecutionID(number)})
	if err != nil {
		return err
	}
	if e.JobName != described.JobName {
		f.mistake(likeField, fmt.Sprint(number), "an execution of job "+clip(e.JobName, shortText))
		return nil
	}
	of := f.executionLink(e.ID)
	view.Like = &of
	for _, p := range described.Parameters {
		if had, is := e.Params.Get(p.Name); is && !p.Secret && !f.values.Has(paramPrefix+p.Name) {
			f.values.Set(paramPrefix+p.Name, had.Text())
		}
	}
	return nil
}

// inputs are the fields of the declared parameters. Secrets are never filled in.
func (f ofRun) inputs(described *catalog.JobDescription) []inputView {
	var list []inputView
	lines, first := parameterLines(described), true
	for i := range described.Parameters {
		p := &described.Parameters[i]
		in := inputView{parameterLine: lines[i], Field: paramPrefix + p.Name, Input: "text"}
		if in.Value = f.values.Get(in.Field); p.Secret {
			in.Value, in.Input = "", "password"
		}
		if in.Wrong = f.wrong(in.Field); in.Wrong != "" {
			in.First, first = first, false
		}
		switch {
		case p.Secret:
		case len(p.Enum) > 0:
			in.Options = options(p.Enum, p, in.Value)
		case p.Type == core.TypeBool:
			in.Options = options([]string{"true", "false"}, p, in.Value)
		case p.Type == core.TypeDate && isDate(in.Value): // a browser shows no other text in such a field
			in.Input = "date"
		}
		list = append(list, in)
	}
	return list
}

func isDate(text string) bool {
	_, err := time.Parse(time.DateOnly, text)
	return text == "" || err == nil
}

// options are the allowed values; the empty one is the default.
func options(values []string, p *catalog.ParameterDescription, chosen string) []option {
	var list []option
	if p.Default != nil {
		list = append(list, option{"", "default: " + clip(*p.Default, shortText), chosen == ""})
	} else if !p.Required {
		list = append(list, option{"", "none", chosen == ""})
	}
	for _, one := range values {
		list = append(list, option{one, clip(one, shortText), one == chosen})
	}
	if chosen != "" && !slices.Contains(values, chosen) {
		list = append(list, option{chosen, clip(chosen, shortText), true})
	}
	return list
}

// runBody is the body of a run: an empty field takes the default.
func (f ofRun) runBody() map[string]any {
	params := map[string]string{}
	for field := range f.values {
		if name, is := strings.CutPrefix(field, paramPrefix); is && f.values.Get(field) != "" {
			params[name] = f.values.Get(field)
		}
	}
	body := map[string]any{"params": params}
	for _, name := range []string{againField, nextField, acceptField} {
		if f.values.Get(name) == yesValue {
			body[name] = true
		}
	}
	return body
}

func (f ofRun) sendRun() (operation, error) {
	name := f.r.PathValue("job")
	body := f.runBody()
	if reason := strings.TrimSpace(f.values.Get(reasonField)); reason != "" {
		body[reasonField] = reason
	}
	return operation{"/v1/jobs/" + url.PathEscape(name) + "/run", body}, nil
}
