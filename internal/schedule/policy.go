package schedule

import (
	"fmt"
	"time"
)

// CatchUp is the policy for times that were missed while no server ran.
type CatchUp string

// The policies of catching up.
const (
	// CatchUpNone runs only the times that are due now: less than OnTime late.
	CatchUpNone CatchUp = "none"
	// CatchUpLast runs the times that are due now or, if there are none, the last missed one.
	CatchUpLast CatchUp = "last"
	// CatchUpAll runs every time, oldest first.
	CatchUpAll CatchUp = "all"
)

// Overlap is the policy for a scheduled time while an earlier run of the schedule is active.
type Overlap string

// The policies of overlapping runs.
const (
	// OverlapForbid skips the time.
	OverlapForbid Overlap = "forbid"
	// OverlapQueue delays the run until the earlier ones have ended.
	OverlapQueue Overlap = "queue"
	// OverlapAllow runs it concurrently.
	OverlapAllow Overlap = "allow"
)

const (
	// OnTime is how late a time may be processed without counting as missed.
	OnTime = time.Minute
	// MaxDue is the maximum number of times that Due returns at once, and up to which it counts
	// missed ones.
	MaxDue = 100
)

// Due lists the times to run, oldest first.
type Due struct {
	Times []Time
	// Missed is the number of skipped times before them; MaxDue means that many or more.
	Missed int
	// Until is where the next call begins: all times up to this instant are decided.
	Until time.Time
	// More means that more times are due: the next call returns them.
	More bool
}

// Due returns the times to run after `last` and up to `now`: last is the Until of the previous
// call, or when the schedule began. It returns at most MaxDue times at once, or all times of one
// instant; the rest follows in the next call. A calendar that does not know the day of now is an
// error.
func (c *Cron) Due(last, now time.Time, policy CatchUp) (Due, error) {
	if err := c.known(now); err != nil {
		return Due{}, err
	}
	switch policy {
	case CatchUpAll:
		return c.dueAll(last, now), nil
	case CatchUpNone, CatchUpLast:
	default:
		return Due{}, fmt.Errorf("unknown catch-up policy %q (allowed: none, last, all)", policy)
	}
	due := c.dueAll(later(last, now.Add(-OnTime)), now)
	if len(due.Times) == 0 && policy == CatchUpLast {
		due.Times = c.latest(last, now)
	}
	due.Missed = c.countMissed(last, now, due.Times)
	return due, nil
}

// longestStep is the longest step of latest: a time.Duration holds no more than one more.
const longestStep = 100 * 365 * 24 * time.Hour

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

// latest returns the last time after `last` and up to `now`, or none. It looks back in growing
// steps, so that a year of missed minutes costs no more than an hour of them.
func (c *Cron) latest(last, now time.Time) []Time {
	for back := time.Hour; ; back *= 24 {
		from := last
		if back <= longestStep {
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

// countMissed counts the times after `last` and up to `now` that are not among the returned ones,
// which are the last ones.
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
