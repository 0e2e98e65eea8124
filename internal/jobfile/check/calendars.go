package check

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/calendar"
	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/schedule"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func (l *checker) declareCalendars() {
	l.file.Clock.Calendars = map[string]*calendar.Calendar{}
	for _, e := range l.file.Model.Calendars {
		_, taken := calendar.Stock()[e.Name]
		switch {
		case !language.Identifier.MatchString(e.Name):
			l.problems.Add(e.Key, fmt.Sprintf("the calendar name %q is not an identifier", e.Name), language.IdentifierHint)
		case taken:
			l.problems.Add(e.Key, fmt.Sprintf("calendar %s is built in", e.Name), "give yours another name, with base: "+e.Name)
		default:
			if made := l.calendar(e.Name, e.Value); made != nil {
				l.file.Clock.Calendars[e.Name] = made
			}
		}
	}
}

// calendar makes one calendar. It returns nil if the calendar is wrong, which it reports.
func (l *checker) calendar(name string, m language.Calendar) *calendar.Calendar {
	before := l.problems.Reports()
	c := calendar.Config{Name: name}
	if m.Base != "" {
		all := calendar.Stock()
		maps.Copy(all, l.file.Clock.Calendars)
		if c.Base = all[m.Base]; c.Base == nil {
			l.problems.Add(m.Node.Get("base"), fmt.Sprintf("calendar %s is not declared above this one", m.Base), yamlfile.Suggest(m.Base, slices.Sorted(maps.Keys(all))))
		}
	}
	if m.Weekend != nil {
		c.Weekend = []time.Weekday{}
	}
	for i, text := range m.Weekend {
		day, ok := calendar.Weekday(text)
		if !ok {
			l.problems.Add(m.Node.Get("weekend").Items[i], fmt.Sprintf("weekend: %q is not a day of the week", text), "MON, TUE, WED, THU, FRI, SAT or SUN")
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

func (l *checker) checkTimezone() {
	root := l.file.Doc.Root
	if err := l.readTimezone(); err != nil {
		l.problems.Add(root.Get("timezone"), "timezone: "+err.Error(), "such as Europe/Berlin")
	}
	l.checkPositive(root, "timeout", l.file.Model.Timeout)
}

// readTimezone reads the job's time zone, which templates need before the rest of the file: UTC by default.
func (l *checker) readTimezone() error {
	l.file.Clock.Zone = time.UTC
	at := l.file.Doc.Root.Get("timezone")
	if at == nil || at.Bad || at.Kind != yamlfile.Scalar || at.Empty || at.Text == "" {
		return nil
	}
	zone, err := schedule.LoadZone(at.Text)
	if err != nil {
		return err
	}
	l.file.Clock.Zone = zone
	return nil
}
