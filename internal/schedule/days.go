package schedule

import (
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/calendar"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Closed is the policy for times on days that are not business days.
type Closed string

// The policies of times on closed days.
const (
	// ClosedSkip leaves the time out.
	ClosedSkip Closed = "skip"
	// ClosedNext moves it to the next business day. Coinciding times become
	// one.
	ClosedNext Closed = "next"
)

type businessDays struct {
	calendar *calendar.Calendar
	closed   Closed
}

// On returns the schedule on a calendar's business days. An unknown policy is
// an error.
func (c *Cron) On(days *calendar.Calendar, closed Closed) (*Cron, error) {
	if closed != ClosedSkip && closed != ClosedNext {
		return nil, fmt.Errorf("unknown policy %q for closed days (allowed: skip, next)", closed)
	}
	on := *c
	on.days = &businessDays{days, closed}
	return &on, nil
}

// Of returns the schedule stored with a registered job.
func Of(s taskports.Schedule) (*Cron, error) {
	c, err := ParseIn(s.Cron, s.Timezone)
	if err != nil || s.Calendar == nil {
		return c, err
	}
	days, err := s.Calendar.Calendar()
	if err != nil {
		return nil, err
	}
	return c.On(days, Closed(s.WhenClosed))
}

func (c *Cron) known(at time.Time) error {
	if c.days == nil {
		return nil
	}
	_, err := c.days.calendar.IsBusinessDay(dayOf(wallOf(at.In(c.zone))))
	return err
}

const day = 24 * time.Hour

func dayOf(w time.Time) row.Date {
	return row.Date(0).AddDays(int(w.Truncate(day).Unix() / int64(day/time.Second)))
}

func (d *businessDays) next(raw func(time.Time) time.Time, w time.Time) time.Time {
	if d.closed == ClosedNext {
		return d.nextMoved(raw, w)
	}
	for last := w.AddDate(searchYears, 0, 0); ; {
		w = raw(w)
		if w.IsZero() || w.After(last) {
			return time.Time{}
		}
		open, err := d.calendar.IsBusinessDay(dayOf(w))
		switch {
		case err != nil:
			return time.Time{}
		case open:
			return w
		}
		w = w.Truncate(day).Add(day - time.Second) // no other time of this day counts
	}
}

// A business day has its own times and those on the preceding closed days.
func (d *businessDays) nextMoved(raw func(time.Time) time.Time, w time.Time) time.Time {
	today := dayOf(w)
	open, err := d.calendar.IsBusinessDay(today)
	if err != nil {
		return time.Time{}
	}
	from := today.AddDays(1)
	if open {
		if found := d.on(raw, today, w.Sub(today.Time())); !found.IsZero() {
			return found
		}
	} else {
		from = d.firstClosed(today) // times moved from its whole run of closed days are not after w
	}
	first := raw(from.Time().Add(-time.Second))
	if first.IsZero() {
		return first
	}
	to, err := d.calendar.Add(dayOf(first), 0)
	if err != nil {
		return time.Time{}
	}
	return d.on(raw, to, -time.Second)
}

func (d *businessDays) on(raw func(time.Time) time.Time, of row.Date, behind time.Duration) (first time.Time) {
	for from := d.firstClosed(of.AddDays(-1)); from <= of; from++ {
		w := raw(from.Time().Add(behind))
		if w.IsZero() || dayOf(w) != from {
			continue
		}
		if w = of.Time().Add(w.Sub(from.Time())); first.IsZero() || w.Before(first) {
			first = w
		}
	}
	return first
}

// The limit of calendar.Add.
const longestClosed = 366

func (d *businessDays) firstClosed(upTo row.Date) row.Date {
	first := upTo.AddDays(1)
	for range longestClosed {
		if open, err := d.calendar.IsBusinessDay(first.AddDays(-1)); open || err != nil {
			break
		}
		first = first.AddDays(-1)
	}
	return first
}
