package console

import (
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/url"
	"slices"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/jobfile/outline"
	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/picture"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/smallfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type jobView struct {
	Name, About string
	// Here: this server may run it.
	Here        bool
	Incrementer string
	Summary     *jobLine
	Runs        executionTable
	// Next is how the newest execution continues, and Effect leads to the effect of a restart.
	Newest      *link
	Next        []command
	Effect      string
	All         string
	Flow        template.HTML
	Outline     []outlineLine
	FlowProblem string
	Parameters  []parameterLine
	Mistakes    []string
	Files       []fileView
	Schedule    *scheduleLine
	Registered  *definitionLine
	Trend       *trendView
	Calendar    *calendarView
}

func (v ofJob) job() (*page, error) {
	name := v.r.PathValue("job")
	ctx := v.r.Context()
	const most = 20
	runs, err := v.Service.List(ctx, operator.ListRequest{Job: name, Limit: most, FailedSteps: true})
	if err != nil {
		return nil, err
	}
	view := jobView{Name: clip(name, lineText), Runs: v.executionTable(runs.Executions), All: v.Base + "/executions?job=" + query(name)}
	if len(runs.Executions) > 0 && runs.Executions[0].Status != core.StatusCompleted {
		v.next(&view, &runs.Executions[0])
	}
	summary, err := v.Service.JobSummaries(ctx, operator.JobsRequest{Job: name, Catalog: v.Jobs})
	if err != nil {
		return nil, err
	}
	for i := range summary.Jobs {
		line := v.jobLine(&summary.Jobs[i])
		view.Summary = &line
	}
	file, wrong := v.Jobs.File(name)
	switch {
	case wrong == nil:
		v.describe(&view, file)
	case errors.Is(wrong, ports.ErrNoSuchJob):
		if err := v.foreignJob(name, len(runs.Executions) > 0); err != nil {
			return nil, err
		}
	default:
		view.Here, view.Mistakes, view.Files = true, v.mistakes(wrong), v.wrongFiles(wrong)
	}
	if view.Trend, err = v.trend(name); err != nil {
		return nil, err
	}
	if view.Calendar, err = v.calendar(name, file); err != nil {
		return nil, err
	}
	if err := v.schedulesOf(&view, name); err != nil {
		return nil, err
	}
	if err := v.jobFlow(&view, name, file); err != nil {
		return nil, err
	}
	p := &page{Title: view.Name + ": job", Heading: jobHeading(&view, runs.Executions), Body: view}
	if wrong == nil {
		of := "/jobs/" + url.PathEscape(name)
		p.Acts = actingOn(v.visit, "Run it", of+"/run", "Register it", of+"/register")
	}
	return p, nil
}

func (v ofJob) next(view *jobView, newest *operator.Execution) {
	of := v.executionLink(newest.ID)
	view.Newest, view.Effect = &link{headingOf(newest), of.Href}, effectOf(v.visit, newest.Actions)
	for i, h := range v.Commands.NextHints(newest.Actions) {
		view.Next = append(view.Next, command{0, h.Label, v.masked(h.Text), "", targetOf(v.visit, newest.Actions[i])})
	}
}

func jobHeading(view *jobView, runs []operator.Execution) string {
	text := "Job " + view.Name
	switch {
	case len(view.Mistakes) > 0:
		return text + ": its file is not valid"
	case len(runs) == 0:
		return text + " has never run"
	}
	completed := 0
	for i := range runs {
		if runs[i].Status == core.StatusCompleted {
			completed++
		}
	}
	if len(runs) == 1 {
		return fmt.Sprintf("%s ran once, and %s", text, stateOf(runs[0].Status).says)
	}
	return fmt.Sprintf("%s: %d of the last %s completed", text, completed, humanize.Plural(len(runs), "run"))
}

// foreignJob is a job that this server may not run. It has a page if the history or the register knows it.
func (v ofJob) foreignJob(name string, ran bool) error {
	if ran {
		return nil
	}
	registered, err := v.Service.Definitions(v.r.Context())
	if err != nil || slices.ContainsFunc(registered, func(d operator.DefinitionView) bool { return d.Job == name }) {
		return err
	}
	history, err := v.Service.Jobs(v.r.Context())
	if err != nil {
		return err
	}
	names := v.Jobs.Names()
	for i := range history {
		names = append(names, history[i].JobName)
	}
	none := &missing{what: "There is no job " + clip(name, shortText) + "."}
	if near := nearest.Name(name, names); near != "" {
		none.near = append(none.near, link{"job " + clip(near, shortText), v.jobLink(near)})
	}
	none.near = append(none.near, link{"all jobs", v.Base + "/jobs"})
	return none
}

func (v ofJob) describe(view *jobView, file *jobfile.File) {
	view.Here = true
	if d, err := v.Jobs.Job(file.Name()); err == nil {
		view.About, view.Incrementer, view.Parameters = whole(d.Description), d.Incrementer, parameterLines(d)
	}
	definition := file.Definition()
	view.Files = append(view.Files, v.file(core.DefinitionFile{Name: definition.Path, Text: definition.Text}, nil))
	for _, f := range definition.Files {
		view.Files = append(view.Files, v.file(f, nil))
	}
}

// wrongFiles are the files with mistakes as they are now, each mistake at its line.
func (v ofJob) wrongFiles(wrong error) []fileView {
	var problems jobfile.Problems
	if !errors.As(wrong, &problems) {
		return nil
	}
	marks := map[string][]mark{}
	for _, p := range problems {
		if p.File != "" {
			marks[p.File] = append(marks[p.File], mark{file: p.File, first: p.Line, last: p.Line, class: "failed", notes: []string{v.masked(p.Msg + " " + p.Hint)}})
		}
	}
	var list []fileView
	for _, path := range slices.Sorted(maps.Keys(marks)) {
		if text, err := smallfile.Read(path); err == nil {
			list = append(list, v.file(core.DefinitionFile{Name: path, Path: path, Text: string(text)}, marks[path]))
		}
	}
	return list
}

func (v ofJob) jobFlow(view *jobView, name string, file *jobfile.File) error {
	if len(view.Mistakes) > 0 {
		return nil
	}
	f, err := v.Service.JobFlow(v.r.Context(), name, file)
	if refused, is := errors.AsType[*operator.Refusal](err); is {
		view.FlowProblem = v.masked(refused.Error())
		return nil
	}
	if err != nil {
		if file == nil && !v.isAway(err) { // the file of a job of the history is gone
			view.FlowProblem = v.masked(err.Error())
			return nil
		}
		return err
	}
	nodes := v.plainNodes(view, f.Flow, 0)
	nodes = append(nodes, v.plainNodes(view, f.Finally, 0)...)
	view.Flow = template.HTML(picture.Flow("The flow of job "+name, nodes, false)) //nolint:gosec // the picture escapes its texts
	return nil
}

func (v ofJob) plainNodes(view *jobView, list []outline.Element, depth int) []picture.Node {
	nodes := make([]picture.Node, 0, len(list))
	for i := range list {
		e := &list[i]
		l := outlineLine{Depth: depth, Name: e.Name, Kind: kindOfElement(e)}
		n := picture.Node{ID: e.Name, Title: e.Name, Note: kindOfElement(e), Class: string(e.Kind)}
		for _, to := range e.Next {
			drawn := edgeOf(to)
			n.Edges, l.Leads = append(n.Edges, drawn), append(l.Leads, leads(drawn))
		}
		view.Outline = append(view.Outline, l)
		for _, inner := range e.Flows {
			n.Flows = append(n.Flows, v.plainNodes(view, inner, depth+1))
		}
		nodes = append(nodes, n)
	}
	return nodes
}
