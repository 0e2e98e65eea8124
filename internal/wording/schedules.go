package wording

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// ScheduleTimes writes the sentences of a schedule's times into them.
func ScheduleTimes(s *operator.ScheduleTimes) *operator.ScheduleTimes {
	for _, list := range [][]operator.PlannedTime{s.Coming, s.Past} {
		for i := range list {
			list[i].Text = PlannedTime(&list[i])
		}
	}
	return s
}

// ScheduleWeek writes the sentences of a week's times into them.
func ScheduleWeek(w *operator.ScheduleWeek) *operator.ScheduleWeek {
	for i := range w.Schedules {
		for j := range w.Schedules[i].Times {
			w.Schedules[i].Times[j].Text = PlannedTime(&w.Schedules[i].Times[j])
		}
	}
	return w
}

// PlannedTime is the outcome of a scheduled time as a sentence.
func PlannedTime(t *operator.PlannedTime) string {
	text := outcome(t)
	if clock := Clock(t); clock != "" {
		text += "; " + clock
	}
	return text
}

// Clock is the effect of a clock change on a scheduled time; "" means none.
func Clock(t *operator.PlannedTime) string {
	const hour = "15:04"
	switch t.Clock {
	case operator.ClockSkips:
		_, local, _ := strings.Cut(t.Key, "T")
		return fmt.Sprintf("the clock skips %s, so it is due at %s", local, t.At.Format(hour))
	case operator.ClockFirst:
		return fmt.Sprintf("%s occurs twice, this is the first (%s)", t.At.Format(hour), t.At.Format("-07:00"))
	case operator.ClockSecond:
		return fmt.Sprintf("%s occurs twice, this is the second (%s)", t.At.Format(hour), t.At.Format("-07:00"))
	}
	return ""
}

func outcome(t *operator.PlannedTime) string {
	switch t.Outcome {
	case operator.TimePlanned:
		return "planned"
	case operator.TimeDue:
		return "due since " + humanize.Seconds(t.Late) + ": a worker submits it next"
	case operator.TimeWaiting:
		return "submitted, has not begun: " + humanize.Seconds(t.Late) + " late"
	case operator.TimeStarted:
		return started(t)
	case operator.TimeNotRun:
		return "not run: " + clipped(t.Reason)
	case operator.TimeLeftOut:
		return "left out: an earlier run was not over, or had the same local time"
	case operator.TimeMissed:
		return "missed: no worker led at that time"
	case operator.TimeDisabled:
		return "the schedule was disabled"
	case operator.TimeUnknown:
		return "no record: the history is deleted, or it was decided before these records"
	}
	return "not looked up"
}

func started(t *operator.PlannedTime) string {
	text := "started on time"
	if isLate(t) {
		text = "started " + humanize.Seconds(t.Late) + " late"
	}
	text = string(t.Status) + ", " + text
	if t.Attempts > 1 {
		text += ", " + humanize.Plural(t.Attempts, "attempt")
	}
	if t.Reason != "" && t.Status != core.StatusCompleted {
		text += ": " + clipped(t.Reason)
	}
	return text
}

// Day names the jobs and executions that a time line of all jobs omits; "" means none.
func Day(d *operator.Day) string {
	var parts []string
	if o := d.Others; o != nil {
		text := fmt.Sprintf("%s more have runs in this time", humanize.Plural(o.Jobs, "job"))
		if len(o.Statuses) > 0 {
			text += ": " + StatusCounts(o.Statuses)
		}
		if o.Planned > 0 {
			text += ", " + dayPlanned(o.Planned, o.MorePlanned)
		}
		parts = append(parts, text+".")
	}
	if d.Complete.After(d.From) {
		parts = append(parts, "Executions that ended before "+humanize.Time(d.Complete)+" are left out: there are too many.")
	}
	if d.MoreRunning {
		parts = append(parts, "More executions are running than are shown.")
	}
	return strings.Join(parts, " ")
}

// DayJob counts the executions and planned runs of a job in a window of time.
func DayJob(j *operator.DayJob) string {
	var parts []string
	if len(j.Statuses) > 0 {
		parts = append(parts, StatusCounts(j.Statuses))
	}
	if len(j.Planned) > 0 {
		parts = append(parts, dayPlanned(len(j.Planned), j.MorePlanned))
	}
	return strings.Join(parts, ", ")
}

func dayPlanned(n int, more bool) string {
	if more {
		return "more than " + humanize.Count(n) + " planned"
	}
	return humanize.Count(n) + " planned"
}

// WeekSchedule counts the outcomes of a schedule's times in a week.
func WeekSchedule(s *operator.WeekSchedule) string {
	switch {
	case s.Error != "":
		return "This program does not understand the schedule: " + clipped(s.Error)
	case s.More:
		return "more than " + humanize.Count(len(s.Times)) + " times, which are not looked up here"
	case len(s.Times) == 0 && !s.Enabled:
		return "disabled"
	case len(s.Times) == 0:
		return "no time in this week"
	}
	statuses, outcomes, late := map[core.Status]int{}, map[operator.TimeOutcome]int{}, 0
	for i := range s.Times {
		t := &s.Times[i]
		if t.Outcome == operator.TimeStarted {
			statuses[t.Status]++
		} else {
			outcomes[t.Outcome]++
		}
		if isLate(t) {
			late++
		}
	}
	var words []string
	if len(statuses) > 0 {
		words = append(words, StatusCounts(statuses))
	}
	for _, o := range []operator.TimeOutcome{
		operator.TimeWaiting, operator.TimeDue, operator.TimeNotRun, operator.TimeMissed, operator.TimeLeftOut, operator.TimeDisabled, operator.TimeUnknown, operator.TimePlanned,
	} {
		if n := outcomes[o]; n > 0 {
			words = append(words, humanize.Count(n)+" "+Outcome(o))
		}
	}
	if late > 0 {
		words = append(words, humanize.Count(late)+" late")
	}
	if !s.Enabled {
		words = append(words, "now disabled")
	}
	return humanize.Join(words)
}

// Outcome is the word for an outcome of a scheduled time.
func Outcome(o operator.TimeOutcome) string {
	if o == operator.TimeUnknown {
		return "without a record"
	}
	if o == "" {
		return "not looked up"
	}
	return strings.ReplaceAll(string(o), "_", " ")
}

func isLate(t *operator.PlannedTime) bool {
	return time.Duration(t.Late*float64(time.Second)) >= operator.OnTime
}

// ShortDay says that a day has fewer or more than 24 hours; "" means 24.
func ShortDay(d operator.WeekDay) string {
	const usual = 24
	if d.Hours == usual {
		return ""
	}
	return fmt.Sprintf("%s has %s hours: the clock changes.", d.From.Format("Monday, 2 January"), strconv.FormatFloat(d.Hours, 'f', -1, 64))
}

// TimeRun describes the run of a schedule for a time.
func TimeRun(run *taskports.TimeRun) []string {
	text := fmt.Sprintf("%s for %s (%s)", run.Job, run.Key, run.Timezone)
	var params []string
	for _, name := range slices.Sorted(maps.Keys(run.Params)) {
		params = append(params, name+"="+run.Params[name])
	}
	if len(params) > 0 {
		text += ", with " + strings.Join(params, ", ")
	}
	list := []string{text + "."}
	switch {
	case run.Applied:
	case run.ID != 0:
		list = append(list, fmt.Sprintf("This time has task %d already (%s): nothing is submitted.", run.ID, run.Status))
	case run.Due:
		list = append(list, "The schedule is due then. The task is submitted now, and not again at this time.")
	default:
		list = append(list, "The schedule is not due at this time: this is an additional run.")
	}
	return list
}
