package schedule

import "time"

// Last returns the last times before an instant and after another one, in order: at most n, but all of one
// instant. more reports whether there are earlier ones.
func (c *Cron) Last(after, before time.Time, n int) (times []Time, more bool) {
	const factor = 6
	for back := time.Hour; ; back *= factor {
		from := after
		if back <= longestStep/factor {
			from = later(after, before.Add(-back))
		}
		times = nil
		for t := range c.All(from) {
			if !t.At.Before(before) {
				break
			}
			times = append(times, t)
		}
		if cut := len(times) - n; cut > 0 {
			for cut > 0 && times[cut-1].At.Equal(times[cut].At) {
				cut--
			}
			return times[cut:], cut > 0 || from.After(after)
		}
		if !from.After(after) {
			return times, false
		}
	}
}

// Clock is the effect of a clock change on a scheduled time.
type Clock string

// The kinds of local times that are not as usual.
const (
	// ClockSkips means that the local time does not exist: it is due at the end of the gap.
	ClockSkips Clock = "skipped"
	// ClockFirst and ClockSecond are the passes of a local time that exists twice.
	ClockFirst  Clock = "first"
	ClockSecond Clock = "second"
)

// Clock returns the kind of a time; empty means that the local time exists once.
func (c *Cron) Clock(t Time) Clock {
	at := t.At.In(c.zone)
	p := periodOf(at)
	switch {
	case !wallOf(at).Equal(t.Wall):
		return ClockSkips
	case !c.firstInstant(t.Wall).Equal(t.At):
		return ClockSecond
	case p.end.IsZero():
		return ""
	}
	if next := periodOf(p.end.In(c.zone)); next.offset < p.offset && !t.Wall.Before(next.wall(p.end)) {
		return ClockFirst
	}
	return ""
}
