package schedule

import (
	"fmt"
	"time"
)

// CatchUp is the policy for times missed while no server ran.
type CatchUp string

// The policies of catching up.
const (
	// CatchUpNone runs times less than OnTime late.
	CatchUpNone CatchUp = "none"
	// CatchUpLast runs those or, if none, the last missed one.
	CatchUpLast CatchUp = "last"
	// CatchUpAll runs every time, oldest first.
	CatchUpAll CatchUp = "all"
)

// Overlap is the policy while an earlier run is active.
type Overlap string

// The policies of overlapping runs.
const (
	// OverlapForbid skips the time.
	OverlapForbid Overlap = "forbid"
	// OverlapQueue delays the run.
	OverlapQueue Overlap = "queue"
	// OverlapAllow runs it concurrently.
	OverlapAllow Overlap = "allow"
)

const (
	// OnTime is the lateness that does not count as missed.
	OnTime = time.Minute
	// MaxDue bounds the times of one Due, and its count of missed ones.
	MaxDue = 100
)

// Due lists the times to run, oldest first.
type Due struct {
	Times []Time
	// Missed is at most MaxDue.
	Missed int
	// All times up to Until are decided: the next call begins there.
	Until time.Time
	// More are due: the next call returns them.
	More bool
}

// Due returns the times after last (the previous Until) and up to now: at most
// MaxDue, or all of one instant. A calendar that does not know now's day is an
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

// A time.Duration holds no more than one more.
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

// latest looks back in growing steps, so that a year of missed minutes costs no
// more than an hour.
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
