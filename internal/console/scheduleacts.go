package console

import (
	"cmp"
	"net/url"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/wording"
)

const timeField = "time"

// register is the form that registers a job of the catalog.
func (f ofWorkAct) register() (*page, error) {
	name := f.r.PathValue("job")
	file, err := f.Jobs.File(name)
	if err != nil {
		return nil, err
	}
	registered, err := f.Service.Definitions(f.r.Context())
	if err != nil {
		return nil, err
	}
	version := ""
	for _, d := range registered {
		if d.Job == name {
			version = d.Version
		}
	}
	return f.plainPage(f.plainOf(), "job "+clip(name, shortText), wording.Registering(file.Definition().Hash, version, file.Schedule() != nil)), nil
}

// timeRun is the form that runs a schedule for a time.
func (f ofWorkAct) timeRun() (*page, error) {
	name, err := f.namedSchedule()
	if err != nil {
		return nil, err
	}
	var run taskports.TimeRun
	body := map[string]any{timeField: f.values.Get(timeField), "dry_run": true}
	err = f.request(f.r.Context(), operation{f.timeRunPath(), body}, "", &run)
	if refused, is := err.(*problem); is { //nolint:errorlint // request returns it as it is
		if f.refused == nil {
			f.refused = refused
		}
	} else if err != nil {
		return nil, err
	}
	typed, button := f.values.Get(timeField), ""
	if !f.values.Has(timeField) {
		typed = run.Key
	}
	view := actView{Checked: true, Planned: cmp.Or(typed, run.Key)}
	if err == nil {
		view.Sentences = f.maskedAll(append(wording.TimeRun(&run), run.Warnings...))
		if run.ID == 0 {
			button = "Run it for " + run.Key
		} else {
			view.Subject = f.taskLink(run.ID)
		}
	}
	view.Form = f.view(button)
	view.Form.Cancel = f.Base + f.back()
	in := inputView{parameterLine: parameterLine{Name: timeField, Type: "local in " + run.Timezone + ", or with its offset"}, Field: timeField, Value: typed, Input: "text", Wrong: f.wrong(timeField)}
	view.Fields = []inputView{in}
	return &page{Title: "Run " + name, Heading: "Run " + name, Body: view}, nil
}

func (f ofWorkAct) timeRunPath() string {
	return "/v1/definitions/" + url.PathEscape(f.r.PathValue("job")) + "/run"
}

func (f ofWorkAct) sendTimeRun() (operation, error) {
	planned := f.values.Get(plannedField) // an empty field is for the time on the button
	if planned == "" || planned != cmp.Or(f.values.Get(timeField), planned) {
		return operation{}, errShowAgain
	}
	return operation{f.timeRunPath(), f.guarded(map[string]any{timeField: planned})}, nil
}
