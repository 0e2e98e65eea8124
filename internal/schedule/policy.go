package schedule

import (
	"fmt"
	"time"
)

// CatchUp says which of the times that were missed, while no server ran, are run.
type CatchUp string

// The policies of catching up.
const (
	// CatchUpNone runs only what is due now: less than OnTime late.
	CatchUpNone CatchUp = "none"
	// CatchUpLast runs what is due now; where nothing is, the last of the times missed.
	CatchUpLast CatchUp = "last"
	// CatchUpAll runs every time, the oldest first.
	CatchUpAll CatchUp = "all"
)

// Overlap says what happens at a scheduled time while an earlier run of the schedule is
// not over.
type Overlap string

// The policies of overlapping runs.
const (
	// OverlapForbid leaves the time out.
	OverlapForbid Overlap = "forbid"
	// OverlapQueue lets the run wait for those before it.
	OverlapQueue Overlap = "queue"
	// OverlapAllow starts the run beside them.
	OverlapAllow Overlap = "allow"
)

const (
	// OnTime is how late a time may be seen and still be one that was not missed.
	OnTime = time.Minute
	// MaxDue is how many times Due returns at once, and how far it counts what was missed.
	MaxDue = 100
)

// Due is what is to be run, oldest first.
type Due struct {
	Times []Time
	// Missed is how many times before them are left out; MaxDue stands for that many or more.
	Missed int
	// Until is where the next call begins: up to this instant everything is decided.
	Until time.Time
	// More says that further times are due: the next call returns them.
	More bool
}

// Due returns what is to be run of the times after `last` and up to `now`: last is the
// Until of the call before, or when the schedule began. At most MaxDue times are returned
// at once, or those of one instant; the rest follows in the next call. A calendar that does not
// know the day of now is an error.
func (c *Cron) Due(last, now time.Time, policy CatchUp) (Due, error) {
	if err := c.known(now); err != nil {
		return Due{}, err
	}
	switch policy {
	case CatchUpAll:
		return c.dueAll(last, now), nil
	case CatchUpNone, CatchUpLast:
	default:
		return Due{}, fmt.Errorf("there is no catch-up policy %q; allowed are none, last, all", policy)
	}
	due := c.dueAll(later(last, now.Add(-OnTime)), now)
	if len(due.Times) == 0 && policy == CatchUpLast {
		due.Times = c.latest(last, now)
	}
	due.Missed = c.countMissed(last, now, due.Times)
	return due, nil
}

// longestLook is the longest of the steps of latest: a time.Duration takes no more than one more.
const longestLook = 100 * 365 * 24 * time.Hour

func (c *Cron) dueAll(last, now time.Time) Due {
	due := Due{Until: later(last, now)}
	for t := range c.All(last) {
		if t.At.After(now) {
			break
		}
		if n := len(due.Times); n >= MaxDue && t.At.After(due.Times[n-1].At) {
			due.Until, due.More = due.Times[n-1].At, true
			break
		}
		due.Times = append(due.Times, t)
	}
	return due
}

// latest returns the last of the times after `last` and up to `now`; none: there is none.
// It looks back in growing steps, so that a year of missed minutes costs no more than an
// hour of them.
func (c *Cron) latest(last, now time.Time) []Time {
	for back := time.Hour; ; back *= 24 {
		from := last
		if back <= longestLook {
			from = later(last, now.Add(-back))
		}
		var found []Time
		for t := range c.All(from) {
			if t.At.After(now) {
				break
			}
			found = []Time{t}
		}
		if len(found) > 0 || !from.After(last) {
			return found
		}
	}
}

// countMissed counts the times after `last` and up to `now` that are not among those
// returned, which are the last ones.
func (c *Cron) countMissed(last, now time.Time, returned []Time) int {
	n := 0
	for t := range c.All(last) {
		if n == MaxDue || t.At.After(now) || len(returned) > 0 && t.Key == returned[0].Key {
			break
		}
		n++
	}
	return n
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
