package console

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type skipsView struct {
	head
	Groups  []skipGroup
	Items   []skipLine
	Filters []filterWord
	Next    string
	First   string
	// Elsewhere are other attempts that have some.
	Elsewhere []link
	LeftLink  string
	// ToEdit and Table are downloads; empty without items.
	ToEdit, Table string
}

// skipGroup counts items of one step, phase and class.
type skipGroup struct {
	Step, Phase, Class, Count, Left string
	Link                            string
}

type skipLine struct {
	link
	Step, Phase, Class string
	Place              string
	Error              string
	Item               string
	Redriven           *link
	At                 moment
}

func (v ofExecution) skips() (*page, error) {
	shown, h, err := v.tab("skips", operator.ShowRequest{})
	if err != nil {
		return nil, err
	}
	req := operator.SkipsRequest{
		Execution: shown.ID, Step: v.text("step"), Phase: core.Phase(v.text("phase")), Left: v.text("left") == "true", After: v.key("after"), Limit: pageSize,
	}
	switch req.Phase {
	case "", core.PhaseRead, core.PhaseProcess, core.PhaseWrite:
	default:
		v.mistake("phase", string(req.Phase), "no such phase", string(core.PhaseRead), string(core.PhaseProcess), string(core.PhaseWrite))
		req.Phase = ""
	}
	found, err := v.Service.Skips(v.r.Context(), req)
	if err != nil {
		return nil, err
	}
	explained, err := v.Service.Explain(v.r.Context(), operator.ExplainRequest{Execution: shown.ID})
	if err != nil {
		return nil, err
	}
	view := skipsView{head: h}
	for _, g := range explained.Skipped {
		least := ""
		if g.More {
			least = "at least "
		}
		view.Groups = append(view.Groups, skipGroup{
			clip(g.Step, shortText), string(g.Phase), clip(g.Class, shortText), least + humanize.Count(g.Count), least + humanize.Count(g.Left),
			v.with("step", g.Step, "phase", string(g.Phase), "after", ""),
		})
	}
	for i := range found.Items {
		view.Items = append(view.Items, v.skipLine(&found.Items[i]))
	}
	for _, other := range found.Elsewhere {
		view.Elsewhere = append(view.Elsewhere, link{"execution " + id(other), v.executionLink(other).Href + "/skips"})
	}
	for _, name := range []string{"step", "phase", "left"} {
		if text := v.text(name); text != "" {
			view.Filters = append(view.Filters, filterWord{name + ": " + clip(text, shortText), v.with(name, "", "after", "")})
		}
	}
	if !req.Left {
		view.LeftLink = v.with("left", "true", "after", "")
	}
	if len(view.Groups) > 0 {
		view.ToEdit, view.Table = v.fileLink(shown.ID, "skips.jsonl"), v.fileLink(shown.ID, "skips.csv")
	}
	if found.Next != 0 {
		view.Next = v.with("after", strconv.FormatInt(found.Next, 10))
	}
	if req.After != 0 {
		view.First = v.with("after", "")
	}
	p := tabPage(shown, "skips", view)
	if slices.ContainsFunc(explained.Skipped, func(g operator.SkipCount) bool { return g.Left > 0 }) {
		p.Acts = actingOn(v.visit, "Correct and redrive", "/executions/"+id(shown.ID)+"/redrive")
	}
	return p, nil
}

func (v ofExecution) skipLine(s *operator.SkipView) skipLine {
	l := skipLine{
		link: link{strconv.FormatInt(s.ID, 10), v.Base + "/skips/" + strconv.FormatInt(s.ID, 10)}, Step: clip(s.Step, shortText), Phase: string(s.Phase),
		Class: clip(s.Class, shortText), Place: placeOf(s), Error: clip(v.masked(s.Error), lineText), Item: clip(v.masked(itemOf(s)), lineText), At: v.moment(s.CreatedAt),
	}
	if s.RedrivenBy != 0 {
		l.Redriven = &link{"execution " + id(s.RedrivenBy), v.executionLink(s.RedrivenBy).Href}
	}
	return l
}

// placeOf is where the item is: file, line, element of an array, row.
func placeOf(s *operator.SkipView) string {
	text := clip(s.Path, shortText)
	if s.Line > 0 {
		text += ":" + strconv.FormatInt(s.Line, 10)
	}
	if s.Index > 0 {
		text += " element " + humanize.Count(s.Index)
	}
	if s.Row > 0 {
		text += " row " + humanize.Count(s.Row)
	}
	return text
}

func itemOf(s *operator.SkipView) string {
	switch {
	case s.Raw != nil:
		return *s.Raw
	case len(s.Item) > 0 && string(s.Item) != "null":
		return string(s.Item)
	}
	var raw string // of a line that was too long to be kept whole
	if json.Unmarshal(s.Stored, &raw) == nil {
		return raw
	}
	return string(s.Stored)
}

type skipView struct {
	skipLine
	Execution link
	// Fields of the item, or the columns of the raw line.
	Fields  []paramView
	Columns []columnName
	// Cells are the fields of the raw line; NoCells says why there are none.
	Cells   []cell
	More    bool
	NoCells string
	// Mistake is its field and place.
	Mistake string
	// Raw is the text up to the mistake, Bad the mistake, After the rest.
	Raw, Bad, After string
	Whole           string
	Error           string
	SHA256          string
	Bytes           string
	LeftIn          *link
	// Download is empty if nothing of the item is stored.
	Download string
}

func (v ofExecution) skip() (*page, error) {
	s, err := v.Service.SplitSkip(v.r.Context(), v.number("skip"))
	if err != nil {
		return nil, err
	}
	if s.Raw != nil && v.masked(*s.Raw) != *s.Raw {
		s.HideFields()
	}
	view := skipView{
		skipLine: v.skipLine(s), Execution: link{"execution " + id(s.Execution), v.executionLink(s.Execution).Href}, Error: whole(v.masked(s.Error)), SHA256: s.SHA256,
		Mistake: clip(v.masked(wording.Fault(s.Fault)), lineText),
	}
	view.cells(v, s)
	if s.Raw != nil {
		view.Raw, view.Bad, view.After = v.marked(s)
	}
	if s.Offset != nil && s.Length != nil {
		view.Bytes = humanize.Count(*s.Length) + " bytes at " + humanize.Count(*s.Offset)
	}
	if s.LeftIn != 0 {
		view.LeftIn = &link{"execution " + id(s.LeftIn), v.executionLink(s.LeftIn).Href}
	}
	item := s.Item
	if len(item) == 0 || string(item) == "null" {
		item = s.Stored
	}
	view.Fields = v.fields(item)
	if view.Fields == nil && len(item) > 0 && string(item) != "null" {
		view.Whole = whole(v.masked(string(item)))
	}
	if itemOf(s) != "" {
		view.Download = view.Href + "/item.txt"
	}
	text := "Skipped item " + view.Text
	return &page{Title: text, Heading: text + " of step " + view.Step, Body: view}, nil
}

// cell is a field of a raw line.
type cell struct {
	columnName
	Text string
}

// cells are the fields of the raw line, or else the names of its columns.
func (view *skipView) cells(v ofExecution, s *operator.SkipView) {
	for i, f := range s.Fields {
		if i == shownCells {
			view.More = true
			break
		}
		name := clip(f.Name, shortText)
		if name == "" {
			name = strconv.Itoa(i + 1)
		}
		view.Cells = append(view.Cells, cell{columnName{name, f.Bad}, clip(v.masked(f.Text), lineText)})
	}
	if len(view.Cells) > 0 {
		view.More = view.More || s.MoreFields
		return
	}
	for i, name := range s.Columns[:min(len(s.Columns), longList)] {
		view.Columns = append(view.Columns, columnName{clip(name, shortText), i+1 == s.Column})
	}
	if s.NoFields != "" {
		view.NoCells = clip(v.masked(wording.NoFields(s.NoFields)), lineText)
	}
}

const shownCells = 200

// columnName is the name of a column of a raw line.
type columnName struct {
	Name string
	Bad  bool
}

// marked is the raw text in three parts: the second one is the mistake, if its range is known and a page shows it as it is.
func (v ofExecution) marked(s *operator.SkipView) (before, bad, after string) {
	raw := []rune(*s.Raw)
	text := v.masked(*s.Raw)
	if s.From == nil || s.To == nil || *s.From > *s.To || *s.To > len(raw) || text != *s.Raw || len(text) > wholeText {
		return whole(text), "", ""
	}
	return whole(string(raw[:*s.From])), whole(string(raw[*s.From:*s.To])), whole(string(raw[*s.To:]))
}

// fields are the fields of an object in their order; nil if it is none.
func (v ofExecution) fields(document json.RawMessage) []paramView {
	d := json.NewDecoder(bytes.NewReader(document))
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		return nil
	}
	var list []paramView
	for d.More() && len(list) < longList {
		key, err := d.Token()
		if err != nil {
			return nil
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return nil
		}
		name, _ := key.(string) //nolint:errcheck // keys are texts
		shown := string(value)
		var plain string
		if json.Unmarshal(value, &plain) == nil {
			shown = plain
		}
		list = append(list, paramView{Name: clip(name, shortText), Value: whole(v.masked(shown))})
	}
	return list
}
