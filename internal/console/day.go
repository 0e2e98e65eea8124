package console

import (
	"html/template"
	"time"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/picture"
	"github.com/surfin-batch/surfin/internal/wording"
)

type dayView struct {
	Picture template.HTML
	// Cut names the omitted jobs and executions.
	Cut      string
	Jobs     []dayLine
	Problems []dayProblem
}

type dayLine struct {
	Job    link
	Does   string
	Last   *jobRun
	Next   *scheduledTime
	Usual  string
	Status statusView
}

type dayProblem struct {
	Job  link
	Text string
}

func (v ofList) day() (dayView, error) {
	d, err := v.Service.Day(v.r.Context(), operator.DayRequest{})
	if err != nil {
		return dayView{}, err
	}
	view := dayView{Cut: wording.Day(d)}
	var lanes []picture.Lane
	for i := range d.Jobs {
		j := &d.Jobs[i]
		lanes = append(lanes, v.dayLane(j, d))
		view.Jobs = append(view.Jobs, v.dayLine(j))
	}
	for job, text := range d.Problems {
		view.Problems = append(view.Problems, dayProblem{link{clip(job, shortText), v.jobLink(job)}, clip(v.masked(text), lineText)})
	}
	if len(lanes) > 0 {
		axis := picture.Axis{From: d.From, To: d.To, Now: d.At, Ticks: picture.HourTicks(d.From, d.To, v.zone, 3)}
		view.Picture = template.HTML(picture.Calendar("The last 24 hours and the next 12 of "+humanize.Plural(len(lanes), "job"), timelineWidth, lanes, axis)) //nolint:gosec // the picture escapes its texts
	}
	return view, nil
}

func (v ofList) dayLane(j *operator.DayJob, d *operator.Day) picture.Lane {
	lane := picture.Lane{Name: clip(j.Job, shortText), Class: "job", Link: v.jobLink(j.Job)}
	for i := range j.Runs {
		r := &j.Runs[i]
		s := stateOf(r.Status)
		span := picture.Span{Begin: r.Started, End: r.Ended, Class: s.class, Text: s.mark, Link: v.executionLink(r.Execution).Href, Title: runTitle(v.visit, r, d.At)}
		if r.Count > 1 {
			span.Class += " many"
			span.Text = humanize.Count(r.Count)
			span.Link = v.Base + "/executions?job=" + query(j.Job) + "&statuses=" + string(r.Status) + "&ended_since=" + query(r.Started.Format(time.RFC3339))
		}
		lane.Spans = append(lane.Spans, span)
	}
	if j.MorePlanned {
		text := wording.DayJob(j)
		lane.Spans = append(lane.Spans, picture.Span{Begin: j.Planned[0].At, End: d.To, Class: "planned many", Text: "> " + humanize.Count(len(j.Planned)), Title: text})
		return lane
	}
	for _, t := range j.Planned {
		lane.Spans = append(lane.Spans, plannedSpan(v.visit, t, "planned", j.Usual))
	}
	return lane
}

func runTitle(v *visit, r *operator.DayRun, now time.Time) string {
	took := humanize.Duration(max(0, now.Sub(r.Started))) + " so far"
	if !r.Ended.IsZero() {
		took = humanize.Duration(r.Ended.Sub(r.Started))
	}
	if r.Count > 1 {
		return humanize.Plural(r.Count, "execution") + " " + string(r.Status) + ", " + v.moment(r.Started).Text + " to " + v.moment(r.Ended).Text
	}
	return "execution " + id(r.Execution) + ": " + string(r.Status) + ", " + v.moment(r.Started).Text + ", " + took
}

// plannedSpan is as wide as the run usually takes.
func plannedSpan(v *visit, t operator.ScheduledTime, class string, usual float64) picture.Span {
	s := picture.Span{Begin: t.At, End: t.At.Add(time.Duration(usual * float64(time.Second))), Class: class, Title: "planned: " + v.moment(t.At).Text}
	if usual > 0 {
		s.Title += ", usually " + humanize.Seconds(usual)
	}
	return s
}

func (v ofList) dayLine(j *operator.DayJob) dayLine {
	l := dayLine{Job: link{clip(j.Job, shortText), v.jobLink(j.Job)}, Does: wording.DayJob(j)}
	if n := len(j.Runs); n > 0 {
		r := &j.Runs[n-1]
		l.Last = &jobRun{v.executionLink(r.Execution), status(r.Status), v.moment(r.Started), ""}
		if !r.Ended.IsZero() {
			l.Last.Took = humanize.Duration(r.Ended.Sub(r.Started))
		}
		l.Status = l.Last.Status
	}
	if len(j.Planned) > 0 {
		next := ofJob(v).scheduledTime(j.Planned[0])
		l.Next = &next
	}
	if j.Usual > 0 {
		l.Usual = humanize.Seconds(j.Usual)
	}
	return l
}
