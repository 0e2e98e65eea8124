package console

import (
	"errors"
	"net/url"
	"time"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/operator"
)

type calendarView struct {
	Month, Param   string
	Params         []choice
	Weeks          [][]calendarCell
	Earlier, Later string
	Said           string
	// Backfill is the form that runs missing days; empty for those who may not.
	Backfill []link
	// Partial: some days are not known as a whole.
	Partial bool
}

// calendarCell is a day: without a number it is of another month.
type calendarCell struct {
	Number int
	Date   string
	Status *statusView
	Link   string
	Note   string
	Never  bool
	// Run is the form of a run for a day without one.
	Run     []link
	Partial bool
	Today   bool
}

// calendar is nil for a job without a date parameter.
func (v ofJob) calendar(name string, file *jobfile.File) (*calendarView, error) {
	req := operator.CalendarRequest{Job: name, File: file, Param: v.text("param"), Month: v.text("month")}
	found, err := v.Service.Calendar(v.r.Context(), req)
	for range 2 { // a wrong value is left out
		wrong, is := errors.AsType[*operator.RequestError](err)
		if !is {
			break
		}
		v.mistake(wrong.Field, wrong.Value, wrong.Reason, wrong.Allowed...)
		if wrong.Field == "month" {
			req.Month = ""
		} else {
			req.Param = ""
		}
		found, err = v.Service.Calendar(v.r.Context(), req)
	}
	if err != nil || len(found.Days) == 0 {
		return nil, err
	}
	first, err := time.Parse(time.DateOnly, found.Days[0].Value)
	if err != nil {
		return nil, err
	}
	view := &calendarView{Month: first.Format("January 2006"), Param: clip(found.Param, shortText)}
	view.Earlier, view.Later = v.inCalendar("month", first.AddDate(0, -1, 0).Format("2006-01")), v.inCalendar("month", first.AddDate(0, 1, 0).Format("2006-01"))
	for _, p := range found.Params {
		view.Params = append(view.Params, choice{clip(p, shortText), v.inCalendar("param", p, "month", ""), p == found.Param})
	}
	view.fill(v, found, first)
	if file != nil {
		view.act(v, found)
	}
	return view, nil
}

// act adds the forms that run days without a run.
func (view *calendarView) act(v ofJob, found *operator.JobCalendar) {
	to := v.backfillOf(found.Job, found.Param, found.Days)
	if to == "" {
		return
	}
	view.Backfill = actingOn(v.visit, "Run the missing days", to)
	for _, week := range view.Weeks {
		for i := range week {
			if week[i].Never {
				week[i].Run = actingOn(v.visit, "run", withQuery("/jobs/"+url.PathEscape(found.Job)+"/run", url.Values{paramPrefix + found.Param: {week[i].Date}}))
			}
		}
	}
}

func (v ofJob) inCalendar(pairs ...string) string { return v.with(pairs...) + "#calendar" }

// fill adds the weeks from Monday on.
func (view *calendarView) fill(v ofJob, found *operator.JobCalendar, first time.Time) {
	const week = 7
	today := v.Now().In(v.zone).Format(time.DateOnly)
	row := make([]calendarCell, (int(first.Weekday())+week-1)%week, week)
	done, never, others := 0, 0, 0
	for i := range found.Days {
		d := &found.Days[i]
		cell := v.calendarCell(found, d, today)
		switch {
		case cell.Never:
			never++
		case cell.Status != nil && cell.Status.Class == "completed":
			done++
		case cell.Status != nil:
			others++
		}
		view.Partial = view.Partial || d.Partial
		if row = append(row, cell); len(row) == week {
			view.Weeks, row = append(view.Weeks, row), nil
		}
	}
	if len(row) > 0 {
		view.Weeks = append(view.Weeks, append(row, make([]calendarCell, week-len(row))...))
	}
	view.Said = humanize.Plural(done, "day") + " complete, " + humanize.Count(others) + " not complete, " + humanize.Count(never) + " up to today without a run"
}

func (v ofJob) calendarCell(found *operator.JobCalendar, d *operator.CalendarDay, today string) calendarCell {
	cell := calendarCell{Date: d.Value, Today: d.Value == today, Partial: d.Partial}
	if day, err := time.Parse(time.DateOnly, d.Value); err == nil {
		cell.Number = day.Day()
	}
	if d.Instances == 0 {
		cell.Never = d.Value <= today && !d.Partial
		return cell
	}
	s := status(d.Status)
	cell.Status, cell.Link = &s, v.executionLink(d.Execution).Href
	if d.Attempts > 1 {
		cell.Note = humanize.Plural(d.Attempts, "attempt")
	}
	if d.Instances > 1 {
		cell.Note = humanize.Plural(d.Instances, "instance")
		cell.Link = v.Base + "/executions?job=" + query(found.Job) + "&param=" + query(found.Param+":"+d.Value)
	}
	return cell
}
