package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
)

// The fields of a redrive. The fields of an item end with its number.
const (
	useField     = "use."
	textField    = "text."
	findField    = "find"
	replaceField = "replace"
	doReplace    = "replace"
	allField     = "all"
	doImport     = "import"
	doExport     = "export"
	fileField    = "file"
)

// redriveView has the skipped items that are left, to correct, check and redrive.
type redriveView struct {
	actView
	Steps []option
	Items []editLine
	// Next is the address of further items.
	Next          string
	Find, Replace string
	// Checked is the result of the check, or of an import.
	Checked string
	// Sent: the fields are as sent, and replace those that the browser kept.
	Sent bool
	// Download has all items that are left, as they are stored.
	Download string
}

// editLine is a skipped item with its text to edit.
type editLine struct {
	skipLine
	ID   string
	Used bool
	// Editable: a browser returns its text as it is.
	Editable bool
	Text     string
	// IsItem: the text is the item as JSON, not the raw text.
	IsItem bool
	Lines  int
	Edited bool
	// Outcome is the result of its check.
	Outcome string
	Right   bool
	Reason  string
}

// redrivePlan is the answer of the check.
type redrivePlan struct {
	Items []struct {
		ID      int64  `json:"id"`
		Outcome string `json:"outcome"`
		Class   string `json:"class"`
		Error   string `json:"error"`
	} `json:"items"`
}

func (f ofRedrive) redrive() (*page, error) {
	e, about, err := f.about()
	if err != nil {
		return nil, err
	}
	req := operator.SkipsRequest{Execution: e.ID, Step: f.values.Get(stepField), Left: true, After: f.key("after"), Limit: pageSize}
	found, err := f.Service.Skips(f.r.Context(), req)
	if err != nil {
		return nil, err
	}
	if f.r.Method == http.MethodPost && f.values.Has("item") {
		if found.Items, err = f.shown(); err != nil {
			return nil, err
		}
	}
	view := redriveView{actView: about, Find: f.values.Get(findField), Replace: f.values.Get(replaceField), Checked: f.said, Sent: f.r.Method == http.MethodPost}
	view.Download = view.Execution.Href + "/skips.jsonl"
	for i := range found.Items {
		view.Items = append(view.Items, f.editLine(&found.Items[i]))
	}
	if found.Next != 0 {
		view.Next = f.with("after", strconv.FormatInt(found.Next, 10))
	}
	if view.Steps, err = f.skippedSteps(e); err != nil {
		return nil, err
	}
	if f.values.Get(doField) == doCheck {
		if err := f.check(&view, found.Items); err != nil {
			return nil, err
		}
	}
	button := "Redrive those that are chosen"
	if len(view.Items) == 0 {
		button = ""
	}
	view.Form = f.view(button)
	if view.Form.Epoch == "" {
		view.Form.Epoch = fmt.Sprint(e.Epoch)
	}
	view.Form.Cancel = view.Execution.Href + "/skips"
	heading := "Redrive skipped items of execution " + id(e.ID) + " of job " + clip(e.JobName, shortText)
	if len(view.Items) == 0 {
		heading = "Execution " + id(e.ID) + " has no skipped items left"
	}
	return &page{Title: "Redrive " + title(&e.Execution), Heading: heading, Body: view}, nil
}

// skippedSteps are the steps with items that are left.
func (f ofRedrive) skippedSteps(e *operator.ExecutionView) ([]option, error) {
	explained, err := f.Service.Explain(f.r.Context(), operator.ExplainRequest{Execution: e.ID})
	if err != nil {
		return nil, err
	}
	var list []option
	for _, g := range explained.Skipped {
		if g.Left > 0 && !slices.ContainsFunc(list, func(o option) bool { return o.Value == g.Step }) {
			list = append(list, option{g.Step, clip(g.Step, shortText), g.Step == f.values.Get(stepField)})
		}
	}
	return list, nil
}

// editLine is an item as it was typed, or as it is stored.
func (f ofRedrive) editLine(s *operator.SkipView) editLine {
	number := strconv.FormatInt(s.ID, 10)
	stored, isItem := storedText(s)
	l := editLine{skipLine: ofExecution{f.visit}.skipLine(s), ID: number, Text: stored, IsItem: isItem, Used: f.r.Method != http.MethodPost || f.values.Has(useField+number)}
	l.Editable = stored != "" && f.isReturned(stored)
	if text, typed := f.typed(number, stored); typed && l.Editable {
		l.Text, l.Edited = text, text != stored
	}
	const most = 12
	l.Lines = min(most, 1+strings.Count(l.Text, "\n"))
	return l
}

// storedText is the raw text of an item, or the item as JSON.
func storedText(s *operator.SkipView) (text string, isItem bool) {
	if s.Raw != nil {
		return *s.Raw, false
	}
	if len(s.Item) == 0 || string(s.Item) == "null" {
		return "", true
	}
	var indented bytes.Buffer
	if json.Indent(&indented, s.Item, "", "  ") != nil {
		return string(s.Item), true
	}
	return indented.String(), true
}

// isReturned reports whether a page shows a text as it is, so that a browser can return it: without signs for
// characters, and without a secret.
func (f ofRedrive) isReturned(text string) bool {
	const longest = 64 << 10
	lines := strings.ReplaceAll(text, "\r\n", "\n")
	return len(text) <= longest && !strings.Contains(lines, "\r") && string(visible([]byte(lines))) == lines && f.masked(lines) == lines &&
		(lines == text || !strings.Contains(strings.ReplaceAll(text, "\r\n", ""), "\n"))
}

// typed is the text that a browser returned, with the line ends of the stored one.
func (f ofRedrive) typed(number, stored string) (string, bool) {
	if !f.values.Has(textField + number) {
		return "", false
	}
	text := strings.ReplaceAll(f.values.Get(textField+number), "\r\n", "\n")
	if f.values.Get(doField) == doReplace && f.values.Get(findField) != "" && f.values.Has(useField+number) {
		text = strings.ReplaceAll(text, f.values.Get(findField), f.values.Get(replaceField))
	}
	if strings.Contains(stored, "\r\n") {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	return text, true
}

// chosen are the items of the request: those that were not edited are taken as they are stored.
func (f ofRedrive) chosen(items []operator.SkipView) ([]map[string]any, error) {
	list := []map[string]any{}
	for i := range items {
		l := f.editLine(&items[i])
		if !l.Used {
			continue
		}
		one := map[string]any{"id": items[i].ID}
		switch {
		case l.Edited && l.IsItem:
			if !json.Valid([]byte(l.Text)) {
				return nil, f.mistaken(l.ID, "it is not valid JSON")
			}
			one["item"] = json.RawMessage(l.Text)
		case l.Edited:
			one["raw"] = l.Text
		}
		list = append(list, one)
	}
	return list, nil
}

func (f ofRedrive) mistaken(number, reason string) error {
	return &problem{Status: http.StatusUnprocessableEntity, Detail: "item " + number + ": " + reason, Errors: []problemError{{reason, "body." + textField + number}}}
}

// sendRedrive redrives the items that were chosen on the page, or all that are left.
func (f ofRedrive) sendRedrive() (operation, error) {
	if f.values.Get(doField) == doReplace {
		return operation{}, errShowAgain
	}
	body := map[string]any{}
	if step := f.values.Get(stepField); step != "" {
		body[stepField] = step
	}
	items, err := f.shown()
	if err != nil {
		return operation{}, err
	}
	switch f.values.Get(doField) {
	case doImport:
		return operation{}, f.importEdits(items)
	case doExport:
		return operation{}, f.exportEdits(items)
	}
	if f.values.Get(allField) != yesValue {
		if body["items"], err = f.chosen(items); err != nil {
			return operation{}, err
		}
	}
	for i := range items {
		if l := f.editLine(&items[i]); l.Edited && (f.values.Get(allField) == yesValue || !l.Used) {
			return operation{}, f.mistaken(l.ID, "it was edited, and would not be redriven like that: choose it, and not all as they are stored")
		}
	}
	return operation{"/v1/executions/" + id(f.executionID()) + "/redrive", f.guarded(body)}, nil
}

// shown are the items that the page had.
func (f ofRedrive) shown() ([]operator.SkipView, error) {
	var items []operator.SkipView
	for _, number := range f.values["item"] {
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, &operator.RequestError{Field: "item", Value: clip(number, shortText), Reason: "expected the number of a skipped item"}
		}
		s, err := f.Service.Skip(f.r.Context(), n)
		if err != nil {
			return nil, err
		}
		items = append(items, *s)
	}
	return items, nil
}

// check is a dry run of the chosen items.
func (f ofRedrive) check(view *redriveView, items []operator.SkipView) error {
	chosen, err := f.chosen(items)
	if refused, is := err.(*problem); is { //nolint:errorlint // chosen returns it as it is
		f.refused = refused
		return nil
	}
	body := map[string]any{"items": chosen}
	if step := f.values.Get(stepField); step != "" {
		body[stepField] = step
	}
	var plan redrivePlan
	err = f.request(f.r.Context(), operation{"/v1/executions/" + id(f.executionID()) + "/redrive/plan", body}, "", &plan)
	if refused, is := err.(*problem); is { //nolint:errorlint // request returns it as it is
		f.refused = refused
		return nil
	}
	if err != nil {
		return err
	}
	right := 0
	for _, found := range plan.Items {
		at := slices.IndexFunc(view.Items, func(l editLine) bool { return l.ID == strconv.FormatInt(found.ID, 10) })
		if at < 0 {
			continue
		}
		l := &view.Items[at]
		l.Outcome, l.Right = found.Outcome, found.Error == ""
		if l.Right {
			right++
		} else {
			l.Reason = clip(f.masked(strings.TrimSpace(found.Class+" "+found.Error)), lineText)
		}
	}
	view.Checked = fmt.Sprintf("%d of %s would be processed.", right, humanize.Plural(len(plan.Items), "item"))
	return nil
}

// importEdits fills in the items of the page from an export, as skips redrive takes it, and chooses those it has.
func (f ofRedrive) importEdits(items []operator.SkipView) error {
	edits, name, err := f.uploaded()
	if err != nil {
		return err
	}
	var wrong []problemError
	texts := map[string]string{}
	for i := range items {
		s := &items[i]
		edit, has := edits[s.ID]
		if !has {
			continue
		}
		number := strconv.FormatInt(s.ID, 10)
		text, err := f.importedText(s, edit)
		if err != nil {
			wrong = append(wrong, problemError{name + ": item " + number + ": " + err.Error(), "body." + fileField})
		}
		texts[number] = text
	}
	if wrong != nil {
		return fileProblem(wrong)
	}
	for i := range items {
		number := strconv.FormatInt(items[i].ID, 10)
		f.values.Del(useField + number)
		if text, has := texts[number]; has {
			f.values.Set(useField+number, yesValue)
			f.values.Set(textField+number, text)
		}
	}
	f.said = fmt.Sprintf("%s of %s filled in and chosen.", humanize.Plural(len(texts), "item"), name)
	if more := len(edits) - len(texts); more > 0 {
		f.said += fmt.Sprintf(" %s of the file: not on this page.", humanize.Plural(more, "other item"))
	}
	return errShowAgain
}

// importedText is the text of an item in the form: edited or as stored.
func (f ofRedrive) importedText(s *operator.SkipView, edit operator.Edit) (string, error) {
	stored, isItem := storedText(s)
	edited, ofItem := storedText(&operator.SkipView{Raw: edit.Raw, Item: edit.Item})
	switch {
	case edited == "" && edit.Raw == nil || edited == stored:
		return stored, nil
	case ofItem && !isItem:
		return "", errors.New("the form takes its raw text, not an item")
	case isItem && !ofItem:
		return "", errors.New("the form takes the item, not a raw text")
	case !f.isReturned(stored) || !f.isReturned(edited):
		return "", errors.New("a browser cannot return this text unchanged: redrive the file with the command")
	}
	return edited, nil
}

// uploaded are the edits of the chosen file.
func (f ofRedrive) uploaded() (map[int64]operator.Edit, string, error) {
	var file multipart.File
	var header *multipart.FileHeader
	err := http.ErrMissingFile
	if f.r.MultipartForm != nil {
		file, header, err = f.r.FormFile(fileField)
	}
	if err != nil {
		return nil, "", fileProblem([]problemError{{"choose an export to import", "body." + fileField}})
	}
	defer func() { _ = file.Close() }() //nolint:errcheck // it was only read
	name := clip(header.Filename, shortText)
	edits, err := operator.ReadExport(name, file)
	if err == nil {
		return edits, name, nil
	}
	const most = 20
	list := []error{err}
	if joined, is := err.(interface{ Unwrap() []error }); is { //nolint:errorlint // ReadExport joins them
		list = joined.Unwrap()
	}
	var wrong []problemError
	for _, e := range list[:min(len(list), most)] {
		wrong = append(wrong, problemError{e.Error(), "body." + fileField})
	}
	if more := len(list) - most; more > 0 {
		wrong = append(wrong, problemError{fmt.Sprintf("and %d more lines", more), "body." + fileField})
	}
	return nil, name, fileProblem(wrong)
}

func fileProblem(wrong []problemError) error {
	return &problem{Status: http.StatusUnprocessableEntity, Detail: "the file was not imported, and nothing here has changed", Errors: wrong}
}

// exportEdits sends the chosen items as they are typed, as skips redrive takes them.
func (f ofRedrive) exportEdits(items []operator.SkipView) error {
	items = slices.Clone(items)
	edited, err := f.chosen(items)
	if err != nil {
		return err
	}
	var lines []operator.SkipView
	for _, one := range edited {
		at := slices.IndexFunc(items, func(s operator.SkipView) bool { return s.ID == one["id"] })
		s := items[at]
		s.LeftIn, s.Fields, s.MoreFields, s.NoFields = 0, nil, false, ""
		if raw, is := one["raw"].(string); is {
			s.Raw = &raw
		}
		if item, is := one["item"].(json.RawMessage); is {
			s.Item = item
		}
		lines = append(lines, s)
	}
	file := attach(f.visit, fmt.Sprintf("execution-%d-edits.jsonl", f.executionID()), "application/x-ndjson")
	if _, err := file.end(operator.WriteExport(jsonLines(file), lines)); err != nil {
		return err
	}
	return errAnswered
}
