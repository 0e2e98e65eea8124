package operator

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/schedule"
)

const (
	// MaxWeekSchedules is the largest page of a WeekRequest.
	MaxWeekSchedules = 100

	defaultWeekSchedules = 30
	// maxWeekTimes is the number of times of a schedule with an outcome: enough for each hour of a week of 169.
	maxWeekTimes = 170
	// maxWeekKeys bounds the times of a page that are looked up.
	maxWeekKeys = 10_000
)

// WeekRequest selects a week of all schedules.
type WeekRequest struct {
	// Week is an ISO week, such as 2026-W48; empty means the current one.
	Week string `json:"week,omitempty"`
	// Days begin in Zone or, if it is nil, in Timezone, a name of the IANA database; empty means UTC.
	Timezone string         `json:"timezone,omitempty"`
	Zone     *time.Location `json:"-"`
	// After selects jobs with a greater name: Next of the previous page.
	After string `json:"after,omitempty"`
	// Limit of schedules is at most MaxWeekSchedules; 0 means 30.
	Limit int `json:"limit,omitempty"`
}

// ScheduleWeek has the times of schedules in a week, with the outcomes of those that are past.
type ScheduleWeek struct {
	Week     string `json:"week"`
	Previous string `json:"previous"`
	Later    string `json:"later"` // the following week
	// Current: the week contains now.
	Current  bool      `json:"current"`
	Timezone string    `json:"timezone"`
	At       time.Time `json:"at"`
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	// Days are the seven days, of 23 or 25 hours if the clock changes.
	Days []WeekDay `json:"days"`
	// Schedules are by name of the job. Disabled ones have no times to come.
	Schedules []WeekSchedule `json:"schedules"`
	// Next is the key of the next page; empty means the last page.
	Next string `json:"next,omitempty"`
}

// WeekDay is a day in the zone of the week.
type WeekDay struct {
	Date  string    `json:"date"`
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
	Hours float64   `json:"hours"`
}

// WeekSchedule is a schedule in a week.
type WeekSchedule struct {
	Job     string `json:"job"`
	Enabled bool   `json:"enabled"`
	taskports.Schedule
	// Usual is the median duration in seconds of the last completed executions, or 0.
	Usual float64 `json:"usual,omitempty"`
	// Times are in order, at most 170: More means that there are others, and that the outcomes of these are not
	// looked up.
	Times []PlannedTime `json:"times"`
	More  bool          `json:"more,omitempty"`
	// Error is why this program does not understand the schedule.
	Error string `json:"error,omitempty"`
}

// ScheduleWeek returns a week of the schedules (rule OP12).
func (s *agenda) ScheduleWeek(ctx context.Context, req WeekRequest) (*ScheduleWeek, error) {
	if req.Limit < 0 || req.Limit > MaxWeekSchedules {
		return nil, &RequestError{Field: "limit", Value: fmt.Sprint(req.Limit), Reason: fmt.Sprintf("must be from 1 to %d", MaxWeekSchedules)}
	}
	if req.Zone == nil {
		zone, err := schedule.LoadZone(req.Timezone)
		if err != nil {
			return nil, &RequestError{Field: "timezone", Value: req.Timezone, Reason: err.Error()}
		}
		req.Zone = zone
	}
	now := s.judge.now()
	monday, err := mondayOf(req.Week, now, req.Zone)
	if err != nil {
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		return nil, fmt.Errorf("week of schedules: %w", err)
	}
	w := newWeek(monday, now)
	list, err := s.scheduled(ctx, false)
	if err != nil {
		return nil, err
	}
	page := make([]taskports.Definition, 0, len(list))
	for _, d := range list {
		if d.Name > req.After {
			page = append(page, d)
		}
	}
	var more bool
	if page, more = cutPage(page, cmp.Or(req.Limit, defaultWeekSchedules)+1); more {
		w.Next = page[len(page)-1].Name
	}
	if err := s.weekLanes(ctx, w, page, now); err != nil {
		return nil, err
	}
	names := make([]string, len(page))
	for i := range page {
		names[i] = page[i].Name
	}
	usual, err := s.usualOf(ctx, names...)
	for i := range w.Schedules {
		w.Schedules[i].Usual = usual[w.Schedules[i].Job]
	}
	return w, err
}

func (s *agenda) weekLanes(ctx context.Context, w *ScheduleWeek, page []taskports.Definition, now time.Time) error {
	var lanes []plannedLane
	var places []int // of lanes in w.Schedules
	keys := 0
	for _, d := range page {
		of := WeekSchedule{Job: d.Name, Enabled: d.Enabled, Schedule: *d.Schedule, Times: []PlannedTime{}}
		c, err := schedule.Of(*d.Schedule)
		if err != nil {
			of.Error = err.Error()
			w.Schedules = append(w.Schedules, of)
			continue
		}
		to := w.To
		if !d.Enabled && now.Before(to) {
			to = now
		}
		times, more := timesBetween(c, laterOf(w.From, d.CreatedAt), to, maxWeekTimes)
		keys += len(times)
		if of.More = more || len(times) > 0 && keys > maxWeekKeys; of.More {
			for _, t := range times {
				p := plannedTime(c, t)
				if !t.At.After(now) {
					p.Outcome = ""
				}
				of.Times = append(of.Times, p)
			}
		} else {
			lanes, places = append(lanes, plannedLane{of: d, cron: c, times: times}), append(places, len(w.Schedules))
		}
		w.Schedules = append(w.Schedules, of)
	}
	if err := s.outcomes(ctx, lanes, now); err != nil {
		return err
	}
	for i := range lanes {
		if lanes[i].planned != nil {
			w.Schedules[places[i]].Times = lanes[i].planned
		}
	}
	return nil
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

const daysOfWeek = 7

func newWeek(monday, now time.Time) *ScheduleWeek {
	w := &ScheduleWeek{
		Week: weekName(monday), Previous: weekName(monday.AddDate(0, 0, -daysOfWeek)), Later: weekName(monday.AddDate(0, 0, daysOfWeek)),
		Timezone: monday.Location().String(), At: utc(now), From: monday, To: monday.AddDate(0, 0, daysOfWeek), Schedules: []WeekSchedule{},
	}
	w.Current = !now.Before(w.From) && now.Before(w.To)
	for i := range daysOfWeek {
		d := WeekDay{Date: monday.AddDate(0, 0, i).Format(time.DateOnly), From: monday.AddDate(0, 0, i), To: monday.AddDate(0, 0, i+1)}
		d.Hours = d.To.Sub(d.From).Hours()
		w.Days = append(w.Days, d)
	}
	return w
}

func weekName(day time.Time) string {
	year, week := day.ISOWeek()
	return fmt.Sprintf("%04d-W%02d", year, week)
}

// mondayOf returns the beginning of an ISO week.
func mondayOf(week string, now time.Time, zone *time.Location) (time.Time, error) {
	now = now.In(zone)
	if week == "" {
		return monday(now.Year(), now.Month(), now.Day(), zone), nil
	}
	var year, number int
	if n, err := fmt.Sscanf(week, "%4d-W%2d", &year, &number); err == nil && n == 2 {
		const inFirst = 4 // 4 January is in the first week
		if day := monday(year, time.January, inFirst+(number-1)*daysOfWeek, zone); weekName(day) == week {
			return day, nil
		}
	}
	return time.Time{}, &RequestError{Field: "week", Value: week, Reason: "expected a week of a year, such as " + weekName(now)}
}

// monday is the beginning of the Monday before a date, or of this date.
func monday(year int, month time.Month, day int, zone *time.Location) time.Time {
	date := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	back := (int(date.Weekday()) + daysOfWeek - int(time.Monday)) % daysOfWeek
	return time.Date(year, month, day-back, 0, 0, 0, 0, zone)
}
