package schedule

import "time"

// period is a time during which a zone has one offset from UTC.
type period struct {
	end    time.Time // zero if it has none
	offset time.Duration
}

// quarter is the unit of clock changes: all are multiples of it.
const quarter = 15 * time.Minute

// periodOf returns the period of an instant; its zone is the location of at.
func periodOf(at time.Time) period {
	_, end := at.ZoneBounds()
	_, offset := at.Zone()
	if !end.IsZero() && !end.After(at) { // ZoneBounds errs at the end of some years after 2037
		end = at.Truncate(quarter).Add(quarter)
	}
	return period{end: end, offset: time.Duration(offset) * time.Second}
}

// wall is the reading at an instant of a clock with the period's offset.
func (p period) wall(at time.Time) time.Time { return at.UTC().Add(p.offset) }

// instant is when a clock with the period's offset shows w.
func (p period) instant(w time.Time) time.Time { return w.Add(-p.offset) }

func (p period) has(w time.Time) bool {
	return !w.IsZero() && (p.end.IsZero() || p.instant(w).Before(p.end))
}

// wallOf returns the date and time of day of t, as a time in UTC.
func wallOf(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// widestOffset is more than any zone's distance from UTC.
const widestOffset = 16 * time.Hour

// firstInstant returns the first instant at which the clock of the zone shows w, or the end of the
// gap if a clock change skips w.
func (c *Cron) firstInstant(w time.Time) time.Time {
	for at := w.Add(-widestOffset).In(c.zone); ; {
		p := periodOf(at)
		if p.has(w) {
			if instant := p.instant(w); !instant.Before(at) {
				return instant
			}
			return at // the period begins here: the clock jumped over w
		}
		at = p.end
	}
}
