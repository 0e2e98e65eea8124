package console

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
)

type schedulesView struct {
	Week        weekView
	Schedules   []scheduleLine
	Definitions []definitionLine
	// Older are the next schedules by name, Newest the first ones.
	Older, Newest string
	// NoLeader: no worker is alive, so nothing is started.
	NoLeader bool
	Leader   leaderView
}

type scheduleLine struct {
	Job      link
	Disabled bool
	Times    string // the address of its times
	Cron     string
	Zone     string
	CatchUp  string
	Overlap  string
	Calendar string
	Next     []scheduledTime
	Due      []scheduledTime
	Missed   string
	Decided  moment
	Error    string
}

// First is the first one of the next times.
func (l scheduleLine) First() *scheduledTime {
	if len(l.Next) == 0 {
		return nil
	}
	return &l.Next[0]
}

type scheduledTime struct {
	moment
	// Own is in the schedule's zone, In is how long it takes until then.
	Own, In string
}

type definitionLine struct {
	Job     link
	Times   string // the address of its times
	Enabled bool
	Version string
	File    string
	Updated moment
	By      string
	// HasTimes: it has a schedule.
	HasTimes bool
	Budget   string
	Error    string
}

func (v ofJob) schedules() (*page, error) {
	ctx := v.r.Context()
	list, err := v.Service.Schedules(ctx, operator.SchedulesRequest{})
	if err != nil {
		return nil, err
	}
	week, err := v.week()
	if err != nil {
		return nil, err
	}
	registered, err := v.Service.Definitions(ctx)
	if err != nil {
		return nil, err
	}
	view := schedulesView{Week: v.weekView(wording.ScheduleWeek(week))}
	for i := range list {
		if slices.ContainsFunc(week.Schedules, func(s operator.WeekSchedule) bool { return s.Job == list[i].Job }) {
			view.Schedules = append(view.Schedules, v.scheduleLine(&list[i]))
		}
	}
	if week.Next != "" {
		view.Older = v.with("after", week.Next)
	}
	if v.text("after") != "" {
		view.Newest = v.with("after", "")
	}
	for i := range registered {
		view.Definitions = append(view.Definitions, v.definitionLine(&registered[i]))
	}
	if view.Leader, err = leaderNow(v.visit); err != nil {
		return nil, err
	}
	active := 0
	for i := range list {
		if list[i].Enabled {
			active++
		}
	}
	heading := humanize.Plural(active, "schedule") + " active"
	if active == 0 {
		heading = "No schedule is active"
	} else {
		alive, err := v.workerLives()
		if err != nil {
			return nil, err
		}
		if view.NoLeader = !alive; view.NoLeader {
			heading += ", and no worker is alive to start them"
		}
	}
	return &page{Title: "Schedules", Heading: heading, Body: view, Live: "execution,schedule"}, nil
}

func (v ofJob) scheduleLine(s *operator.ScheduleView) scheduleLine {
	l := scheduleLine{
		Job: link{clip(s.Job, shortText), v.jobLink(s.Job)}, Disabled: !s.Enabled, Times: v.timesLink(s.Job), Cron: s.Cron, Zone: s.Timezone, CatchUp: s.CatchUp, Overlap: s.Overlap,
		Decided: v.moment(s.DecidedUntil), Error: clip(v.masked(s.Error), lineText),
	}
	if s.Calendar != nil {
		l.Calendar = "business days only; on other days: " + s.WhenClosed
	}
	if s.Missed > 0 {
		l.Missed = humanize.Count(s.Missed)
	}
	for _, t := range s.Due {
		l.Due = append(l.Due, v.scheduledTime(t))
	}
	for _, t := range s.Next {
		l.Next = append(l.Next, v.scheduledTime(t))
	}
	return l
}

func (v ofJob) scheduledTime(t operator.ScheduledTime) scheduledTime {
	of := scheduledTime{moment: v.moment(t.At), Own: t.At.Format("2006-01-02 15:04:05")}
	if left := t.At.Sub(v.Now()); left >= 0 {
		of.In = "in " + humanize.Duration(left)
	} else {
		of.In = humanize.Duration(-left) + " ago"
	}
	return of
}

func (v ofJob) definitionLine(d *operator.DefinitionView) definitionLine {
	const digits = 12
	l := definitionLine{
		Job: link{clip(d.Job, shortText), v.jobLink(d.Job)}, Times: v.timesLink(d.Job), Enabled: d.Enabled, Version: d.Version[:min(digits, len(d.Version))], File: clip(d.File, lineText),
		Updated: v.moment(d.Updated), By: clip(wording.Actor(d.By), shortText), HasTimes: d.Schedule != nil, Error: clip(v.masked(d.Error), lineText),
	}
	var words []string
	if n := d.Budget.MaxAttempts; n > 0 {
		words = append(words, strconv.Itoa(n)+" attempts")
	}
	if n := d.Budget.Deadline; n > 0 {
		words = append(words, "deadline "+humanize.Duration(time.Duration(n*float64(time.Second))))
	}
	l.Budget = strings.Join(words, ", ")
	return l
}

// schedulesOf fills in the schedule of one job.
func (v ofJob) schedulesOf(view *jobView, name string) error {
	registered, err := v.Service.Definitions(v.r.Context())
	if err != nil {
		return err
	}
	for i := range registered {
		if registered[i].Job == name {
			l := v.definitionLine(&registered[i])
			view.Registered = &l
		}
	}
	if view.Registered == nil {
		return nil
	}
	const times = 5
	list, err := v.Service.Schedules(v.r.Context(), operator.SchedulesRequest{Count: times})
	for i := range list {
		if list[i].Job == name {
			l := v.scheduleLine(&list[i])
			view.Schedule = &l
		}
	}
	return err
}
