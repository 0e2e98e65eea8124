package template

import (
	"time"

	"github.com/surfin-batch/surfin/internal/calendar"
	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Clock is the time zone of a job, with its calendars of business days.
type Clock struct {
	Zone      *time.Location
	Calendars map[string]*calendar.Calendar
}

// AddTo adds the zone and the calendars to the names of an expression.
func (c Clock) AddTo(scope expression.Scope) {
	scope[expression.Calendars] = expression.Var{Calendars: c.Calendars}
	scope[expression.Zone] = expression.Var{Zone: c.Zone}
}

// Values returns today() and now() at a time: the day is a day in the job's time zone.
func (c Clock) Values(now time.Time) map[string]any {
	_, offset := now.In(c.Zone).Zone()
	local := now.Add(time.Duration(offset) * time.Second).UTC()
	days := local.Truncate(24*time.Hour).Unix() / int64(24*time.Hour/time.Second)
	return map[string]any{expression.Today: core.Date(0).AddDays(int(days)), expression.Now: now.UTC().Truncate(time.Microsecond)}
}
