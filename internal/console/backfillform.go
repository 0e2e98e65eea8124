package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/operator/catalog"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// The fields of a back-fill, as in the body of the API.
const (
	rangeField    = "param"
	toField       = "to"
	everyField    = "step"
	parallelField = "parallel"
	onlyField     = "only"
)

// backfillView is the form of a back-fill, with its effect on each value.
type backfillView struct {
	Form    formView
	Job     link
	Range   []inputView
	Fields  []inputView
	Only    []option
	Accept  bool
	Planned string
	Expect  string
	// Typed: the number must be typed.
	Typed   bool
	Confirm inputView
	Param   string
	Said    string
	Items   []backfillLine
	// NoWorker: nothing would begin.
	NoWorker string
}

type backfillLine struct {
	Value, Does string
	Execution   *link
	Status      *statusView
	Runs, Bad   bool
}

// backfillItem is an item of the dry run of the API.
type backfillItem struct {
	operator.BackfillItem
	Refused *struct {
		Message string `json:"message"`
	} `json:"refused"`
}

type backfillPlan struct {
	Selected int `json:"selected"`
	Plan     struct {
		Items []backfillItem `json:"items"`
	} `json:"plan"`
}

func (f ofRun) backfill() (*page, error) {
	name := f.r.PathValue("job")
	described, err := f.Jobs.Job(name)
	if err != nil {
		return nil, err
	}
	f.fillRange(described)
	view := backfillView{Job: link{clip(name, shortText), f.jobLink(name)}, Param: clip(f.values.Get(rangeField), shortText), Planned: f.plannedRange(), Accept: f.values.Get(acceptField) == yesValue}
	for _, one := range []option{{operator.OnlyMissing, "those that never ran", false}, {operator.OnlyFailed, "those that ran and are not complete", false}, {operator.OnlyAll, "all that are not complete", false}} {
		one.Chosen = one.Value == f.values.Get(onlyField)
		view.Only = append(view.Only, one)
	}
	button := ""
	if f.values.Get(fromField) != "" && f.values.Get(toField) != "" {
		if button, err = f.planRange(&view, name); err != nil {
			return nil, err
		}
	}
	view.rangeInputs(f, described)
	view.Form = f.view(button)
	view.Form.Epoch, view.Form.Cancel = "", view.Job.Href+"#calendar"
	return &page{Title: "Back-fill " + clip(name, shortText), Heading: "Back-fill job " + clip(name, shortText), Body: view}, nil
}

// fillRange fills in the parameter of the range and the selection.
func (f ofRun) fillRange(described *catalog.JobDescription) {
	if f.values.Get(onlyField) == "" {
		f.values.Set(onlyField, operator.OnlyMissing)
	}
	for i := range described.Parameters {
		if p := &described.Parameters[i]; f.values.Get(rangeField) == "" && isRange(p) {
			f.values.Set(rangeField, p.Name)
		}
	}
}

func isRange(p *catalog.ParameterDescription) bool {
	return p.Identifying && (p.Type == core.TypeDate || p.Type == core.TypeInt)
}

func (view *backfillView) rangeInputs(f ofRun, described *catalog.JobDescription) {
	chosen, input := inputView{parameterLine: parameterLine{Name: "Range of", Type: "a parameter"}, Field: rangeField, Wrong: f.wrong(rangeField)}, "text"
	for i := range described.Parameters {
		p := &described.Parameters[i]
		if !isRange(p) {
			continue
		}
		chosen.Options = append(chosen.Options, option{p.Name, clip(p.Name, shortText), p.Name == f.values.Get(rangeField)})
		if p.Name == f.values.Get(rangeField) && p.Type == core.TypeDate && isDate(f.values.Get(fromField)) && isDate(f.values.Get(toField)) {
			input = "date"
		}
	}
	if chosen.Value = f.values.Get(rangeField); !slices.ContainsFunc(chosen.Options, func(o option) bool { return o.Chosen }) {
		chosen.Options, chosen.Input = nil, "text"
	}
	view.Range = []inputView{chosen}
	for _, one := range []inputView{
		{parameterLine: parameterLine{Name: "From", Type: "the first value"}, Field: fromField, Input: input},
		{parameterLine: parameterLine{Name: "To", Type: "the last value"}, Field: toField, Input: input},
		{parameterLine: parameterLine{Name: "Step", Type: "takes each so-manyth value", Default: "1"}, Field: everyField, Input: "text"},
		{parameterLine: parameterLine{Name: "At once", Type: "at most, on all workers", Default: "1"}, Field: parallelField, Input: "text"},
	} {
		one.Value, one.Wrong = f.values.Get(one.Field), f.wrong(one.Field)
		view.Range = append(view.Range, one)
	}
	for _, in := range f.inputs(described) {
		if in.Field != paramPrefix+f.values.Get(rangeField) && !in.Secret {
			view.Fields = append(view.Fields, in)
		}
	}
}

// rangeBody is the body of a back-fill: an empty field takes the default.
func (f ofRun) rangeBody() map[string]any {
	run := f.runBody()
	params, _ := run["params"].(map[string]string) //nolint:errcheck // runBody has made it
	delete(params, f.values.Get(rangeField))
	body := map[string]any{"params": params}
	if run[acceptField] != nil {
		body[acceptField] = true
	}
	for _, name := range []string{rangeField, fromField, toField, onlyField} {
		body[name] = f.values.Get(name)
	}
	for _, name := range []string{everyField, parallelField} {
		if text := f.values.Get(name); text != "" {
			body[name] = number(text)
		}
	}
	return body
}

// plannedRange are the choices in one text.
func (f ofRun) plannedRange() string {
	text, err := json.Marshal(f.rangeBody())
	if err != nil {
		return ""
	}
	return string(text)
}

// planRange shows the effect, and returns the text of the button.
func (f ofRun) planRange(view *backfillView, name string) (button string, err error) {
	var plan backfillPlan
	body := f.rangeBody()
	body["dry_run"] = true
	err = f.request(f.r.Context(), operation{"/v1/jobs/" + url.PathEscape(name) + "/backfill", body}, "", &plan)
	if refused, is := err.(*problem); is { //nolint:errorlint // it is returned as it is
		if f.refused == nil {
			f.refused = refused
		}
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if view.NoWorker, err = f.Tasks.NoWorker(f.r.Context()); err != nil {
		return "", err
	}
	counts := map[operator.BackfillEffect]int{}
	for i := range plan.Plan.Items {
		view.Items = append(view.Items, f.backfillLine(&plan.Plan.Items[i]))
		counts[plan.Plan.Items[i].Effect]++
	}
	view.Expect, view.Typed = strconv.Itoa(plan.Selected), plan.Selected > typedFrom
	view.Confirm = f.confirmation("instances", view.Expect)
	view.Said = fmt.Sprintf("%s: %d new, %d resumed, %d left out, %d refused", humanize.Plural(len(view.Items), "value"),
		counts[operator.BackfillNew], counts[operator.BackfillResume], counts[operator.BackfillLeft], counts[operator.BackfillRefused])
	if plan.Selected > 0 {
		button = "Run " + humanize.Plural(plan.Selected, "instance")
	}
	return button, nil
}

func (f ofRun) backfillLine(item *backfillItem) backfillLine {
	one := item.BackfillItem
	if item.Refused != nil {
		one.Refused = &operator.Refusal{Err: errors.New(item.Refused.Message)}
	}
	l := backfillLine{
		Value: clip(one.Value, shortText), Does: clip(f.masked(wording.BackfillEffect(&one)), lineText),
		Runs: one.Effect == operator.BackfillNew || one.Effect == operator.BackfillResume, Bad: one.Effect == operator.BackfillRefused,
	}
	if one.Execution != 0 {
		of, s := f.executionLink(one.Execution), status(one.Status)
		l.Execution, l.Status = &of, &s
	}
	return l
}

// sendBackfill runs as many instances as the page had; many are confirmed by their number.
func (f ofRun) sendBackfill() (operation, error) {
	expected, err := strconv.Atoi(f.values.Get(expectField))
	if err != nil || expected < 1 || f.values.Get(plannedField) != f.plannedRange() {
		return operation{}, errShowAgain
	}
	if err := f.confirmed("instances", expected); err != nil {
		return operation{}, err
	}
	body := f.rangeBody()
	body[expectField] = expected
	if reason := strings.TrimSpace(f.values.Get(reasonField)); reason != "" {
		body[reasonField] = reason
	}
	return operation{"/v1/jobs/" + url.PathEscape(f.r.PathValue("job")) + "/backfill", body}, nil
}

// confirmation is the field for the number of many things.
func (f *form) confirmation(things, expect string) inputView {
	return inputView{
		parameterLine: parameterLine{Name: "How many " + things + "?", Type: "type " + expect}, Field: confirmField, Value: f.values.Get(confirmField), Input: "text", Wrong: f.wrong(confirmField),
	}
}

// confirmed refuses an act on many things without their number.
func (f *form) confirmed(things string, expected int) error {
	if typed := strings.NewReplacer(",", "", " ", "").Replace(f.values.Get(confirmField)); expected <= typedFrom || typed == strconv.Itoa(expected) {
		return nil
	}
	return &problem{Status: http.StatusUnprocessableEntity, Detail: fmt.Sprintf("type the number of %s, %d, to confirm", things, expected), Errors: []problemError{{"it is not the number of " + things, "body." + confirmField}}}
}

// backfillOf is the form of a back-fill of the days up to today; empty in the future.
func (v ofJob) backfillOf(job, param string, days []operator.CalendarDay) string {
	from, to, today := days[0].Value, days[len(days)-1].Value, v.Now().In(v.zone).Format(time.DateOnly)
	if from > today {
		return ""
	}
	return withQuery("/jobs/"+url.PathEscape(job)+"/backfill", url.Values{rangeField: {param}, fromField: {from}, toField: {min(to, today)}})
}
