package console

import (
	"maps"
	"slices"

	"github.com/surfin-batch/surfin/internal/operator/catalog"
)

// jobsView are the jobs of this server and of the history.
type jobsView struct{ Jobs []jobLine }

// jobLine is a job in the table.
type jobLine struct {
	link
	About string
	// Here: this server may run it. Registered: servers start it by its schedule.
	Here, Registered, Paused bool
	Problem                  string
	Last                     *executionLine
}

func (v ofList) jobs() (*page, error) {
	ctx := v.r.Context()
	history, err := v.Service.Jobs(ctx)
	if err != nil {
		return nil, err
	}
	registered, err := v.Service.Definitions(ctx)
	if err != nil {
		return nil, err
	}
	lines := map[string]*jobLine{}
	of := func(name string) *jobLine {
		if lines[name] == nil {
			lines[name] = &jobLine{link: link{clip(name, shortText), v.jobLink(name)}}
		}
		return lines[name]
	}
	for _, j := range v.Jobs.Jobs() {
		l := of(j.JobName)
		l.Here, l.About, l.Problem = true, clip(j.Description, lineText), clip(v.masked(j.Error), lineText)
	}
	for _, d := range registered {
		l := of(d.Job)
		l.Registered, l.Paused = true, !d.Enabled
	}
	for i := range history {
		last := v.executionLine(&history[i])
		of(history[i].JobName).Last = &last
	}
	var view jobsView
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		view.Jobs = append(view.Jobs, *lines[name])
	}
	return &page{Title: "Jobs", Heading: jobsHeading(view.Jobs), Body: view}, nil
}

func jobsHeading(jobs []jobLine) string {
	wrong := 0
	for _, j := range jobs {
		if j.Problem != "" {
			wrong++
		}
	}
	switch {
	case len(jobs) == 0:
		return "There are no jobs yet"
	case wrong == 1:
		return "Jobs: the file of one of them is not valid"
	case wrong > 1:
		return "Jobs: the files of some of them are not valid"
	}
	return "Jobs and how each ended last"
}

// parameterLine is a declared parameter.
type parameterLine struct {
	Name, Type, About, Default, Allowed string
	Required, Identifying, Secret       bool
}

func parameterLines(d *catalog.JobDescription) []parameterLine {
	var list []parameterLine
	for _, p := range d.Parameters {
		l := parameterLine{Name: clip(p.Name, shortText), Type: string(p.Type), About: clip(p.Description, lineText), Required: p.Required, Identifying: p.Identifying, Secret: p.Secret}
		if p.Default != nil {
			l.Default = clip(*p.Default, shortText)
		}
		l.Allowed = allowedOf(&p)
		list = append(list, l)
	}
	return list
}

func allowedOf(p *catalog.ParameterDescription) string {
	text := ""
	add := func(word string) {
		if text != "" {
			text += ", "
		}
		text += word
	}
	for _, one := range p.Enum {
		add(clip(one, shortText))
	}
	if p.Min != nil {
		add("from " + *p.Min)
	}
	if p.Max != nil {
		add("up to " + *p.Max)
	}
	if p.Pattern != "" {
		add("pattern " + clip(p.Pattern, shortText))
	}
	return text
}
