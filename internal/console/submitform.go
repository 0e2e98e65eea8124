package console

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/surfin-batch/surfin/internal/wording"
)

// The fields of a submission.
const (
	typeField     = "type"
	titleField    = "title"
	payloadField  = "payload"
	attemptsField = "max_attempts"
)

// submit is the form of a task.
func (f ofWorkAct) submit() (*page, error) {
	work, err := f.Tasks.Work(f.r.Context())
	if err != nil {
		return nil, err
	}
	var types []string
	for _, t := range work.Types {
		if t.Workers > 0 {
			types = append(types, clip(t.Name, shortText))
		}
	}
	view := actView{Form: f.view("Submit it"), Sentences: wording.WorkAct("submit-group")}
	view.Form.NoReason, view.Form.Cancel = true, f.Base+"/tasks"
	first := true
	for _, of := range []struct{ name, about, input string }{
		{typeField, "live workers execute: " + strings.Join(types, ", "), "text"}, {titleField, "", "text"}, {payloadField, "JSON", "area"}, {attemptsField, "number of attempts; by default 5", "text"},
	} {
		in := inputView{parameterLine: parameterLine{Name: strings.ReplaceAll(of.name, "_", " "), Type: of.about, Required: of.name == typeField}, Field: of.name, Value: f.values.Get(of.name), Input: of.input, Wrong: f.wrong(of.name)}
		if in.Wrong != "" {
			in.First, first = first, false
		}
		view.Fields = append(view.Fields, in)
	}
	return &page{Title: "Submit a task", Heading: "Submit a task", Body: view}, nil
}

func (f ofWorkAct) sendSubmit() (operation, error) {
	one := map[string]any{}
	for _, name := range []string{typeField, titleField} {
		if text := f.values.Get(name); text != "" {
			one[name] = text
		}
	}
	if text := strings.TrimSpace(f.values.Get(payloadField)); text != "" {
		var payload json.RawMessage
		if err := json.Unmarshal([]byte(text), &payload); err != nil {
			return operation{}, &problem{Status: http.StatusUnprocessableEntity, Detail: "the payload is not JSON", Errors: []problemError{{err.Error(), "body." + payloadField}}}
		}
		one[payloadField] = payload
	}
	body := map[string]any{"tasks": []any{one}}
	if title := one[titleField]; title != nil {
		body[titleField] = title
	}
	if text := strings.TrimSpace(f.values.Get(attemptsField)); text != "" {
		body["budget"] = map[string]any{attemptsField: number(text)}
	}
	return operation{"/v1/groups", body}, nil
}
