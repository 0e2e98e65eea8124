package main

import (
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// patient decides what follows an attempt that did not succeed: it waits 2, 4, 8, ... seconds, or as long as
// the handler requests, and gives up a blocked task.
type patient struct {
	maxRetryDelay time.Duration
}

// Decide implements task.Decider. It is a function of its argument. The framework ends a task whose budget is
// used up, whatever the answer.
func (p patient) Decide(c task.Case) task.Decision {
	limit := c.Budget.MaxAttempts
	switch {
	case c.Outcome.Kind == task.OutcomeBlocked:
		return task.MarkDead("blocked: " + c.Outcome.Reason)
	case c.Spent.Attempts >= limit:
		return task.MarkDead(fmt.Sprintf("Max attempts (%d) exceeded", limit))
	}
	delay := p.maxRetryDelay
	if c.Spent.Attempts < 30 { // 2 to the power of 30 seconds are 34 years
		delay = min(delay, time.Second<<c.Spent.Attempts)
	}
	return task.Retry(delay, fmt.Sprintf("Retry %d of %d after %v", c.Spent.Attempts+1, limit, delay))
}
