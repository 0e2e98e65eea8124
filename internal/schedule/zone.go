package schedule

import "time"

// period is a time during which a zone has one offset from UTC.
type period struct {
	end    time.Time // zero if it has none
	offset time.Duration
}

// All clock changes are multiples of it.
const quarter = 15 * time.Minute

func periodOf(at time.Time) period {
	_, end := at.ZoneBounds()
	_, offset := at.Zone()
	if !end.IsZero() && !end.After(at) { // ZoneBounds errs at the end of some years after 2037
		end = at.Truncate(quarter).Add(quarter)
	}
	return period{end: end, offset: time.Duration(offset) * time.Second}
}

func (p period) wall(at time.Time) time.Time { return at.UTC().Add(p.offset) }

func (p period) instant(w time.Time) time.Time { return w.Add(-p.offset) }

func (p period) has(w time.Time) bool {
	return !w.IsZero() && (p.end.IsZero() || p.instant(w).Before(p.end))
}

func wallOf(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// More than any zone's.
const widestOffset = 16 * time.Hour

// If a clock change skips w, the end of the gap.
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
