package console

import (
	"html/template"
	"math"
	"slices"
	"strconv"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/operator/catalog"
	"github.com/surfin-batch/surfin/internal/picture"
	"github.com/surfin-batch/surfin/internal/wording"
)

type jobsView struct {
	Jobs []jobLine
	Next string
}

type jobLine struct {
	link
	// Here: this server may run it.
	Here, Registered, Paused bool
	Problem                  string
	Last                     *jobRun
	Strip                    template.HTML
	Success                  string
	Median, Slowest          string
	Rows                     string
	Next                     *scheduledTime
	Left                     string
	LeftLink                 string
}

type jobRun struct {
	link
	Status  statusView
	Started moment
	Took    string
}

func (v ofList) jobs() (*page, error) {
	found, err := v.Service.JobSummaries(v.r.Context(), operator.JobsRequest{After: v.text("after"), Limit: pageSize, Catalog: v.Jobs})
	if err != nil {
		return nil, err
	}
	var view jobsView
	for i := range found.Jobs {
		view.Jobs = append(view.Jobs, v.jobLine(&found.Jobs[i]))
	}
	if found.Next != "" {
		view.Next = v.with("after", found.Next)
	}
	return &page{Title: "Jobs", Heading: jobsHeading(view.Jobs), Body: view, Live: "execution,schedule"}, nil
}

func (v *visit) jobLine(j *operator.JobSummary) jobLine {
	l := jobLine{
		link: link{clip(j.Job, shortText), v.jobLink(j.Job)}, Here: j.Runnable, Registered: slices.Contains(j.Sources, operator.JobRegistered), Paused: j.Paused,
		Strip: v.strip(j.Last),
	}
	if len(j.Problems) > 0 {
		l.Problem = clip(v.masked(wording.FileProblem(j.Problems[0])), lineText)
	}
	if j.ScheduleProblem != "" {
		l.Problem = clip(v.masked(j.ScheduleProblem), lineText)
	}
	if len(j.Last) > 0 {
		run := j.Last[0]
		l.Last = &jobRun{v.executionLink(run.Execution), status(run.Status), v.moment(run.Started), humanize.Seconds(run.Duration)}
	}
	if j.SuccessRate != nil {
		l.Success = strconv.Itoa(int(math.Round(*j.SuccessRate*100))) + "%"
	}
	if d := j.Duration; d != nil {
		l.Median, l.Slowest = humanize.Seconds(d.Median), wording.Within(d, humanize.Seconds)
	}
	if r := j.Rows; r != nil {
		l.Rows = humanize.Count(int64(r.Median))
	}
	if j.Next != nil {
		next := ofJob{v}.scheduledTime(*j.Next)
		l.Next = &next
	}
	if j.SkipsLeft > 0 {
		l.Left = humanize.Count(j.SkipsLeft)
		if j.MoreSkips {
			l.Left = "more than " + l.Left
		}
	}
	return l
}

// strip draws the last runs, the oldest first: the height is the duration.
func (v *visit) strip(runs []operator.RunSummary) template.HTML {
	if len(runs) == 0 {
		return ""
	}
	var bars []picture.Bar
	for _, e := range slices.Backward(runs) {
		s := stateOf(e.Status)
		bars = append(bars, picture.Bar{
			Value: e.Duration, Class: s.class, Mark: s.mark, Link: v.executionLink(e.Execution).Href,
			Title: "Execution " + id(e.Execution) + ": " + string(e.Status) + ", " + humanize.Seconds(e.Duration) + ", " + v.moment(e.Started).Text,
		})
	}
	return template.HTML(picture.Strip("The last runs, oldest first", bars)) //nolint:gosec // the picture escapes its texts
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
	return "Jobs and their last runs"
}

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
