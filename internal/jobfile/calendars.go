package jobfile

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/calendar"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// calendarModel is a calendar of business days.
type calendarModel struct {
	yamlfile.At

	Base     string   `key:"base" doc:"A calendar whose weekend and holidays it has too: TARGET, or one above it in the file [none]."`
	Weekend  []string `key:"weekend" item:"a day of the week" doc:"The days of a week that are no business days, such as SAT [those of 'base', or SAT and SUN]."`
	Holidays []string `key:"holidays" item:"a date" doc:"The other days that are none, as yyyy-MM-dd."`
	Until    string   `key:"until" doc:"The last day that the holidays are known of, as yyyy-MM-dd: a question about a later one is an error [they are complete]."`
}

// declareCalendars makes the calendars of the file.
func (l *checker) declareCalendars() {
	l.file.clock.calendars = map[string]*calendar.Calendar{}
	for _, e := range l.file.model.Calendars {
		_, taken := calendar.Stock()[e.Name]
		switch {
		case !identifier.MatchString(e.Name):
			l.problems.Add(e.Key, fmt.Sprintf("the calendar name %q is no identifier", e.Name), identifierHint)
		case taken:
			l.problems.Add(e.Key, fmt.Sprintf("the calendar %s is always there", e.Name), "name yours otherwise, with base: "+e.Name)
		default:
			if made := l.calendar(e.Name, e.Value); made != nil {
				l.file.clock.calendars[e.Name] = made
			}
		}
	}
}

// calendar makes one calendar. It returns nil if the calendar is wrong, which it reports.
func (l *checker) calendar(name string, m calendarModel) *calendar.Calendar {
	before := l.problems.Reports()
	c := calendar.Config{Name: name}
	if m.Base != "" {
		all := calendar.Stock()
		maps.Copy(all, l.file.clock.calendars)
		if c.Base = all[m.Base]; c.Base == nil {
			l.problems.Add(m.Node.Get("base"), fmt.Sprintf("there is no calendar %s above this one", m.Base), yamlfile.Suggest(m.Base, slices.Sorted(maps.Keys(all))))
		}
	}
	if m.Weekend != nil {
		c.Weekend = []time.Weekday{}
	}
	for i, text := range m.Weekend {
		day, ok := calendar.Weekday(text)
		if !ok {
			l.problems.Add(m.Node.Get("weekend").Items[i], fmt.Sprintf("weekend: %q is no day of the week", text), "MON, TUE, WED, THU, FRI, SAT or SUN")
		}
		c.Weekend = append(c.Weekend, day)
	}
	for i, text := range m.Holidays {
		if day, ok := l.day(m.Node.Get("holidays").Items[i], "holidays", text); ok {
			c.Holidays = append(c.Holidays, day)
		}
	}
	if m.Until != "" {
		c.Until, _ = l.day(m.Node.Get("until"), "until", m.Until)
	}
	if l.problems.Reports() > before {
		return nil
	}
	made, err := calendar.New(c)
	if err != nil {
		l.problems.Add(m.Node.Get("weekend"), err.Error(), "leave a day out")
	}
	return made
}

func (l *checker) day(at *yamlfile.Node, key, text string) (row.Date, bool) {
	day, err := row.ParseDate(text)
	if err != nil {
		l.problems.Add(at, key+": "+err.Error(), "such as 2026-12-24")
	}
	return day, err == nil
}
