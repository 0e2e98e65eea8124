package console

import (
	"errors"
	"html/template"
	"net/url"
	"time"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/picture"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type weekView struct {
	Name, Previous, Later string
	// Today leads to the current week, if this is another one.
	Today   string
	Picture template.HTML
	Lanes   []weekLine
	Changes []string
}

type weekLine struct {
	Job  link
	Does string
}

// week is the week that the address names. A wrong one is named, and the current one is shown.
func (v ofJob) week() (*operator.ScheduleWeek, error) {
	req := operator.WeekRequest{Week: v.text("week"), Zone: v.zone, After: v.text("after")}
	w, err := v.Service.ScheduleWeek(v.r.Context(), req)
	if wrong := (*operator.RequestError)(nil); errors.As(err, &wrong) && wrong.Field == "week" {
		v.mistake("week", req.Week, wrong.Reason)
		req.Week = ""
		w, err = v.Service.ScheduleWeek(v.r.Context(), req)
	}
	return w, err
}

func (v ofJob) weekView(w *operator.ScheduleWeek) weekView {
	view := weekView{Name: w.Week, Previous: v.with("week", w.Previous), Later: v.with("week", w.Later)}
	if !w.Current {
		view.Today = v.with("week", "")
	}
	axis := picture.Axis{From: w.From, To: w.To, Now: w.At}
	for _, d := range w.Days {
		tick := picture.Tick{At: d.From, Text: d.From.Format("Mon 2 Jan"), Strong: true}
		if text := wording.ShortDay(d); text != "" {
			view.Changes = append(view.Changes, text)
		}
		axis.Ticks = append(axis.Ticks, tick)
	}
	var lanes []picture.Lane
	for i := range w.Schedules {
		s := &w.Schedules[i]
		lanes = append(lanes, v.weekLane(s, w))
		view.Lanes = append(view.Lanes, weekLine{link{clip(s.Job, shortText), v.timesLink(s.Job)}, v.masked(wording.WeekSchedule(s))})
	}
	if len(lanes) > 0 {
		view.Picture = template.HTML(picture.Calendar("Week "+w.Week+" of "+humanize.Plural(len(lanes), "schedule"), timelineWidth, lanes, axis)) //nolint:gosec // the picture escapes its texts
	}
	return view
}

func (v ofJob) timesLink(job string) string { return v.Base + "/schedules/" + url.PathEscape(job) }

func (v ofJob) weekLane(s *operator.WeekSchedule, w *operator.ScheduleWeek) picture.Lane {
	lane := picture.Lane{Name: clip(s.Job, shortText), Class: "job", Link: v.timesLink(s.Job)}
	if s.More {
		lane.Spans = []picture.Span{{Begin: s.Times[0].At, End: w.To, Class: "planned many", Text: "> " + humanize.Count(len(s.Times)), Title: wording.WeekSchedule(s)}}
		return lane
	}
	for i := range s.Times {
		t := &s.Times[i]
		span := plannedSpan(v.visit, t.ScheduledTime, timeStatus(t).Class, s.Usual)
		span.Text, span.Title = timeMark(t), v.moment(t.At).Text+": "+v.masked(t.Text)
		switch t.Outcome {
		case operator.TimeStarted:
			span.Begin, span.End, span.Link = t.Started, t.Ended, v.executionLink(t.Execution).Href
		case operator.TimePlanned:
			span.Class = "planned"
		case operator.TimeDue, operator.TimeWaiting, operator.TimeNotRun, operator.TimeLeftOut, operator.TimeMissed, operator.TimeDisabled, operator.TimeUnknown:
		}
		lane.Spans = append(lane.Spans, span)
	}
	return lane
}

type timesView struct {
	Job      link
	Schedule scheduleLine
	Usual    string
	Disabled bool
	// None is why there are no times.
	None   string
	Coming []timeLine
	Past   []timeLine
	Since  moment
	Newest string
	Older  string
	Zone   string
}

type timeLine struct {
	scheduledTime
	Status  statusView
	Says    string
	Started moment
	Late    string
	Run     *link
	Took    string
	Reason  string
}

func (v ofJob) times() (*page, error) {
	name := v.r.PathValue("job")
	before := ofList(v).time("before")
	s, err := v.Service.ScheduleTimes(v.r.Context(), operator.ScheduleTimesRequest{Job: name, Before: before})
	if errors.Is(err, ports.ErrNoSuchJob) || isNoSchedule(err) {
		return v.noTimes(name)
	}
	if err != nil {
		return nil, err
	}
	wording.ScheduleTimes(s)
	view := timesView{
		Job: link{clip(name, shortText), v.jobLink(name)}, Disabled: !s.Enabled, Since: v.moment(s.Since), Zone: s.Timezone,
		Schedule: v.scheduleLine(&operator.ScheduleView{Job: s.Job, Enabled: s.Enabled, Schedule: s.Schedule, Error: s.Error}),
	}
	if s.Usual > 0 {
		view.Usual = humanize.Seconds(s.Usual)
	}
	for i := range s.Coming {
		view.Coming = append(view.Coming, v.timeLine(&s.Coming[i], s.At))
	}
	for i := range s.Past {
		view.Past = append(view.Past, v.timeLine(&s.Past[i], s.At))
	}
	if !s.Next.IsZero() {
		view.Older = v.with("before", s.Next.Format(time.RFC3339Nano))
	}
	if !before.IsZero() {
		view.Newest = v.with("before", "")
	}
	of := "/schedules/" + url.PathEscape(name)
	verb, act := "Pause", "/pause"
	if view.Disabled {
		verb, act = "Resume", "/resume"
	}
	acts := actingOn(v.visit, "Run it", of+"/run", verb, of+act)
	return &page{Title: view.Job.Text + ": schedule", Heading: "Schedule of job " + view.Job.Text + timesHeading(s), Body: view, Live: "execution,schedule,task", Acts: acts}, nil
}

func timesHeading(s *operator.ScheduleTimes) string {
	switch {
	case s.Error != "":
		return ": this program does not understand it"
	case !s.Enabled:
		return " is disabled"
	case len(s.Coming) > 0:
		return ": next in " + humanize.Duration(s.Coming[0].At.Sub(s.At))
	}
	return ""
}

func isNoSchedule(err error) bool {
	var wrong *operator.RequestError
	return errors.As(err, &wrong) && wrong.Field == "job"
}

// noTimes is the page of a job without a schedule.
func (v ofJob) noTimes(name string) (*page, error) {
	runs, err := v.Service.List(v.r.Context(), operator.ListRequest{Job: name, Limit: 1})
	if err != nil {
		return nil, err
	}
	_, wrong := v.Jobs.File(name)
	if err := v.foreignJob(name, len(runs.Executions) > 0 || !errors.Is(wrong, ports.ErrNoSuchJob)); err != nil {
		return nil, err
	}
	text := clip(name, shortText)
	return &page{Title: text + ": schedule", Heading: "Job " + text + " has no schedule", Body: timesView{
		Job: link{text, v.jobLink(name)}, None: "It is not registered with a schedule, so no worker starts it by itself.",
	}}, nil
}

func (v ofJob) timeLine(t *operator.PlannedTime, now time.Time) timeLine {
	l := timeLine{scheduledTime: v.scheduledTime(t.ScheduledTime), Status: timeStatus(t), Says: v.masked(t.Text), Started: v.moment(t.Started), Reason: clip(v.masked(t.Reason), lineText)}
	if t.Late > 0 {
		l.Late = humanize.Seconds(t.Late)
	}
	if t.Execution != 0 {
		to := v.executionLink(t.Execution)
		l.Run = &to
		l.Took = humanize.Duration(cmpTime(t.Ended, now).Sub(t.Started))
	}
	return l
}

// timeStatus is the outcome of a scheduled time as a shape and a word.
func timeStatus(t *operator.PlannedTime) statusView {
	switch t.Outcome {
	case operator.TimeStarted:
		return status(t.Status)
	case operator.TimePlanned:
		return statusView{wording.Outcome(t.Outcome), "todo"}
	case operator.TimeDue, operator.TimeWaiting:
		return statusView{wording.Outcome(t.Outcome), "parked"}
	case operator.TimeNotRun:
		return statusView{wording.Outcome(t.Outcome), stateOf(core.StatusFailed).class}
	case operator.TimeMissed, operator.TimeLeftOut:
		return statusView{wording.Outcome(t.Outcome), "warn"}
	case operator.TimeDisabled:
		return statusView{wording.Outcome(t.Outcome), "stopped"}
	case operator.TimeUnknown:
		return statusView{wording.Outcome(t.Outcome), "none"}
	}
	return statusView{wording.Outcome(t.Outcome), "none"}
}

// timeMark is the shape of a status in a picture.
func timeMark(t *operator.PlannedTime) string {
	switch t.Outcome {
	case operator.TimeStarted:
		return stateOf(t.Status).mark
	case operator.TimeNotRun:
		return "✕"
	case operator.TimeDue, operator.TimeWaiting:
		return "‖"
	case operator.TimeMissed, operator.TimeLeftOut:
		return "!"
	case operator.TimeDisabled:
		return "■"
	case operator.TimePlanned, operator.TimeUnknown:
	}
	return ""
}
