package schedule

import (
	"fmt"
	"iter"
	"time"
)

// Time is one time at which a job is due.
type Time struct {
	// Key is the scheduled local time, such as 2026-10-25T02:30: one run each.
	// In the second pass of a repeated hour, the offset follows. Keys stay when
	// a government moves its clock.
	Key string
	At  time.Time
	// Wall is the scheduled local time, as if in UTC.
	Wall time.Time
}

const wallLayout = "2006-01-02T15:04"

// All returns the times after an instant, in order, as far as a calendar knows.
// A time of day, such as `30 2 * * *`, is due once for each local time: a
// skipped one at the next existing instant (where several may coincide), a
// repeated one in the first pass. A frequency, such as `*/15 * * * *`, is due
// in both passes, and never more than once at one instant.
func (c *Cron) All(after time.Time) iter.Seq[Time] {
	if c.wildcard {
		return c.allInstants(after)
	}
	return c.allWalls(after)
}

// Next returns the first time after an instant; zero if a calendar allows none.
func (c *Cron) Next(after time.Time) Time {
	for t := range c.All(after) {
		return t
	}
	return Time{}
}

// First instants never go backwards, so to start after the wall clock of
// `after` is too early by no more than a repeated hour.
func (c *Cron) allWalls(after time.Time) iter.Seq[Time] {
	return func(yield func(Time) bool) {
		w := wallOf(after.In(c.zone))
		for w = c.nextWall(w); !w.IsZero(); w = c.nextWall(w) {
			at := c.firstInstant(w)
			if !at.After(after) {
				continue
			}
			if !yield(Time{Key: w.Format(wallLayout), At: at.UTC(), Wall: w}) {
				return
			}
		}
	}
}

func (c *Cron) allInstants(after time.Time) iter.Seq[Time] {
	return func(yield func(Time) bool) {
		at := after.In(c.zone)
		for {
			p := periodOf(at)
			if c.days != nil && c.nextWall(wallOf(at)).IsZero() {
				return
			}
			for w := c.nextWall(wallOf(at)); p.has(w); w = c.nextWall(w) {
				if !yield(c.timeAt(p.instant(w))) {
					return
				}
			}
			if p.end.IsZero() {
				return
			}
			// Times that its clock skips are due then.
			next := periodOf(p.end)
			first := next.wall(p.end)
			due := c.nextWall(earlier(p.wall(p.end), first).Add(-time.Second))
			if due.IsZero() {
				return
			}
			if !due.After(first) && !yield(c.timeAt(p.end)) {
				return
			}
			at = p.end.In(c.zone)
		}
	}
}

// At returns the time that a text names, and whether the schedule is due then: a local time, with or without its offset,
// or an instant of RFC 3339. Seconds are cut off. "" means now.
func (c *Cron) At(text string, now time.Time) (t Time, due bool, err error) {
	instant, err := now, error(nil)
	if text != "" {
		if w, isLocal := parseWall(text); isLocal {
			return c.atWall(w)
		}
		if instant, err = time.Parse(wallLayout+"Z07:00", text); err != nil {
			instant, err = time.Parse(time.RFC3339, text)
		}
		if err != nil {
			return Time{}, false, fmt.Errorf("%q is not a time, such as %s or %s", text, now.In(c.zone).Format(wallLayout), now.UTC().Format(time.RFC3339))
		}
	}
	instant = instant.Truncate(time.Minute)
	if t := c.Next(instant.Add(-time.Nanosecond)); t.At.Equal(instant) {
		return t, true, nil
	}
	return c.timeAt(instant), false, nil
}

func parseWall(text string) (time.Time, bool) {
	w, err := time.Parse(wallLayout, text)
	if err != nil {
		w, err = time.Parse(wallLayout+":05", text)
	}
	return w.Truncate(time.Minute), err == nil
}

func (c *Cron) atWall(w time.Time) (Time, bool, error) {
	first := c.firstInstant(w)
	for t := range c.All(first.Add(-time.Nanosecond)) {
		if t.At.After(first) {
			break
		}
		if t.Wall.Equal(w) {
			return t, true, nil
		}
	}
	if !wallOf(first.In(c.zone)).Equal(w) {
		return Time{}, false, fmt.Errorf("the clock of %s skips %s", c.zone, w.Format(wallLayout))
	}
	return c.timeAt(first), false, nil
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func (c *Cron) timeAt(instant time.Time) Time {
	w := wallOf(instant.In(c.zone))
	key := w.Format(wallLayout)
	if !c.firstInstant(w).Equal(instant) {
		key += instant.In(c.zone).Format("-07:00")
	}
	return Time{Key: key, At: instant.UTC(), Wall: w}
}
