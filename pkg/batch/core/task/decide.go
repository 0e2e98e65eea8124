package task

import (
	"fmt"
	"math"
	"time"
)

// Case is a decider's input: a task after an unsuccessful attempt.
type Case struct {
	Task    Task
	Outcome Outcome
	Budget  Budget
	Spent   Spent
	// Decider is the group's; "" means the default.
	Decider string
	// Random is in [0, 1), so that the decider stays a function.
	Random float64
}

// Decision is Retry or MarkDead.
type Decision struct {
	Dead   bool          `json:"dead"`
	Delay  time.Duration `json:"delay,omitempty"` // before the next attempt
	Reason string        `json:"reason"`
}

// Retry decides for another attempt.
func Retry(delay time.Duration, reason string) Decision {
	return Decision{Delay: max(delay, 0), Reason: reason}
}

// MarkDead decides that the task has failed.
func MarkDead(reason string) Decision { return Decision{Dead: true, Reason: reason} }

// Decider decides after an unsuccessful attempt: a function of its arguments, without I/O or clock.
type Decider interface {
	Decide(c Case) Decision
}

// DeciderFunc is a function as a Decider.
type DeciderFunc func(c Case) Decision

// Decide calls f.
func (f DeciderFunc) Decide(c Case) Decision { return f(c) }

// Backoff retries while the budget lasts; the delay doubles, or is the outcome's hint.
type Backoff struct {
	Base time.Duration // 0 means 1 s
	Max  time.Duration // 0 means 5 min
	// Jitter is a share, 0 to 1; 0 means 0.2, negative none.
	Jitter float64
}

// Backoff's defaults.
const (
	defaultBackoff       = time.Second
	defaultMaxRetryDelay = 5 * time.Minute
	defaultJitter        = 0.2
)

// Decide implements Decider.
func (b Backoff) Decide(c Case) Decision {
	switch {
	case c.Outcome.Kind == OutcomeSuccess:
		return MarkDead("the decider was called for an attempt that succeeded")
	case c.Outcome.Fatal:
		return MarkDead("the error is fatal: " + c.Outcome.Reason)
	}
	if why := c.Budget.Exhausted(c.Spent); why != "" {
		return MarkDead(why)
	}
	reason := fmt.Sprintf("attempt %d of %d", c.Spent.Attempts+1, c.Budget.Filled().MaxAttempts)
	most := b.Max
	if most == 0 {
		most = defaultMaxRetryDelay
	}
	if hinted, ok := c.Outcome.hintedDelay(); ok {
		return Retry(min(hinted, most), reason+", after the delay that the outcome suggests")
	}
	return Retry(min(b.delay(c.Spent.Attempts, c.Random), most), reason)
}

func (b Backoff) delay(attempts int, random float64) time.Duration {
	base, jitter := b.Base, b.Jitter
	if base == 0 {
		base = defaultBackoff
	}
	if jitter == 0 {
		jitter = defaultJitter
	}
	grown := float64(base) * math.Pow(2, float64(min(max(attempts-1, 0), 40)))
	grown *= 1 - max(jitter, 0)*random
	if grown > float64(maxHint) {
		return maxHint
	}
	return time.Duration(grown)
}

// Within limits the decision: none beyond the budget or after a fatal outcome.
func (d Decision) Within(c Case) Decision {
	if d.Dead {
		return d
	}
	if c.Outcome.Fatal {
		return MarkDead("the error is fatal: " + c.Outcome.Reason)
	}
	if why := c.Budget.Exhausted(c.Spent); why != "" {
		return MarkDead(why)
	}
	return Decision{Delay: min(max(d.Delay, 0), maxHint), Reason: d.Reason}
}
