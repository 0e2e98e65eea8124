package console

import (
	"cmp"
	"html/template"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/jobfile/outline"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/picture"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type outlineLine struct {
	Depth  int
	Name   string
	Kind   string
	Status statusView
	Note   string
	Leads  []string
	Link   string
}

type elementView struct {
	outlineLine
	Place      string
	PlaceLink  string
	Components []string
	When       string
	Expect     string
	Steps      []stepLine
	Visits     []visitLine
	// Error is the error of its step, as a whole.
	Error string
	// Out are the values that it handed on.
	Out []paramView
}

type visitLine struct {
	Attempt  string
	Kind     string
	Status   statusView
	Verdict  string
	Target   string
	Round    string
	Started  moment
	Finished moment
}

// flow draws the flow of an execution, and fills in the selected element.
func (v ofExecution) flow(view *executionView, all *operator.Inspection) {
	f := all.Flow
	if f.Problem != "" {
		view.FlowProblem = v.masked(f.Problem)
		return
	}
	d := newDrawing(v.visit, f, all.Explanation)
	nodes := d.nodes(f.Flow, 0)
	if len(f.Finally) > 0 {
		nodes = append(nodes, d.nodes(f.Finally, 0)...)
	}
	drawn := picture.Flow("The flow of job "+f.JobName, nodes, true)
	view.Flow, view.Wide = template.HTML(drawn), widthOf(drawn) > columnWidth //nolint:gosec // the picture escapes its texts
	view.Outline = d.lines
	if name := v.text("element"); name != "" {
		view.Element = v.element(d, f, name, view.Steps)
		if view.Element == nil {
			v.mistake("element", name, "this flow has no such element")
		}
	}
}

const columnWidth = 540

// widthOf is the width of a picture.
func widthOf(drawn string) int {
	_, rest, _ := strings.Cut(drawn, ` width="`)
	text, _, _ := strings.Cut(rest, `"`)
	width, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return width
}

// drawing makes the picture of a flow and the list of its elements.
type drawing struct {
	*visit
	f *operator.ExecutionFlow
	// last is the newest visit of each element, steps its newest step.
	last  map[string]*operator.FlowVisit
	steps map[string]*operator.StepView
	taken map[[2]string]bool
	// ended are the elements after which their flow ended.
	ended map[string]*operator.FlowVisit
	lines []outlineLine
	found map[string]*outline.Element
}

func newDrawing(v *visit, f *operator.ExecutionFlow, explained *operator.Explanation) *drawing {
	d := &drawing{
		visit: v, f: f, last: map[string]*operator.FlowVisit{}, steps: map[string]*operator.StepView{}, taken: map[[2]string]bool{},
		ended: map[string]*operator.FlowVisit{}, found: map[string]*outline.Element{},
	}
	for i := range explained.Steps {
		d.steps[elementOf(&explained.Steps[i])] = &explained.Steps[i]
	}
	flows := map[string]*operator.FlowVisit{}
	for i := range f.Visits {
		at := &f.Visits[i]
		if before := flows[at.Flow]; before != nil && before.Execution == at.Execution {
			d.taken[[2]string{before.Element, at.Element}] = true
		}
		flows[at.Flow], d.last[at.Element] = at, at
	}
	for _, at := range flows {
		d.ended[at.Element] = at
	}
	return d
}

func (d *drawing) nodes(list []outline.Element, depth int) []picture.Node {
	nodes := make([]picture.Node, 0, len(list))
	for i := range list {
		e := &list[i]
		d.found[e.Name] = e
		line := d.line(e, depth)
		d.lines = append(d.lines, line)
		n := picture.Node{ID: e.Name, Title: strings.TrimSpace(d.mark(e) + " " + e.Name), Note: line.Note, Class: string(e.Kind) + " " + line.Status.Class, Link: line.Link}
		for _, to := range e.Next {
			n.Edges = append(n.Edges, d.edge(e, to))
		}
		for _, inner := range e.Flows {
			n.Flows = append(n.Flows, d.nodes(inner, depth+1))
		}
		nodes = append(nodes, n)
	}
	return nodes
}

func (d *drawing) mark(e *outline.Element) string {
	if at := d.last[e.Name]; at != nil && at.Status != "" {
		return stateOf(at.Status).mark
	}
	return ""
}

func (d *drawing) line(e *outline.Element, depth int) outlineLine {
	l := outlineLine{Depth: depth, Name: e.Name, Kind: kindOfElement(e), Link: d.with("element", e.Name) + "#element", Status: statusView{Class: "todo", Word: "not reached"}}
	words := []string{}
	if at := d.last[e.Name]; at != nil {
		switch {
		case at.Status != "":
			l.Status = status(at.Status)
			words = append(words, string(at.Status))
		case at.Verdict != "":
			l.Status = statusView{"decided", "decided"}
			words = append(words, at.Verdict)
		default:
			l.Status = statusView{"visited", "decided"}
			words = append(words, string(at.Kind))
		}
		if at.Round > 0 {
			words = append(words, "round "+strconv.Itoa(at.Round))
		}
	} else {
		words = append(words, l.Kind)
	}
	if s := d.steps[e.Name]; s != nil {
		words = append(words, d.counters(s)...)
	}
	l.Note = strings.Join(words, " · ")
	for _, to := range e.Next {
		l.Leads = append(l.Leads, leads(d.edge(e, to)))
	}
	return l
}

// counters of a node are its rows, or its parts if it has any, and its duration.
func (d *drawing) counters(s *operator.StepView) []string {
	var words []string
	switch {
	case s.Partitions != nil:
		words = append(words, humanize.Count(s.Partitions.Statuses[core.StatusCompleted])+" of "+wording.Parts(s.Partitions, s.Partitions.Total))
	case s.Written > 0:
		words = append(words, humanize.Count(s.Written)+" written")
	case s.Read > 0:
		words = append(words, wording.Read(s)+" read")
	}
	if s.Skipped > 0 {
		words = append(words, humanize.Count(s.Skipped)+" skipped")
	}
	if s.Duration > 0 {
		words = append(words, humanize.Seconds(s.Duration))
	}
	return words
}

func kindOfElement(e *outline.Element) string {
	words := []string{string(e.Kind)}
	if e.Work != "" {
		words = []string{e.Work}
	}
	if e.OnWorkers {
		words = append(words, "on workers")
	}
	return strings.Join(words, ", ")
}

// edge is a transition. An end is taken if the element was the last of its flow, and its exit code fits.
func (d *drawing) edge(from *outline.Element, to outline.Edge) picture.Edge {
	e := edgeOf(to)
	if to.Kind == model.TargetElement {
		e.Taken = d.taken[[2]string{from.Name, to.Element}]
		return e
	}
	if at := d.ended[from.Name]; at != nil && d.f.Status.IsOver() {
		e.Taken = model.MatchPattern(to.On, cmp.Or(at.Verdict, at.Exit)) && (to.On != "*" || at.Status == core.StatusCompleted)
	}
	return e
}

func edgeOf(to outline.Edge) picture.Edge {
	e := picture.Edge{To: to.Element}
	if to.When != "" {
		e.Label = to.When
	} else if !to.Default {
		e.Label = to.On
	}
	if to.Kind != model.TargetElement {
		e.To, e.End = "", strings.TrimSpace(string(to.Kind)+" "+to.Exit)
	}
	return e
}

// leads is an edge in words.
func leads(e picture.Edge) string {
	return strings.TrimPrefix(e.Label+": ", ": ") + cmp.Or(e.To, e.End)
}

func (v ofExecution) element(d *drawing, f *operator.ExecutionFlow, name string, steps []stepLine) *elementView {
	of := d.found[name]
	if of == nil {
		return nil
	}
	view := &elementView{Place: of.Place.Text, When: v.masked(of.When), Expect: v.masked(of.Expect)}
	for _, l := range d.lines {
		if l.Name == name {
			view.outlineLine = l
		}
	}
	if of.Place.Line > 0 {
		view.PlaceLink = v.executionLink(f.Execution).Href + "/definition?element=" + query(name) + "#at"
	}
	for _, c := range of.Components {
		view.Components = append(view.Components, string(c.Kind)+" "+c.Name)
	}
	if s := d.steps[name]; s != nil {
		view.Error, view.Out = whole(v.masked(s.Error)), valuesOf(v.visit, s.Out, func(text string) string { return clip(text, lineText) })
	}
	for i := range steps {
		if steps[i].Name == clip(name, shortText) {
			view.Steps = append(view.Steps, steps[i])
		}
	}
	for i := range f.Visits {
		if f.Visits[i].Element == name && len(view.Visits) < longList {
			view.Visits = append(view.Visits, v.visitLine(&f.Visits[i]))
		}
	}
	return view
}

func (v ofExecution) visitLine(at *operator.FlowVisit) visitLine {
	l := visitLine{
		Attempt: strconv.Itoa(at.Attempt), Kind: string(at.Kind), Verdict: clip(v.masked(at.Verdict), shortText), Target: clip(at.Target, shortText),
		Started: v.moment(at.Started), Finished: v.moment(at.Ended),
	}
	if at.Status != "" {
		l.Status = status(at.Status)
	}
	if at.Round > 0 {
		l.Round = strconv.Itoa(at.Round)
	}
	return l
}
